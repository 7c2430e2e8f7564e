"""The console sessions in the documentation are what the command really prints."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in [*ROOT.glob("docs/*.md"), ROOT / "README.md"] if "```console\n" in page.read_text("utf-8"))

PROGRAMS = """
tracegraph() { "$PYTHON" -m tracegraph.cli "$@"; }
python() { "$PYTHON" "$@"; }
"""
"""What the sessions run, as it is in an environment in which tracegraph is installed."""

CHANGING = {
    "<checkpoint>": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "<id>": r"\b[0-9a-f]{32}\b",
    "<time>": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
}
"""What differs from run to run; everything else has to be the same."""


def sessions(page: Path) -> list[tuple[str, str]]:
    """Return the commands of a page with what each prints, in order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [
        (command, out) for block in blocks for command, out in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


def steady(text: str) -> str:
    for name, pattern in CHANGING.items():
        text = re.sub(pattern, name, text)
    return text


def test_there_are_sessions_to_check() -> None:
    """A renamed fence must not switch this off."""
    assert ROOT / "docs" / "checkpoints.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions_print_what_the_page_says(environment: dict[str, str], page: Path) -> None:
    """One after the other, each in a process of its own; `...` stands for anything."""
    found = sessions(page)
    assert found

    for command, expected in found:
        assert command.split()[0] in ("python", "tracegraph")
        done = subprocess.run(
            ["sh", "-c", PROGRAMS + command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            cwd=ROOT,
            env=environment | {"PYTHON": sys.executable, "PYTHONUNBUFFERED": "1", "PACE_S": "0.001"},
            check=False,
        )
        printed = steady(done.stdout)
        is_right = doctest.OutputChecker().check_output(steady(expected), printed, doctest.ELLIPSIS)
        assert is_right, f"$ {command}\n{printed}"
