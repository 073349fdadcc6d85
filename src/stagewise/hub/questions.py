"""Questions with worked answers, from a file of JSON lines as GSM8K has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from stagewise.errors import Refused, require

MARK = "####"


@dataclass(frozen=True)
class Question:
    """A question, its worked answer, and the result that stands after `####`."""

    question: str
    answer: str

    @property
    def result(self) -> str:
        return self.answer.rpartition(MARK)[2].strip()

    @property
    def with_reasoning(self) -> str:
        return f"{self.question} {self.answer}"

    @property
    def without_reasoning(self) -> str:
        return f"{self.question} The answer is {self.result}."


def read_questions(path: Path) -> list[Question]:
    """All questions of a file; a line that cannot be used is named by its number."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is not text in UTF-8") from error
    found = [_read(line, f"line {number} of {path}") for number, line in enumerate(lines, 1) if line.strip()]
    require(len(found) > 0, f"{path} has no questions")
    return found


def _read(line: str, where: str) -> Question:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise Refused(f"{where} is not JSON: {error}") from error
    for name in ("question", "answer"):
        require(
            isinstance(entry, dict) and isinstance(entry.get(name), str),
            f"{where} has no text under {name!r}",
        )
    question = Question(entry["question"], entry["answer"])
    require(
        MARK in question.answer and question.result != "", f"{where} has no result after {MARK} in its answer"
    )
    return question
