"""What the user did that cannot be done, said in one sentence."""


class Refused(Exception):
    """A request that is refused before any work starts; its message names the cause and the way out."""


class Unwritable(Refused):
    """A place that cannot be written: a full or read-only disk. No fault of what was to be written there."""


class Failed(Refused):
    """A run that could not be made: what broke, in a sentence, and the traceback for those who ask."""

    def __init__(self, message: str, trace: str = ""):
        super().__init__(message)
        self.trace = trace


def one_line(error: BaseException) -> str:
    """An error in a line; a refusal is a sentence already."""
    told = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    return next(iter(told.strip().splitlines()), type(error).__name__)


def require(condition: bool, message: str) -> None:
    """Refuse with `message` unless `condition` holds."""
    if not condition:
        raise Refused(message)


def number(name: str, word: str) -> float:
    """A number above 0 that the user gave by a name, such as that of an environment variable."""
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
