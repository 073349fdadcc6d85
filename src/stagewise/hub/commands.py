"""The commands that deal with Hugging Face's library: `stagewise probe-attention` and `stagewise export`."""

from __future__ import annotations

from pathlib import Path

from stagewise.errors import Refused, require
from stagewise.lab.files import make_folder, write_json
from stagewise.lab.progress import shown
from stagewise.lab.runs import runs_root


def probe_attention(options) -> int:
    """Print a table by layer; keep entropies, summary and pictures."""
    from stagewise.hub import attention
    from stagewise.lab.pictures import save

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


def export(options) -> int:
    """Write one seed's model."""
    from stagewise.hub.folder import write_folder
    from stagewise.lab import api
    from stagewise.models.gpt import GPT

    require(not options.out.is_file(), f"{options.out} is a file: export into a new folder")
    run = api.load(options.run)
    seed = options.seed if options.seed is not None else run.blocks[0].first
    model = run.model(seed)
    if not isinstance(model, GPT):
        raise Refused(f"{run.experiment.name} has trained no GPT-2; parity.training does")
    require(
        not options.out.exists() or not any(options.out.iterdir()),
        f"{options.out} is not empty: export into a new folder",
    )
    write_folder(model, make_folder(options.out))
    print(
        f"{options.out}: seed {seed} of {run.experiment.name}; "
        f"GPT2LMHeadModel.from_pretrained({str(options.out)!r}) loads it"
    )
    return 0
