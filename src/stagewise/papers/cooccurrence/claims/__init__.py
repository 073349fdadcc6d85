"""What the paper says that can be run, by its sections."""
