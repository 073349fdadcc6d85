"""A GPT-2 as a folder in Hugging Face's format: configuration and weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save

from stagewise.lab.store.files import write, write_json
from stagewise.models.exchange import to_hugging_face
from stagewise.models.gpt import EPSILON, GPT


def write_folder(model: GPT, folder: Path) -> None:
    """Write `config.json` and `model.safetensors`, which `GPT2LMHeadModel.from_pretrained` loads; the head is
    tied, so it is not written."""
    weights = {
        name: np.ascontiguousarray(value, np.float32) for name, value in to_hugging_face(model).items()
    }
    write(folder / "model.safetensors", save(weights, metadata={"format": "pt"}))
    write_json(folder / "config.json", configuration(model))


def configuration(model: GPT) -> dict:
    """Return the configuration under the library's names. Dropout is 0, since the model is already
    trained."""
    vocabulary, width = model.wte.shape
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": vocabulary,
        "n_positions": len(model.wpe),
        "n_embd": width,
        "n_layer": model.layers,
        "n_head": model.heads,
        "n_inner": model.mlp_c_fc_weight.shape[-1],
        "activation_function": "gelu_new",
        "layer_norm_epsilon": EPSILON,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }
