"""The theory: three steps of descent, the construction, embeddings."""

from __future__ import annotations

from math import ceil, log

from stagewise.lab.spec.study import Study
from stagewise.papers.parity.experiments import Construction, Embeddings, Identities, Rounded, ThreeSteps

# Theorem 3 as it stands: hinge loss, and outputs that stay within its linear part. The linear loss lets
# epsilon be as large as
# Lemma 5.4 wants it (120 eta0 / (m n)), orthogonal embeddings do away with d: the regime that the proofs
# speak of.
three_steps = ThreeSteps.plan()
linear_loss = ThreeSteps.plan(loss="linear")
proofs = ThreeSteps.plan(
    loss="linear",
    epsilon=1000.0,
    neurons=200,
    batch=100_000,
    dimension=0,
    signal=80.0,
    **{"task.bits": 10, "task.secret_size": 3},
)
random_embeddings = proofs.but(dimension=4096, batch=16_000)
# No chain of thought.
without_chain = proofs.but(batch=2000, neurons=50, **{"task.bits": 20, "task.chain_of_thought": False})

identities = Identities.plan()
flipping = Identities.plan(epsilon=0.3, signal=500.0)

near_orthogonal = Embeddings.plan()

ENOUGH = 8.0  # d = 8 k log(n / 0.1), one constant for all sizes


def construction(bits: int, secret_size: int, constant: float = ENOUGH):
    """Theorem 1's network with d = constant k log(n / delta)."""
    d = ceil(constant * secret_size * log(bits / 0.1))
    return Construction.plan(dimension=d, **{"task.bits": bits, "task.secret_size": secret_size})


dimensions = Study(
    "parity.dimensions",
    "Theorem 1's construction as embeddings get longer.",
    Construction.plan(),
    over={"dimension": (64, 256, 1024, 4096)},
)
secret_sizes = Study(
    "parity.secret_sizes",
    "Theorem 1's construction for larger secrets.",
    Construction.plan(dimension=1024),
    over={"task.secret_size": (2, 4, 8, 16)},
)
rounded = Study(
    "parity.rounded_sizes",
    "How many bits of precision the network of Theorem 3 needs, for more inputs and a secret of three.",
    Rounded.plan(),
    over={"task.bits": (8, 16)},
    at_preset={"standard": {"task.bits": (8, 16, 32, 64)}, "paper": {"task.bits": (8, 16, 32, 64)}},
)


def _few_samples(which: str, quick: int, more: int) -> Study:
    """Theorem 3 at batches by factors, n bits of which a quarter are secret, and neurons in proportion to
    n."""

    def sizes(n: int, neurons: int) -> dict:
        return {"task.bits": n, "task.secret_size": n // 4, "neurons": neurons * n}

    return Study(
        f"parity.{which}_samples",
        f"Theorem 3 with few samples, {quick} bits (presets standard and paper: {more}) and a quarter of "
        "them secret.",
        ThreeSteps.plan(loss="linear", epsilon=10.0, dimension=0, signal=60.0, seeds=6, **sizes(quick, 12)),
        over={"batch": (125, 250, 500, 1000, 2000)},
        at_preset={
            preset: {"seeds": 8, "batch": (125, 250, 500, 1000, 2000, 4000), **sizes(more, 25)}
            for preset in ("standard", "paper")
        },
    )


small_samples, middle_samples, large_samples = (
    _few_samples(*sizes) for sizes in (("small", 8, 8), ("middle", 12, 16), ("large", 16, 32))
)
few_dimensions = Study(
    "parity.few_dimensions",
    "Which neurons a place switches on, when embeddings are short.",
    ThreeSteps.plan(
        loss="linear",
        epsilon=1000.0,
        neurons=100,
        batch=1000,
        signal=60.0,
        **{"task.bits": 10, "task.secret_size": 3},
    ),
    over={"dimension": (16, 128, 1024)},
)
# A phase diagram of Theorem 3: how many dimensions, how many neurons.
phase = Study(
    "parity.phase",
    "Whether three steps are enough, by the length of embeddings and the number of neurons.",
    ThreeSteps.plan(
        loss="linear",
        epsilon=1000.0,
        batch=2000,
        signal=60.0,
        tested=1024,
        seeds=8,
        **{"task.bits": 10, "task.secret_size": 3},
    ),
    over={"dimension": (16, 64, 256, 1024, 4096), "neurons": (10, 25, 50, 100, 200)},
)
