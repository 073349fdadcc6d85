"""Section 5 and Appendix G: the infinite-width model and how far finite width is from it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stagewise.lab.claims import claim
from stagewise.lab.statistics import Verdict, slope
from stagewise.papers.mixture.experiments import JointTraining, widths


@claim(
    "mixture.infwidth",
    source="Definition 5.1, Appendix G",
    predicted="training at width m stays within order 1/sqrt(m) of infinite width",
    needs={"finite": widths, "infinite": JointTraining.plan(width="infinite")},
    control={"infinite": JointTraining.plan(width="infinite", initial_scale=0.2)},
    control_is="the infinite-width run of another initial scale",
)
def finite_width_approaches_infinite_width(finite: xr.Dataset, infinite: xr.Dataset) -> Verdict:
    """The largest difference of any score at any time from the infinite-width run shrinks with the width.

    Threshold: a slope in log-log between -0.6 and -0.4, because the inner products at the start deviate by 1/sqrt(m)."""
    error = abs(finite.scores - infinite.scores.isel(seed=0)).max(["record", "head", "key", "query"])
    error = error.transpose("seed", "width")
    return slope("slope on width", np.log(finite.width.values), np.log(error.values), at_least=-0.6, at_most=-0.4).also(
        error_at_128=float(error.sel(width=128).median())
    )
