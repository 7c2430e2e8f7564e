"""The approval example: run in one process, answered in another, on a real database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "approval.py"
SHIPPED_LOG = EXAMPLES / "data" / "package-manager.log"


def process(*arguments: str, tmp_path: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACEGRAPH_"))}
    return subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=kept | {"TRACEGRAPH_HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "error"},
        check=False,
    )


def tracegraph(*arguments: str, tmp_path: Path) -> tuple[int, Any]:
    done = process("-m", "tracegraph.cli", *arguments, "--json", tmp_path=tmp_path)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def started(tmp_path: Path, log: Path = SHIPPED_LOG) -> Any:
    """Run the example until it asks; return its question."""
    given = json.dumps({"path": str(log), "report_path": str(tmp_path / "report.md")})
    code, paused = tracegraph(
        "run", f"{EXAMPLE}:graph", "--thread", "t", "--db", "approvals.db", "--input", given, tmp_path=tmp_path
    )
    assert (code, paused["status"]) == (3, "interrupted")
    (question,) = paused["interrupts"]
    return question


def test_the_report_is_written_once_a_person_agrees(tmp_path: Path) -> None:
    """Nothing is written before; the answer comes to another process, by the question's id."""
    question = started(tmp_path)
    assert (question["value"]["error_lines"], question["value"]["to"]) == (17, str(tmp_path / "report.md"))
    assert not (tmp_path / "report.md").exists()
    _, (thread,) = tracegraph("threads", "--db", "approvals.db", tmp_path=tmp_path)
    assert thread["latest"]["interrupts"] == [question]

    code, done = tracegraph(
        "resume", f"{EXAMPLE}:graph", "t", "--db", "approvals.db", "--id", f"{question['id']}=true", tmp_path=tmp_path
    )

    assert (code, done["status"], done["result"]["is_approved"]) == (0, "completed", True)
    assert (tmp_path / "report.md").read_text("utf-8") == done["result"]["report"]
    assert "## Errors: 17 lines, 12 kinds" in done["result"]["report"]
    _, state = tracegraph("state", "t", "--db", "approvals.db", "--graph", f"{EXAMPLE}:graph", tmp_path=tmp_path)
    assert (state["next"], state["interrupts"]) == ([], [])


@pytest.mark.parametrize("answer", ["false", '"yes"', "null"])
def test_any_other_answer_leaves_it_unwritten(tmp_path: Path, answer: str) -> None:
    """Only a clear yes counts; the run is over either way."""
    started(tmp_path)

    code, done = tracegraph("resume", f"{EXAMPLE}:graph", "t", "--db", "approvals.db", "--value", answer, tmp_path=tmp_path)

    assert (code, done["result"]["is_approved"]) == (0, False)
    assert not (tmp_path / "report.md").exists()


def test_an_empty_log_is_asked_about_too(tmp_path: Path) -> None:
    """There is nothing to read, but a report could be written."""
    (tmp_path / "empty.log").touch()

    question = started(tmp_path, tmp_path / "empty.log")

    assert question["value"]["error_lines"] == 0


@pytest.mark.parametrize(("reply", "is_written"), [("y", True), ("", False)])
def test_as_a_script_it_asks_on_the_terminal(tmp_path: Path, reply: str, is_written: bool) -> None:
    """One process, state in memory."""
    done = process(str(EXAMPLE), str(SHIPPED_LOG), "report.md", tmp_path=tmp_path, stdin=f"{reply}\n")

    assert done.returncode == 0
    assert "17 lines are errors, 1 warnings. [y/N]" in done.stdout
    assert (tmp_path / "report.md").exists() == is_written
    assert not (tmp_path / "home").exists()
