"""How weights move: compiled loops over steps and seeds, gradient flow, stages."""
