"""The training runs, by figure.

Preset quick has what one layer and one head show within seconds, and one run at the paper's width. Preset
standard has all figures at width 64, but for Figure 3b, which has the paper's; what 60 minutes on two cores
cut off is said by the claims. Preset paper has the paper's sizes and takes hours to days."""

from __future__ import annotations

from stagewise.lab.spec.study import Study
from stagewise.papers.parity.experiments import GPTTraining

RATES, PAPER_RATES = (6e-4, 8e-4, 1e-3), (6e-5, 8e-5, 1e-4)  # at width 64 and 720
DEPTHS = {"gpt.layers": (1, 2, 3, 4), "gpt.heads": (1, 2, 3, 4)}

growth = Study(
    "parity.growth",
    "Samples until every answer is right, with and without a chain of thought, for larger secrets and three "
    "rates: one layer, one head (Figure 2b).",
    GPTTraining.plan(answers=4, seeds=6),
    over={"task.chain_of_thought": (True, False), "task.secret_size": (1, 2, 3, 4), "learning_rate": RATES},
    at_preset={
        "quick": {"task.secret_size": (1, 2, 3), "learning_rate": (1e-3,), "samples": 115_200, "answers": 6},
        "standard": {"samples": 1_000_000},
        "paper": {"learning_rate": PAPER_RATES},
    },
)
grid = Study(
    "parity.grid",
    "Samples until every answer is right, by layers and heads (Figures 1a, 2a and 2c).",
    GPTTraining.plan(answers=4, seeds=6, samples=76_800, batch=128, validation=512, **{"task.bits": 16}),
    over={
        "gpt.layers": (1, 2),
        "gpt.heads": (1, 2),
        "task.chain_of_thought": (True, False),
        "task.secret_size": (1, 2, 3),
        "learning_rate": (1e-3,),
    },
    at_preset={
        "paper": {
            **DEPTHS,
            "task.secret_size": (1, 2, 3, 4),
            "samples": 10_000_000,
            "learning_rate": PAPER_RATES,
            "batch": 512,
            "validation": 2048,
            "task.bits": 30,
        }
    },
)
chain_lengths = Study(
    "parity.chain_lengths",
    "Samples with a chain of thought as the secret, and with it the chain, gets longer (Figure 3a).",
    GPTTraining.plan(goal=0.995, seeds=6, samples=200_000, batch=128, **{"task.bits": 40}),
    over={"task.secret_size": (5, 10, 20, 40)},
    at_preset={
        "paper": {
            "task.bits": 100,
            "task.secret_size": tuple(range(20, 101, 10)),
            "samples": 1_000_000,
            "batch": 512,
        }
    },
)

# Attention with a chain of thought, past the first perfect answer: a narrow model, one of the paper's width
# (Figure 3b), two layers (Figure 8).
_forty = {"task.bits": 40, "task.secret_size": 20}
one_hot_small = GPTTraining.plan(until="end", seeds=8, **_forty).where(
    quick={"task.bits": 16, "task.secret_size": 6, "samples": 25_600},
    standard={"batch": 128, "samples": 51_200},
)
one_hot = GPTTraining.plan(
    until="end", seeds=6, scale=0.02, embedding_scale=0.02, learning_rate=6e-5, **_forty, **{"gpt.width": 720}
).where(
    standard={
        "task.bits": 20,
        "task.secret_size": 8,
        "batch": 128,
        "samples": 30_720,
        "decay_samples": 10_000_000,
        "validation": 256,
        "learning_rate": 1e-4,
    }
)
two_layers = GPTTraining.plan(until="end", seeds=6, **_forty, **{"gpt.layers": 2, "gpt.heads": 2}).where(
    standard={"task.bits": 20, "task.secret_size": 8, "batch": 128, "samples": 51_200}
)

# Curves of accuracy and entropy (Figure 1b): one hidden bit more or less decides how long they must be.
_figure1b = {
    "task.bits": 30,
    "task.secret_size": 3,
    "gpt.layers": 4,
    "gpt.heads": 4,
    "learning_rate": 1e-4,
    "samples": 1_000_000,
    "decay_samples": 10_000_000,
}
chained_curves = one_hot_small.where(paper=_figure1b)
plain_curves = GPTTraining.plan(until="end", seeds=8, **{"task.chain_of_thought": False}).where(
    quick={"task.secret_size": 2, "samples": 25_600}, standard={"samples": 1_000_000}, paper=_figure1b
)
full_width = GPTTraining.plan(
    seeds=1,
    batch=512,
    scale=0.02,
    embedding_scale=0.02,
    learning_rate=6e-5,
    samples=51_200,
    decay_samples=10_000_000,
    validation=512,
    **{"task.bits": 30, "task.secret_size": 2, "task.chain_of_thought": False, "gpt.width": 720},
)

