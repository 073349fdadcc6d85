"""What tests of the lab share."""

import pytest

from stagewise.papers.mixture.experiments import JointTraining


@pytest.fixture
def broken(monkeypatch):
    """Jobs of width 8 break."""
    real = JointTraining.start

    def start(self, seeds):
        if self.width == 8:
            raise ZeroDivisionError("width 8 is broken")
        return real(self, seeds)

    monkeypatch.setattr(JointTraining, "start", start)
    return lambda: monkeypatch.setattr(JointTraining, "start", real)
