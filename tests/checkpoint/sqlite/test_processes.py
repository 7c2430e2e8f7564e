"""Several processes and threads on one file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlite_writer
from sqlite_writer import app_on

from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.errors import ThreadConflictError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints.db"


@pytest.fixture
def saver(path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(path) as made:
        yield made


def other_process(path: Path, thread: str, tag: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, sqlite_writer.__file__, str(path), thread, tag, str(count)], stdout=subprocess.PIPE, text=True
    )


def outcome(process: subprocess.Popen[str]) -> list[str]:
    text, _ = process.communicate()
    assert process.returncode == 0
    found: list[str] = json.loads(text)
    return found


def log_of(saver: SqliteSaver, thread: str) -> list[str]:
    found = saver.get({"configurable": {"thread_id": thread}})
    assert found is not None
    log: list[str] = found["channel_values"]["log"]
    return log


def test_processes_on_threads_of_their_own_do_not_disturb_each_other(path: Path, saver: SqliteSaver) -> None:
    """Two make the same new file at once; nothing is lost, and nobody fails for want of a lock."""
    count = 25

    processes = [other_process(path, thread, thread, count) for thread in "ab"]

    for thread, process in zip("ab", processes, strict=True):
        assert outcome(process) == log_of(saver, thread) == [f"{thread}{number}" for number in range(count)]


def test_processes_on_one_thread_lose_no_result_in_silence(path: Path, saver: SqliteSaver) -> None:
    """Every run that did not raise is in the thread, once."""
    found = [entry for process in [other_process(path, "1", tag, 25) for tag in "ab"] for entry in outcome(process)]

    log = log_of(saver, "1")

    assert len(log) == len(set(log))
    assert set(found) <= set(log)


def test_run_whose_thread_another_process_moved_on_raises(path: Path, saver: SqliteSaver) -> None:
    """The thread is as the other process left it; the error names thread and checkpoints."""

    def meanwhile(_state: Any) -> Any:
        assert outcome(other_process(path, "1", "other", 1)) == ["other0"]
        return {"log": ["lost"]}

    app = app_on(saver, meanwhile)
    with pytest.raises(ThreadConflictError, match="thread '1'") as caught:
        app.invoke({"log": ["mine"]}, {"configurable": {"thread_id": "1"}}, durability="sync")

    head = saver.get({"configurable": {"thread_id": "1"}})
    assert head is not None and caught.value.found == head["id"]
    assert log_of(saver, "1")[-1] == "other0"
    assert "lost" not in log_of(saver, "1")


def test_threads_share_a_saver(saver: SqliteSaver) -> None:
    """Each has a thread of the graph; all share one connection."""
    app = app_on(saver)

    def work(thread: int) -> None:
        for number in range(5):
            app.invoke({"log": [f"{number}"]}, {"configurable": {"thread_id": thread}})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))

    assert [log_of(saver, str(thread)) for thread in range(16)] == [[f"{number}" for number in range(5)]] * 16
