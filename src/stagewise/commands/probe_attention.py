"""`stagewise probe-attention`: how sparse the attention of a trained language model is."""

from __future__ import annotations

import argparse
from pathlib import Path

from stagewise.commands.arguments import add_runs, folder

ABOUT = "Attention entropies of a trained language model on worked answers, with and without the reasoning."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("model", help="a model folder, or a model's id on the hub")
    sub.add_argument(
        "data", type=Path, help="questions as JSON lines with `question` and `answer`, the result after ####"
    )
    sub.add_argument("--items", type=int, help="only the first so many questions")
    sub.add_argument(
        "--places", default="all", help="all places of a text (as the paper), or those of the answer alone"
    )
    sub.add_argument("--out", type=folder, help="folder for the results (default: probes in the runs folder)")
    add_runs(sub)


def act(options, rest) -> int:
    """Print a table by layer; keep entropies, summary and pictures."""
    from stagewise.hub import attention
    from stagewise.lab.draw.pictures import save
    from stagewise.lab.execute.progress import shown
    from stagewise.lab.store.files import write_json
    from stagewise.lab.store.runs import runs_root

    settings = attention.Probe(options.model, options.data, options.items, options.places)
    name = f"{Path(options.model).name or 'model'}.{options.data.stem}.{options.places}"
    out = options.out or (options.runs or runs_root()) / "probes" / name
    found = attention.probe(settings, out, shown())
    rows = attention.summary(found)
    write_json(out / "summary.json", {"questions": len(found), "layers": rows})
    save(
        attention.picture(found, f"{options.model}, {len(found)} questions"),
        out / "entropy.svg",
        out / "entropy.png",
    )
    print(
        f"{'layer':>5}  "
        + "  ".join(f"{setup:>17}" for setup in attention.SETUPS)
        + "   lower when matched [95 %], heads"
    )
    for row in rows:
        middle, low, high = row["lower matched"]
        means = "  ".join(f"{row[setup]:>17.4f}" for setup in attention.SETUPS)
        print(
            f"{row['layer']:>5}  {means}   {middle:+.4f} [{low:+.4f}, {high:+.4f}], "
            f"{row['heads lower matched']} of {row['heads']}"
        )
    print(f"entropies, summary and pictures: {out}")
    return 0
