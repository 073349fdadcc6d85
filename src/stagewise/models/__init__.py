"""Architectures: each returns outputs and, when asked, its named attention patterns."""
