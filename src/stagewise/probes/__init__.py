"""What is measured on a model or read off a trajectory."""
