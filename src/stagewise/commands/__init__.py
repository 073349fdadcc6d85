"""Commands that have more to say than fits into `cli.py`."""
