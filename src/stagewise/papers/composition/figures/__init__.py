"""The paper's figures, drawn from our runs: the theory's training, and the encoder."""
