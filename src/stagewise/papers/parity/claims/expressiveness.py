"""Section 3.1 and Appendix B.2: one layer can compute a parity in one pass, with weights written down."""

from __future__ import annotations

from math import floor, log2

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import Verdict, all_of, exactly, median_over_seeds, share_of_seeds, slope
from stagewise.lab.spec.settings import setting
from stagewise.lazy import xr
from stagewise.papers.parity.readings import fewest_bits
from stagewise.papers.parity.studies.theory import construction, dimensions, secret_sizes

SIZES = {"n10": (10, 3), "n30": (30, 4), "n30_more": (30, 8), "n60": (60, 12)}
built = {name: construction(*sizes) for name, sizes in SIZES.items()}


@claim(
    "parity.thm1",
    source="Theorem 1",
    predicted=(
        "every answer right, attention within n^-7 of uniform on the secret, with d = c k log(n/delta) "
        "and k + 1 neurons of each sign"
    ),
    needs=built,
    control={name: construction(*sizes, constant=1.0) for name, sizes in SIZES.items()},
    control_is="embeddings an eighth as long",
    restated="2026-11-16: first with d = 6 k log(n/delta), over all sizes together, where 30 of 32 networks "
    "were right. That is d = 28 k at n = 10, below the "
    "32 k that our reading had tried; since then d = 8 k log(n/delta), and every size by itself.",
)
def explicit_weights_compute_the_parity(**built: xr.Dataset) -> Verdict:
    """With d = 8 k log(n / 0.1), for n = 10, 30, 30, 60 and k = 3, 4, 8, 12, the explicit weights answer
    every input right.

    Threshold: in most seeds of every size, because the theorem says with high probability."""
    works = {
        name: (run.accuracy == 1) & (run.off_uniform < setting(run, "task.bits") ** -7.0)
        for name, run in built.items()
    }
    worst = max(float(run.output_error.max()) for run in built.values())
    return all_of(*(share_of_seeds(f"share of seeds, {name}", work) for name, work in works.items())).also(
        worst_output_error=worst
    )


@claim(
    "parity.thm1.lemmas",
    source="Lemmas 1 to 4",
    predicted=(
        "eigenvalues of MM' above 1/12 and bounded; |V| = O(sqrt k); |<V, e_j>| <= 1/2 off the secret, "
        "falling like d^-1/2"
    ),
    needs={"dimensions": dimensions, "sizes": secret_sizes, "on_the_secret": False},
    control={"on_the_secret": True},
    control_is="<V, e> at the secret's own embeddings, where it is 1 whatever d",
    note=(
        "The binding condition is |<V, e_j>| < 1. At d = 32 k it is 0.6 to 0.8, above the printed 1/2, and "
        "the construction works all the same."
    ),
)
def secret_embeddings_are_well_conditioned(
    dimensions: xr.Dataset, sizes: xr.Dataset, on_the_secret: bool
) -> Verdict:
    """The Gram matrix of the secret's embeddings is well conditioned, |V| grows like sqrt(k), and V is nearly
    orthogonal to all others.

    Threshold: smallest eigenvalue above 1/12 and largest below 4 at d = 32 k and more, slopes 0.5 and -0.5
    within 0.15, and at most 1/2 at d = 512 k, because the lemmas print 1/12, 1/2 and the orders."""
    long = dimensions.sel(dimension=slice(256, None)).squeeze("record")
    elsewhere = (
        (dimensions.V_on_secret if on_the_secret else dimensions.V_elsewhere)
        .squeeze("record")
        .transpose("seed", "dimension")
    )
    lengths = sizes.V_norm.squeeze("record").transpose("seed", "secret_size")
    return all_of(
        exactly("smallest eigenvalue", long.least_eigenvalue.min(), at_least=1 / 12),
        exactly("largest eigenvalue", long.largest_eigenvalue.max(), at_most=4),
        slope(
            "growth of |V| with k", np.log(sizes.secret_size), np.log(lengths), at_least=0.35, at_most=0.65
        ),
        slope(
            "fall of <V, e> with d",
            np.log(dimensions.dimension),
            np.log(elsewhere),
            at_least=-0.65,
            at_most=-0.35,
        ),
        median_over_seeds("<V, e> at d = 512 k", elsewhere.isel(dimension=-1), at_most=0.5),
    )


precise = {f"n{n}": construction(n, 4) for n in (8, 16, 32, 64)}


@claim(
    "parity.thm1.precision",
    source="Theorem 1, last sentence",
    predicted="O(log n) bits of precision suffice",
    needs=precise | {"per_doubling": 3.0},
    control={"per_doubling": 1.0},
    control_is="log2 n bits",
)
def few_bits_of_precision_are_enough(per_doubling: float, **built: xr.Dataset) -> Verdict:
    """With U, V and all activations rounded to 3 log2 n bits, the network is still right on every input, for
    n = 8 to 64 and k = 4.

    Threshold: in most seeds of every size, because the theorem leaves the constant open and 3 is a moderate
    one."""
    works, needed = {}, {}
    for run in built.values():
        n = setting(run, "task.bits")
        allowed = floor(per_doubling * log2(n))
        perfect = (run.accuracy_at == 1).squeeze("record")
        works[n] = perfect.sel(precision=allowed)
        needed[f"bits_needed_n{n}"] = float(fewest_bits(perfect).median())
    return all_of(*(share_of_seeds(f"share of seeds, n = {n}", work) for n, work in works.items())).also(
        **needed
    )
