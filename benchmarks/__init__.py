"""Speed beside peers: every row is a ratio measured in one run, with both sides checked to give the same
numbers."""
