"""Errors that tell the user in one sentence what cannot be done."""


class Refused(Exception):
    """A request that is refused before any work starts; its message names the cause and the way out."""


class Unwritable(Refused):
    """A file or folder that cannot be written, for instance on a full or read-only disk. The run that wanted
    to write is not at fault, so it does not count as failed."""


class Failed(Refused):
    """A run that broke. The message says in one sentence what went wrong; `trace` is the traceback."""

    def __init__(self, message: str, trace: str = ""):
        super().__init__(message)
        self.trace = trace


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message, after the error's type unless it is a refusal."""
    told = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    return next(iter(told.strip().splitlines()), type(error).__name__)


def require(condition: bool, message: str) -> None:
    """Refuse with `message` unless `condition` holds."""
    if not condition:
        raise Refused(message)


def number(name: str, word: str) -> float:
    """Return the number that the user wrote as `word`. It must be above 0; the error names it `name`, for
    instance the name of an environment variable."""
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    require(0 < value < float("inf"), f"{name} must be a number above 0, not {word!r}")
    return value


def nearest(name: str, known) -> str:
    """A hint at the known name that `name` was probably meant to be, or an empty string."""
    from difflib import get_close_matches

    close = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""
