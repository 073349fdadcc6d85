"""What is run: the theory's stages, and training."""
