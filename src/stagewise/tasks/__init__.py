"""Data distributions with their ground truth."""
