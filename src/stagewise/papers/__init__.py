"""The papers: each folder assembles tasks, models, training and probes into experiments, claims and
figures."""
