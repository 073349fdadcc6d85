"""One command a file: `ABOUT`, `add_options(sub)` and `act(options, rest)`. The only place that prints."""
