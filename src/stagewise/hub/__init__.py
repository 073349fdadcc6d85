"""Trained language models from a hub or a folder, looked at from outside. Needs the extra `hf`."""
