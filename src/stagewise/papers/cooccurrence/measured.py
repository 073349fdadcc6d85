"""What is measured on the closed system: losses by type, the three special words, and how far everything else
has moved."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stagewise.papers.cooccurrence.response import attend, outputs
from stagewise.tasks.cooccurrence import COMMON, SPECIAL, TYPES

WORDS = ("mu1", "mu2", "mu3")
LEARNING_DIMS = {
    name: () for name in ("loss", "margin", "test_loss", "test_accuracy", "alpha", "value_invariant")
} | {
    "type_loss": ("type",),
    "errors": ("type",),
    "G": ("word",),
    "scores": ("key", "query"),
    "value_self": ("key", "query"),
}
DIMS = (
    {
        name: ()
        for name in (
            "loss",
            "margin",
            "margin_unmoved",
            "output_scale",
            "test_loss",
            "test_accuracy",
            "alpha",
            "dalpha",
            "mean_gyF",
            "G_random",
            "dG_neurons_largest",
            "S_change",
            "CV_change",
            "CK_change",
            "CQ_change",
            "S_change_random",
            "CV_change_by_count",
            "value_invariant",
            "score_invariant",
            "key_trace",
            "random_part",
            "attention_change",
            "attention_change_random",
            "attention_speed",
        )
    }
    | {name: ("type",) for name in ("type_loss", "errors", "error_ratio", "gain")}
    | {name: ("word",) for name in ("G", "dG_values", "dG_neurons")}
    | {name: ("key", "query") for name in ("scores", "dscores", "value_self", "dvalue_self")}
    | {"margin_speed": ("extreme",), "dattention": ("looked_at", "extreme")}
)
NEURON_DIMS = {name: () for name in ("neuron_change", "neuron_change_random", "neuron_signs", "N_change")}
COORDS = {
    "type": np.array(TYPES),
    "word": np.array(WORDS),
    "key": np.array(WORDS),
    "query": np.array(WORDS),
    "looked_at": np.array(("other target", "common word")),
    "extreme": np.array(("least", "most")),
}


def measure(
    state: dict[str, Array], moving: dict[str, Array], b: Array, data: dict[str, Array]
) -> dict[str, Array]:
    """Everything the claims read, from the state, its velocity and the pull b on G."""
    tokens, present, width = data["tokens"], data["present"], data["width"]
    attention = attend(state["S"], tokens, present, width)
    first = attend(data["S0"], tokens, present, width)
    change = (
        attention
        * (
            _pairs(moving["S"], tokens)
            - jnp.einsum("nkq,nkq->nq", attention, _pairs(moving["S"], tokens))[:, None, :]
        )
        / jnp.sqrt(width)
    )
    return (
        _training(state, attention, first, data)
        | _testing(state, data)
        | _special(state, moving, b, data)
        | _moved(state, data)
        | _attention(state, moving, attention, first, change, data)
    )


def measure_learning(state: dict[str, Array], data: dict[str, Array]) -> dict[str, Array]:
    """The part of the measurements that needs no velocity: losses, margin, and the three special words."""
    attention, special = attend(state["S"], data["tokens"], data["present"], data["width"]), slice(SPECIAL)
    tables = {
        "G": state["G"][special],
        "scores": state["S"][special, special],
        "value_self": state["CV"][special, special],
    }
    found = _training(state, attention, attention, data) | _testing(state, data) | tables
    invariant = state["alpha"] - data["neurons"] * jnp.trace(state["CV"])
    return {name: value for name, value in found.items() if name in LEARNING_DIMS} | {
        "alpha": state["alpha"],
        "value_invariant": invariant,
    }


def _pairs(table, tokens):
    return table[tokens[:, :, None], tokens[:, None, :]]


def _training(state, attention, first, data):
    label, weight = data["label"], data["weight"]
    F = outputs(attention, state["G"], data["tokens"])
    losses, error = jax.nn.softplus(-label * F), jax.nn.sigmoid(-label * F)
    of_type = (weight > 0) & (data["type"] == jnp.array(TYPES)[:, None])
    unmoved = label * outputs(first, state["G"], data["tokens"])
    return {
        "loss": weight @ losses,
        "type_loss": (of_type * losses).sum(1) / of_type.sum(1),
        "errors": of_type @ (weight * error),  # S_k / n
        "error_ratio": jnp.where(of_type, error, 0).max(1) / jnp.where(of_type, error, jnp.inf).min(1),
        "margin": jnp.where(weight > 0, label * F, jnp.inf).min(),
        "margin_unmoved": jnp.where(weight > 0, unmoved, jnp.inf).min(),  # with the scores of the start
        "gain": (of_type * (label * F - unmoved)).sum(1)
        / of_type.sum(1),  # what moved attention adds to a type's margins
        "output_scale": jnp.where(weight > 0, abs(F), 0).max(),
        "mean_gyF": weight @ (label * error * F),
    }


def _testing(state, data):
    F = outputs(
        attend(state["S"], data["test_tokens"], data["present"], data["width"]),
        state["G"],
        data["test_tokens"],
    )
    return {
        "test_loss": jax.nn.softplus(-data["test_label"] * F).mean(),
        "test_accuracy": (data["test_label"] * F > 0).mean(),
    }


def _special(state, moving, b, data):
    through_neurons, special = data["neurons"] * state["CV"] @ b, slice(SPECIAL)
    return {
        "G": state["G"][special],
        "dG_values": (state["alpha"] * b)[special],
        "dG_neurons": through_neurons[special],
        "dG_neurons_largest": (abs(through_neurons) * data["seen"]).max(),
        "scores": state["S"][special, special],
        "dscores": moving["S"][special, special],
        "value_self": state["CV"][special, special],
        "dvalue_self": moving["CV"][special, special],
        "alpha": state["alpha"],
        "dalpha": moving["alpha"],
        "G_random": (abs(state["G"]) * data["seen"])[SPECIAL:].max(),
    }


def _moved(state, data):
    seen = data["seen"]
    moved = {
        name: abs(state[name] - data[f"{name}0"]) * seen[:, None] * seen for name in ("S", "CV", "CK", "CQ")
    }
    counts = data["count"][:, None] + data["count"]  # in how many sequences two words occur, added up
    return {f"{name}_change": moved[name].max() for name in moved} | {
        "S_change_random": jnp.maximum(moved["S"][SPECIAL:].max(), moved["S"][:, SPECIAL:].max()),
        "CV_change_by_count": (moved["CV"] / jnp.maximum(counts * data["weight"].max(), 1e-9)).max(),
        "value_invariant": state["alpha"] - data["neurons"] * jnp.trace(state["CV"]),
        "score_invariant": jnp.trace(state["CK"]) - jnp.trace(state["CQ"]),
        "key_trace": jnp.trace(state["CK"]),
    }


def _attention(state, moving, attention, first, change, data):
    tokens, label, counted = data["tokens"], data["label"], data["weight"] > 0
    irrelevant = tokens >= SPECIAL
    target = (tokens < COMMON) & (data["present"] > 0)
    asks = (target & (data["type"] == 1)[:, None] & counted[:, None])[:, None, :]
    others = (
        target[:, :, None] & asks & (tokens[:, :, None] != tokens[:, None, :]),
        (tokens == COMMON)[:, :, None] & asks,
    )
    moved = abs(attention - first) * counted[:, None, None]
    by_values = jnp.einsum("nkq,nk->n", attention, moving["G"][tokens])
    by_attention = jnp.einsum("nkq,nk->n", change, state["G"][tokens])
    speed = label * (by_values + by_attention)
    return {
        "attention_change": moved.max(),
        "random_part": (
            abs(jnp.einsum("nkq,nk->n", attention, state["G"][tokens] * irrelevant)) * counted
        ).max(),
        "attention_change_random": (moved * (irrelevant[:, :, None] & irrelevant[:, None, :])).max(),
        "attention_speed": (abs(by_attention) * counted).max(),  # how fast attention alone moves an output
        "margin_speed": jnp.stack(
            [jnp.where(counted, speed, jnp.inf).min(), jnp.where(counted, speed, -jnp.inf).max()]
        ),
        "dattention": jnp.stack(
            [
                jnp.stack([jnp.where(o, change, jnp.inf).min(), jnp.where(o, change, -jnp.inf).max()])
                for o in others
            ]
        ),
    }


def measure_neurons(state: dict[str, Array], data: dict[str, Array]) -> dict[str, Array]:
    """How far the neurons that ride along have moved, and which share of them with the sign of its output on
    the targets."""
    moved, there = state["H"] - data["H0"], abs(data["signs"])
    return {
        "neuron_change": abs(moved[:, :SPECIAL]).max(),
        "neuron_change_random": (abs(moved) * data["seen"])[:, SPECIAL:].max(),
        "neuron_signs": (data["signs"][:, None] * moved[:, :COMMON] > 0).sum() / (COMMON * there.sum()),
        "N_change": abs(state["N"] - data["N0"]).max(),
    }
