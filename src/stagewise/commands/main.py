"""The command line: reads arguments, hands them to one command each, and turns whatever goes wrong into a
sentence."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from io import TextIOWrapper

from stagewise import __version__, process
from stagewise.commands import (
    export,
    figure,
    ledger,
    probe_attention,
    report,
    reproduce,
    run,
    runs,
    serve,
    sweep,
)
from stagewise.commands import list as list_
from stagewise.errors import Failed, Refused, one_line

COMMANDS = {
    "list": list_,
    "run": run,
    "reproduce": reproduce,
    "report": report,
    "ledger": ledger,
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
    try:
        process.begin()
    except Refused as refusal:
        code = _told(refusal)
    else:
        code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == INTERRUPTED:
        os._exit(code)  # a compiler stopped half-way must not be tidied up: that ends in a crash
    sys.exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Whatever goes wrong is a sentence on standard error, its traceback only with --debug:
    a refusal is exit code 2, what broke is 1."""
    debug = "--debug" in (sys.argv[1:] if arguments is None else arguments)
    try:
        options, rest = _parser().parse_known_args(arguments)
        if rest and options.act is not run.act:
            raise Refused(
                f"{options.command}: unknown option {rest[0]!r} (see stagewise {options.command} --help)"
            )
        return options.act(options, rest)
    except KeyboardInterrupt:
        print("stagewise: interrupted; the same command goes on from what is saved", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read has seen enough; what is still to be flushed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _told(error, debug)


def _told(error: Exception, debug: bool = False) -> int:
    """Say what went wrong; the exit code that follows."""
    if debug:
        print(getattr(error, "trace", "") or "".join(traceback.format_exception(error)), file=sys.stderr)
    match error:
        case Refused():
            told = str(error)
        case OSError():
            told = error.strerror or str(error)
        case MemoryError():
            told = f"there is not enough memory: {error}"
        case _:
            told = f"this should not happen: {one_line(error)} (--debug shows where)"
    print(f"stagewise: {told}", file=sys.stderr)
    return 2 if isinstance(error, Refused) and not isinstance(error, Failed) else 1


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
        sub.add_argument("--debug", action="store_true", help="show the traceback of what breaks")
    return parser
