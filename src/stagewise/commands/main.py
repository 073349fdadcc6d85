"""The command line: reads arguments, hands them to one command each, and turns refusals into sentences."""

from __future__ import annotations

import argparse
import os
import sys
from io import TextIOWrapper

from stagewise import __version__, threads
from stagewise.commands import (
    export,
    figure,
    probe_attention,
    report,
    reproduce,
    run,
    runs,
    serve,
    sweep,
)
from stagewise.commands import list as list_
from stagewise.errors import Refused

COMMANDS = {
    "list": list_,
    "run": run,
    "reproduce": reproduce,
    "report": report,
    "sweep": sweep,
    "figure": figure,
    "serve": serve,
    "probe-attention": probe_attention,
    "export": export,
    "runs": runs,
}
INTERRUPTED = 130


def entry() -> None:
    """The `stagewise` command. A request to end (SIGTERM) is taken like Ctrl-C: what is done is saved."""
    from stagewise.lab.execute import interrupt

    interrupt.listen()
    if isinstance(sys.stdout, TextIOWrapper):  # a folder may hold names that no terminal can show
        sys.stdout.reconfigure(errors="backslashreplace")
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == INTERRUPTED:
        os._exit(code)  # a compiler stopped half-way must not be tidied up: that ends in a crash
    sys.exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every refusal is one sentence on standard error and exit code 2."""
    try:
        options, rest = _parser().parse_known_args(arguments)
        if rest and options.act is not run.act:
            raise Refused(
                f"{options.command}: unknown option {rest[0]!r} (see stagewise {options.command} --help)"
            )
        if getattr(options, "preset", None) not in (None, "quick"):
            threads.all_cores()
        return options.act(options, rest)
    except Refused as refusal:
        print(f"stagewise: {refusal}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stagewise: interrupted; the same command goes on from what is saved", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read has seen enough; what is still to be flushed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"stagewise: {error.strerror or error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"stagewise: there is not enough memory: {error}", file=sys.stderr)
        return 1


class _Parser(argparse.ArgumentParser):
    """Errors as one sentence, like all others."""

    def error(self, message):
        raise Refused(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "stagewise", description="How transformers learn to reason, stage by stage.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"stagewise {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=command.ABOUT,
            description=command.ABOUT,
            allow_abbrev=False,
            add_help=command is not run,  # its help is that of the experiment named
        )
        sub.set_defaults(act=command.act)
        command.add_options(sub)
    return parser
