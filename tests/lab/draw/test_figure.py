"""Figures as files."""

import pytest

import stagewise as sw
from stagewise.errors import Refused
from stagewise.lab import api


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_figure_is_the_same_byte_for_byte(runs, tmp_path, ending):
    drawn = [
        sw.figure("composition.correlations", tmp_path / f"{n}.{ending}", runs=runs).read_bytes()
        for n in range(2)
    ]
    api.figure("composition.correlations", tmp_path / f"other.{ending}", runs=runs)
    assert drawn[0] == drawn[1] == (tmp_path / f"other.{ending}").read_bytes() and len(drawn[0]) > 1000
    assert drawn[0].startswith({"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[ending])


def test_charts_with_many_fonts_are_the_same_byte_for_byte(tmp_path):
    import altair as alt
    import pandas as pd

    from stagewise.lab.draw.figures import styled
    from stagewise.lab.draw.pictures import save

    table = pd.DataFrame({"x": [1, 2], "of": ["a", "b"]})
    chart = (
        alt.Chart(table, title="title")
        .mark_point()
        .encode(x="x:Q", color=alt.Color("of:N", title="legend"))
        .facet(row="of:N")
    )
    for n in range(12):
        save(styled(chart), tmp_path / f"{n}.pdf")
    assert len({(tmp_path / f"{n}.pdf").read_bytes() for n in range(12)}) == 1


def test_a_claim_has_a_figure_too(runs, tmp_path):
    own = sw.figure("composition.lem10", tmp_path / "own.svg", runs=runs).read_text()
    assert "composition.lem10: holds" in own and "control" in own


@pytest.mark.parametrize(
    "name, out, said",
    [
        ("composition.correlations", "fig.gif", "written as .svg, .png, .pdf"),
        ("composition.corelations", "fig.svg", "did you mean"),
        ("composition.fig3right", "fig.svg", "--preset standard"),
        ("composition.correlations", ".", "written as"),
        ("mixture.fig1", "/proc/none/fig.svg", "cannot create the folder"),
        ("composition.thm5", "fig.svg", "nothing to draw"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_is_run(runs, tmp_path, name, out, said):
    with pytest.raises(Refused, match=said):
        sw.figure(name, tmp_path / out, runs=runs)
    assert not list(runs.glob("*"))
