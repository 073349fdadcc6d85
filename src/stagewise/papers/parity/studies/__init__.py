"""The settings that the claims compare, by what they change: of the theory, and of training."""
