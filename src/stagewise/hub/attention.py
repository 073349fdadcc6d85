"""The attention entropies of a causal language model on worked answers, with and without the reasoning
(parity, Figures 6 and 7).

Each question is measured in three setups: the question with its bare result, the question with its worked
answer, and the worked answer again with the minimum taken over only as many places as the bare text has
(`matched`). A worked answer is longer, and a minimum over more places is lower for that reason alone. Results
are saved question by question, so a stopped run can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.errors import Refused, require
from stagewise.hub.questions import Question, read_questions
from stagewise.lab.execute.progress import Progress
from stagewise.lab.store.files import Damaged, make_folder, read_json, write_json
from stagewise.probes.entropy import normalised_entropy

SETUPS = ("without reasoning", "with reasoning", "matched")
INSTALL = (
    "probe-attention needs PyTorch and transformers; install them with: pip install -c constraints.txt "
    "-e '.[hf]'"
)


@dataclass(frozen=True)
class Probe:
    """What is probed: a model (folder or hub id), a file of questions, how many of them, and over which
    places of a text."""

    model: str
    data: Path
    items: int | None = None
    places: str = "all"  # "all", or "answer" for only those after the question

    def __post_init__(self):
        require(
            self.items is None or self.items >= 1,
            f"probe-attention: items must be at least 1, not {self.items} (set --items)",
        )
        require(
            self.places in ("all", "answer"),
            f"probe-attention: places must be all or answer, not {self.places!r} (set --places)",
        )


def probe(settings: Probe, out: Path, progress: Progress) -> np.ndarray:
    """Return the entropies [question, setup, layer, head]. Those that `out` holds already are read; the
    others are computed, and saved there one by one."""
    questions = read_questions(settings.data)[: settings.items]
    make_folder(out)
    _claim(out, settings, questions)
    kept = out / "entropies.jsonl"
    done = _read_kept(kept)
    if missing := [i for i in range(len(questions)) if i not in done]:
        measure = _measuring(settings)
        progress.begin(f"{settings.model}, {len(questions)} questions", len(questions))
        progress.resume(len(questions) - len(missing))
        for i in missing:
            done[i] = measure(questions[i], i)
            _append(kept, {"question": i, "entropies": done[i].round(6).tolist()})
            progress.advance("attention", 1, 1.0)
        progress.end()
    return np.array([done[i] for i in range(len(questions))])


def _claim(out: Path, settings: Probe, questions: list[Question]) -> None:
    """Write into the folder which probe it holds; refuse a folder that holds another one."""
    text = json.dumps([[q.question, q.answer] for q in questions])
    about = {
        "model": settings.model,
        "places": settings.places,
        "questions": hashlib.sha256(text.encode()).hexdigest(),
    }
    path = out / "probe.json"
    if path.exists():
        try:
            there = read_json(path)
        except Damaged as error:
            raise Refused(f"{path} is damaged; remove {out} or choose another --out") from error
        require(
            there == about,
            f"{out} holds another probe (model, questions or places differ); choose another --out",
        )
    else:
        write_json(path, about)


def _read_kept(path: Path) -> dict[int, np.ndarray]:
    """Return the entropies that are saved, by question. A line that was cut off is dropped from the file,
    with all that follow it."""
    if not path.exists():
        return {}
    found, whole = {}, []
    for line in path.read_text().splitlines():
        try:
            entry = json.loads(line)
            found[int(entry["question"])] = np.array(entry["entropies"], float)
            whole.append(line)
        except (ValueError, KeyError, TypeError):
            break
    path.write_text("".join(f"{line}\n" for line in whole))
    return found


def _append(path: Path, entry: Any) -> None:
    try:
        with open(path, "a") as kept:
            kept.write(json.dumps(entry) + "\n")
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}; what was finished before is kept") from error


def _measuring(settings: Probe) -> Callable[[Question, int], np.ndarray]:
    """Return a function that takes a question and its number, and returns entropies [setup, layer, head]."""
    model, tokenizer = load(settings.model)

    def measure(question: Question, number: int) -> np.ndarray:
        asked = len(tokenizer(question.question)["input_ids"])
        first = asked if settings.places == "answer" else 1
        short, long = (
            tokenizer(text)["input_ids"] for text in (question.without_reasoning, question.with_reasoning)
        )
        places, more = np.arange(first, len(short)), np.arange(first, len(long))
        some = np.random.default_rng(number).choice(more, min(len(places), len(more)), replace=False)
        bare = [normalised_entropy(pattern, places) for pattern in patterns(model, short)]
        worked = [
            (normalised_entropy(pattern, more), normalised_entropy(pattern, some))
            for pattern in patterns(model, long)
        ]
        return np.array([bare, [whole for whole, _ in worked], [matched for _, matched in worked]])

    return measure


def load(name: str):
    """Load a causal language model and its tokenizer, ready to be probed."""
    try:
        import torch  # noqa: F401  (the models need it)
        from transformers import AutoModelForCausalLM, AutoTokenizer, logging
    except ImportError as error:
        raise Refused(INSTALL) from error
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder = Path(name).expanduser()
    if folder.is_dir():
        weights = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
        require((folder / "config.json").exists(), f"{folder} is not a model folder: it has no config.json")
        require(len(weights) > 0, f"{folder} has no weights (*.safetensors or *.bin)")
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager", dtype="auto")
    except Exception as error:  # the library raises many kinds
        raise Refused(
            f"cannot load the model {name}: {(str(error).splitlines() or [type(error).__name__])[0]}"
        ) from error
    return model.eval(), tokenizer


def patterns(model, tokens: list[int]) -> Iterator[np.ndarray]:
    """Return the attention [head, query, key] of every layer on a text. Each pattern is taken when its layer
    is computed, so the model keeps none."""
    import torch

    seen: list[np.ndarray] = []

    def take(module, inputs, output):
        if (
            isinstance(output, tuple)
            and len(output) > 1
            and torch.is_tensor(output[1])
            and output[1].ndim == 4
        ):
            seen.append(output[1][0].float().numpy())

    hooks = [
        module.register_forward_hook(take)
        for module in model.modules()
        if type(module).__name__.endswith("Attention")
    ]
    try:
        with torch.no_grad():
            model(torch.tensor([tokens]), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    require(len(seen) > 0, f"{type(model).__name__} gives no attention patterns out")
    return iter(seen)


def summary(found: np.ndarray) -> list[dict[str, Any]]:
    """By layer: mean entropies of the setups, how many heads are sparser with reasoning, and the differences
    with 95 % intervals over questions."""
    rows = []
    for layer in range(found.shape[2]):
        here = found[:, :, layer]  # [question, setup, head]
        means = here.mean(0)
        row: dict[str, Any] = {"layer": layer + 1, "heads": here.shape[-1]}
        row |= {setup: float(means[i].mean()) for i, setup in enumerate(SETUPS)}
        for i, setup in enumerate(SETUPS[1:], 1):
            lower = here[:, 0].mean(-1) - here[:, i].mean(-1)
            drawn = np.random.default_rng(0).integers(0, len(lower), (1000, len(lower)))
            low, high = np.quantile(lower[drawn].mean(1), [0.025, 0.975])
            row[f"lower {setup}"] = [float(lower.mean()), float(low), float(high)]
            row[f"heads lower {setup}"] = int((np.sort(means[i]) < np.sort(means[0])).sum())
        rows.append(row)
    return rows


def picture(found: np.ndarray, title: str):
    """Heads sorted by their mean entropy in each setup, for up to four layers."""
    import altair as alt
    import pandas as pd

    from stagewise.lab.draw.figures import styled

    layers = sorted({round(i) for i in np.linspace(0, found.shape[2] - 1, min(4, found.shape[2]))})
    rows = [
        {
            "layer": f"layer {layer + 1}",
            "setup": setup,
            "head, sorted": place + 1,
            "entropy": round(float(value), 4),
        }
        for layer in layers
        for i, setup in enumerate(SETUPS)
        for place, value in enumerate(np.sort(found[:, i, layer].mean(0)))
    ]
    bars = (
        alt.Chart(pd.DataFrame(rows), width=220, height=160)
        .mark_bar()
        .encode(
            x=alt.X("head, sorted:O"),
            y=alt.Y("entropy:Q", title="normalised entropy"),
            xOffset=alt.XOffset("setup:N", sort=list(SETUPS)),
            color=alt.Color("setup:N", sort=list(SETUPS), title=None),
            tooltip=["layer", "setup", "head, sorted", "entropy"],
        )
    )
    facets = bars.facet(
        facet=alt.Facet("layer:N", title=None, sort=[f"layer {layer + 1}" for layer in layers]),
        columns=2,
        title=title,
    )
    return styled(facets)
