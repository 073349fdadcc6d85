"""What the user did that cannot be done, said in one sentence."""


class Refused(Exception):
    """A request that is refused before any work starts; its message names the cause and the way out."""


class Unwritable(Refused):
    """A place that cannot be written: a full or read-only disk. No fault of what was to be written there."""


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
