"""The paper's figures, drawn from our runs: the two phases, and trends in the sizes."""
