"""Figures as files."""

import pytest

import stagewise as sw
from stagewise.errors import Refused
from stagewise.lab import api


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_figure_is_the_same_byte_for_byte(runs, tmp_path, ending):
    drawn = [sw.figure("composition.correlations", tmp_path / f"{n}.{ending}", runs=runs).read_bytes() for n in range(2)]
    api.figure("composition.correlations", tmp_path / f"other.{ending}", runs=runs)
    assert drawn[0] == drawn[1] == (tmp_path / f"other.{ending}").read_bytes() and len(drawn[0]) > 1000
    assert drawn[0].startswith({"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[ending])


def test_a_claim_has_a_figure_too(runs, tmp_path):
    own = sw.figure("composition.lem10", tmp_path / "own.svg", runs=runs).read_text()
    assert "composition.lem10: holds" in own and "control" in own


@pytest.mark.parametrize("name, out, said", [
    ("composition.correlations", "fig.gif", "written as .svg, .png, .pdf"), ("composition.corelations", "fig.svg", "did you mean"), ("composition.fig3right", "fig.svg", "--preset standard"),
    ("composition.correlations", ".", "written as"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused_before_anything_is_run(runs, tmp_path, name, out, said):
    with pytest.raises(Refused, match=said):
        sw.figure(name, tmp_path / out, runs=runs)
    assert not runs.exists()
