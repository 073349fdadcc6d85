"""The theory's stages, in closed form. Preset quick has smaller groups; the rest is the same at every
preset."""

from __future__ import annotations

from stagewise.lab.spec.study import Study
from stagewise.papers.lego.experiments import Identities, OneStep, Recursion, Retrieval, TwoSteps

identities = Identities.plan()

# Stage 1, values (slot 5): a simply transitive group and a symmetric one.
cyclic = OneStep.plan(**{"action.group": "C6"}).where(quick={"action.group": "C4"})
symmetric = OneStep.plan(**{"action.group": "S4"}).where(quick={"action.group": "S3"})
two_values = OneStep.plan(**{"action.group": "C2"})
skewed = cyclic.but(condition=2.0)
powers = Study(
    "lego.powers",
    "Stage 1 for activations of growing order q.",
    cyclic,
    over={"q": (4, 8, 16, 32)},
    at_preset={"quick": {"q": (4, 32)}},
)

# Stage 1, variables (slot 4).
copying = Retrieval.plan()
copied_sizes = Study(
    "lego.copied_sizes",
    "Copying among more and more variables.",
    copying,
    over={"variables": (6, 12, 24, 40)},
)

# Stage 2 in vocabularies of growing size: simply transitive by Algorithm 1, symmetric by Algorithm 2.
SIZES = (256.0, 1024.0, 1e4, 1e5)
cyclic_sizes = Study(
    "lego.cyclic_sizes",
    "Attention on C6, Algorithm 1, in vocabularies of growing size.",
    TwoSteps.plan(**{"action.group": "C6"}),
    over={"vocabulary": SIZES},
)
symmetric_sizes = Study(
    "lego.symmetric_sizes",
    "Attention on a symmetric group, Algorithm 2, in vocabularies of growing size.",
    TwoSteps.plan(trains="second", **{"action.group": "S4"}).where(quick={"action.group": "S3"}),
    over={"vocabulary": SIZES},
)
# The same with a clip as high as the paper's stop d^-2.97 asks for (q > 3 C_B + 1).
_HIGH = {"clip": 6.0, "q": 20, "last": 3.5}
high_cyclic_sizes = cyclic_sizes.but(**_HIGH)
high_symmetric_sizes = symmetric_sizes.but(**_HIGH)
learned_sizes = Study(
    "lego.learned_sizes",
    "Attention on C4, Algorithm 1, with the features that stage 1 leaves.",
    TwoSteps.plan(features="learned", q=32, rho=1.6, seeds=6, **{"action.group": "C4"}),
    over={"vocabulary": (256.0, 1024.0, 1e4, 1e5)},
)
clips = Study(
    "lego.clips",
    "Attention on S3, Algorithm 2, with higher and higher clips.",
    TwoSteps.plan(
        trains="second",
        vocabulary=64.0,
        q=200,
        variables=50,
        stop="loss",
        last=70.0,
        **{"action.group": "S3"},
    ),
    over={"clip": (4.0, 8.0, 16.0, 32.0)},
    at_preset={
        "standard": {"clip": (4.0, 8.0, 16.0, 32.0, 64.0)},
        "paper": {"clip": (4.0, 8.0, 16.0, 32.0, 64.0)},
    },
)
few_variables = Study(
    "lego.few_variables",
    "Attention on C6 with few and many variables.",
    TwoSteps.plan(**{"action.group": "C6"}),
    over={"variables": (12, 50, 200)},
    at_preset={"quick": {"variables": (12, 200)}},
)

recursion = Recursion.plan()
recursion_sizes = Study(
    "lego.recursion_sizes",
    "Algorithm 2 in vocabularies of growing size.",
    recursion.but(stages=2, seeds=6),
    over={"vocabulary": (256.0, 1024.0, 4096.0)},
)
