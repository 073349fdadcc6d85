"""What tests of runs and sweeps share."""

import xarray as xr

from stagewise.lab.execute.progress import Progress


class Notes(Progress):
    def __init__(self):
        self.begun, self.said, self.chunks = [], [], []

    def begin(self, label, chunks):
        self.begun.append(label)
        self.chunks.append(0)

    def advance(self, stage, steps, seconds):
        self.chunks[-1] += 1

    def note(self, text):
        self.said.append(text)


def same(a, b) -> bool:
    """Whether two folders hold the same trajectories, bit for bit."""
    found = sorted(path.relative_to(a) for path in a.glob("*/*/seeds-*/trajectory.nc"))
    assert found and found == sorted(path.relative_to(b) for path in b.glob("*/*/seeds-*/trajectory.nc"))
    return all(
        xr.load_dataset(a / path, engine="scipy").identical(xr.load_dataset(b / path, engine="scipy"))
        for path in found
    )
