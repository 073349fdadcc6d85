"""Settings of an experiment from command-line options, typed by its dataclass."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from stagewise.errors import Refused, nearest


def parse_settings(cls, default, arguments: list[str]):
    """Settings from options, typed by the dataclass. The first wrong option is named in one sentence."""
    import tyro

    from stagewise.lab.spec.settings import flatten, hint_of, kind_of

    known = {f"--{path}" for path in flatten(default)}
    if "--help" not in arguments:
        for argument in arguments:
            option = argument.partition("=")[0]
            if option.startswith("--") and option.replace("-", "_").replace("__", "--", 1) not in known:
                raise Refused(
                    f"{cls.name} has no setting {option}{nearest(option, known)} (see stagewise run "
                    f"{cls.name} --help)"
                )

    def parse(some: list[str]):
        return tyro.cli(
            cls, prog=f"stagewise run {cls.name}", default=default, args=some, use_underscores=True
        )

    def parse_quietly(some: list[str]):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return parse(some)

    if "--help" in arguments:
        parse(["--help"])
    try:
        return parse_quietly(arguments)
    except SystemExit as stop:
        if not arguments or not arguments[0].startswith("--"):
            raise Refused(
                f"{cls.name}: {arguments[0]!r} is not an option (settings are given as --name value)"
            ) from stop
        starts = [i for i, a in enumerate(arguments) if a.startswith("--")] + [len(arguments)]
        for begin, end in zip(starts, starts[1:]):
            try:
                parse_quietly(arguments[begin:end])
            except SystemExit:
                given = " ".join(arguments[begin + 1 : end]) or "nothing"
                kind = kind_of(hint_of(cls, arguments[begin].partition("=")[0].lstrip("-").replace("-", "_")))
                raise Refused(f"{cls.name}: {arguments[begin]} takes {kind}, not {given}") from stop
        raise Refused(
            f"{cls.name}: {' '.join(arguments)} cannot be read (see stagewise run {cls.name} --help)"
        ) from stop
