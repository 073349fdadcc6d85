"""GPT-2 weights under Hugging Face's names, and back under ours. `hub/folder.py` writes them as a folder that
Hugging Face's library loads."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from stagewise.models.gpt import GPT


def to_hugging_face(model: GPT) -> dict[str, np.ndarray]:
    """Return the weights under Hugging Face's names for GPT2LMHeadModel. Its head is tied to the embedding
    and has no entry."""
    named = {
        "transformer.wte.weight": model.wte,
        "transformer.wpe.weight": model.wpe,
        "transformer.ln_f.weight": model.ln_f_weight,
        "transformer.ln_f.bias": model.ln_f_bias,
    }
    for name, stacked in model.weights().items():
        if name.startswith(("ln_1", "ln_2", "attn", "mlp")):
            for layer in range(model.layers):
                named[f"transformer.h.{layer}.{_dotted(name)}"] = stacked[layer]
    return {name: np.asarray(value) for name, value in named.items()}


def from_hugging_face(named: dict[str, np.ndarray], heads: int) -> GPT:
    """Make a GPT from the weights of a GPT2LMHeadModel, given under Hugging Face's names."""
    layers = len({name.split(".")[2] for name in named if name.startswith("transformer.h.")})
    fields = {}
    for name in GPT.__dataclass_fields__:
        if name in ("wte", "wpe"):
            fields[name] = jnp.asarray(named[f"transformer.{name}.weight"])
        elif name.startswith("ln_f"):
            fields[name] = jnp.asarray(named[f"transformer.{_dotted(name)}"])
        elif name not in ("heads", "causal"):
            fields[name] = jnp.stack(
                [jnp.asarray(named[f"transformer.h.{layer}.{_dotted(name)}"]) for layer in range(layers)]
            )
    return GPT(**fields, heads=heads)


def _dotted(name: str) -> str:
    """attn_c_proj_weight -> attn.c_proj.weight, ln_1_bias -> ln_1.bias."""
    part, _, kind = name.rpartition("_")
    for room in ("attn_", "mlp_"):
        part = part.replace(room, room[:-1] + ".", 1) if part.startswith(room) else part
    return f"{part}.{kind}"
