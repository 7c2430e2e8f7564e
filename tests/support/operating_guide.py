"""The questions of docs/operating.md with their answers in each language, and the incident that they are asked about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"

LANGUAGES = ("sh", "sql", "promql", "traceql")


@dataclass(frozen=True)
class Question:
    """One question; ``answers`` has a text for each language that can answer it, ``text`` all that is said."""

    number: int
    title: str
    text: str
    answers: dict[str, str]


def questions() -> list[Question]:
    """Return the page's questions in order."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    found = []
    for section in sections:
        if (heading := re.match(r"(\d+)\. (.*)\n", section)) is not None:
            blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
            assert len(blocks) == len(dict(blocks)), f"question {heading[1]} has two answers in one language"
            found.append(Question(int(heading[1]), heading[2], section, dict(blocks)))
    return found


def commands(name: str) -> list[str]:
    """Return the commands of the block that begins with ```sh *name*."""
    (block,) = re.findall(rf"^```sh {name}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return block.splitlines()
