"""`stagewise export`: a trained GPT-2 in Hugging Face's format."""

from __future__ import annotations

import argparse

from stagewise.commands.arguments import folder
from stagewise.errors import Refused, require

ABOUT = "Write a trained GPT-2 as a folder that Hugging Face's library loads."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", type=folder, help="a finished run's folder, as `stagewise run` prints it")
    sub.add_argument("out", type=folder, help="the folder to write")
    sub.add_argument("--seed", type=int, help="which seed's model (default: the first in the folder)")


def act(options, rest) -> int:
    """Write one seed's model."""
    from stagewise.hub.folder import write_folder
    from stagewise.lab import api
    from stagewise.lab.store.files import make_folder
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
