"""What tests in a browser share."""

import time


def watched(page) -> list[str]:
    """What goes wrong on a page, as it happens."""
    wrong: list[str] = []
    page.on(
        "console",
        lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return wrong


def until(page, condition: str, seconds: float = 30) -> None:
    """Wait for a condition on the page, asked from outside: a page's policy may forbid it to evaluate one."""
    ends = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < ends, f"still not so: {condition}"
        page.wait_for_timeout(100)