ascending = GPTTraining.plan(answers=6, seeds=6, **{"task.secret_size": 6}).where(standard={"seeds": 12})
shuffled = ascending.but(**{"task.order": "random"})

# Without a chain of thought: four secret bits among a hundred (Section 4.1), and six of twenty on fresh data
# (Section 4.2).
_hidden = {"task.chain_of_thought": False}
many_bits = GPTTraining.plan(seeds=6, **{"task.bits": 100, "task.secret_size": 4, **_hidden}).where(
    standard={"samples": 1_000_000}
)
fresh_six = GPTTraining.plan(
    seeds=6, samples=10_000_000, **{"task.bits": 20, "task.secret_size": 6, **_hidden}
).where(standard={"seeds": 4})

# Many passes over few inputs.
_AGAIN = GPTTraining.plan(
    seeds=4,
    samples=4_000_000,
    decay_samples=10_000_000,
    **{"task.bits": 20, "task.secret_size": 6, **_hidden},
)
set_sizes = Study(
    "parity.set_sizes",
    "Training sets of different sizes, used again and again for as many steps (Figures 5 and 10).",
    _AGAIN.but(**{"gpt.heads": 4}),
    over={"training_set": (10_000, 50_000, 1_000_000)},
    at_preset={
        "paper": {
            "training_set": (5_000, 10_000, 50_000, 100_000, 1_000_000),
            "samples": 10_000_000,
            "gpt.layers": 4,
            "learning_rate": 1e-4,
        }
    },
)
easier_sets = Study(
    "parity.easier_sets",
    "The same for a secret of four.",
    _AGAIN.but(samples=1_000_000, **{"gpt.heads": 2, "task.secret_size": 4}),
    over={"training_set": (1_000, 2_000, 4_000, 1_000_000)},
)
again_grid = Study(
    "parity.again_grid",
    "Ten thousand inputs again and again, by layers and heads (Figure 4).",
    _AGAIN.but(training_set=10_000),
    over={"gpt.layers": (1,), "gpt.heads": (1, 2, 4)},
    at_preset={"paper": {**DEPTHS, "samples": 10_000_000, "learning_rate": 1e-4}},
)
again_deep = Study(
    "parity.again_deep",
    "Two layers of three heads on a small and a large training set (Figure 11).",
    _AGAIN.but(samples=100_000, **{"gpt.layers": 2, "gpt.heads": 3, "gpt.width": 66}),
    over={"training_set": (50_000, 1_000_000)},
    at_preset={"paper": {"samples": 10_000_000, "gpt.width": 720, "learning_rate": 1e-4}},
)
again_chain = Study(
    "parity.again_chain",
    "Ten thousand inputs again and again with a chain of thought, secrets of six and twelve (Figures 4 and "
    "9).",
    GPTTraining.plan(seeds=6, samples=200_000, training_set=10_000, answers=12, **{"task.bits": 20}),
    over={"task.secret_size": (6, 12)},
)
twelve = Study(
    "parity.twelve",
    "Twelve secret bits of twenty without a chain of thought, by heads and training set (Figure 9).",
    _AGAIN.but(samples=1_000_000, **{"task.secret_size": 12}),
    over={"gpt.layers": (1,), "gpt.heads": (1, 4), "training_set": (10_000, 100_000)},
    at_preset={
        "paper": {
            "gpt.layers": (1, 2, 3, 4, 6, 8),
            "gpt.heads": (1, 2, 3, 4, 6, 8),
            "training_set": (10_000, 100_000, 1_000_000),
            "samples": 10_000_000,
        }
    },
)
twelve_chained = GPTTraining.plan(seeds=6, answers=12, **{"task.bits": 20, "task.secret_size": 12}).where(
    standard={"samples": 200_000}
)

# Answers alone first, then chains of thought, or only answers (Section 4.3).
reasoning = GPTTraining.plan(until="end", seeds=8, **{"task.secret_size": 6}).where(
    standard={"plain_samples": 25_600, "samples": 102_400},
    paper={"plain_samples": 1_000_000, "samples": 4_000_000},
)
only_answers = reasoning.but(plain_samples=10**9)
