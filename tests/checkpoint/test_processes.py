"""Several processes and threads on one database."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import other_writer
import pytest
from databases import DATABASES, opened
from other_writer import app_on

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.errors import ConcurrentRunError


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgres_url") if request.param == "postgres" else tmp_path / "checkpoints.db")


@pytest.fixture
def saver(database: str) -> Iterator[BaseCheckpointSaver]:
    with opened(database) as made:
        yield made


def other_process(database: str, thread: str, tag: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, other_writer.__file__, database, thread, tag, str(count)], stdout=subprocess.PIPE, text=True
    )


def outcome(process: subprocess.Popen[str]) -> list[str]:
    text, _ = process.communicate()
    assert process.returncode == 0
    found: list[str] = json.loads(text)
    return found


def log_of(saver: BaseCheckpointSaver, thread: str) -> list[str]:
    found = saver.get({"configurable": {"thread_id": thread}})
    assert found is not None
    log: list[str] = found["channel_values"]["log"]
    return log


def test_processes_on_threads_of_their_own_do_not_disturb_each_other(database: str, saver: BaseCheckpointSaver) -> None:
    """Two make the same new file at once; nothing is lost, and nobody fails for want of a lock."""
    count = 25

    processes = [other_process(database, thread, thread, count) for thread in "ab"]

    for thread, process in zip("ab", processes, strict=True):
        assert outcome(process) == log_of(saver, thread) == [f"{thread}{number}" for number in range(count)]


def test_processes_on_one_thread_lose_no_result_in_silence(database: str, saver: BaseCheckpointSaver) -> None:
    """Every run that did not raise is in the thread, once."""
    found = [entry for process in [other_process(database, "1", tag, 25) for tag in "ab"] for entry in outcome(process)]

    log = log_of(saver, "1")

    assert len(log) == len(set(log))
    assert set(found) <= set(log)


def test_run_whose_thread_another_process_moved_on_raises(database: str, saver: BaseCheckpointSaver) -> None:
    """The thread is as the other process left it; the error names thread and checkpoints."""

    def meanwhile(_state: Any) -> Any:
        assert outcome(other_process(database, "1", "other", 1)) == ["other0"]
        return {"log": ["lost"]}

    app = app_on(saver, meanwhile)
    with pytest.raises(ConcurrentRunError, match="thread '1'") as caught:
        app.invoke({"log": ["mine"]}, {"configurable": {"thread_id": "1"}}, durability="sync")

    head = saver.get({"configurable": {"thread_id": "1"}})
    assert head is not None and caught.value.found == head["id"]
    assert log_of(saver, "1")[-1] == "other0"
    assert "lost" not in log_of(saver, "1")


def test_threads_share_a_saver(saver: BaseCheckpointSaver) -> None:
    """Each has a thread of the graph; all share one saver."""
    app = app_on(saver)

    def work(thread: int) -> None:
        for number in range(5):
            app.invoke({"log": [f"{number}"]}, {"configurable": {"thread_id": thread}})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))

    assert [log_of(saver, str(thread)) for thread in range(16)] == [[f"{number}" for number in range(5)]] * 16


def test_four_processes_work_on_fifty_threads_each(database: str, saver: BaseCheckpointSaver) -> None:
    """Threads of their own, and one that all of them write to: nothing is lost, doubled, or refused for want of a lock."""
    command = [sys.executable, other_writer.__file__, database, "--threads", "50"]
    processes = [subprocess.Popen([*command, tag], stdout=subprocess.PIPE, text=True) for tag in "abcd"]

    found = {tag: outcome(process) for tag, process in zip("abcd", processes, strict=True)}

    for tag in "abcd":
        for number in range(50):
            assert log_of(saver, f"{tag}{number}") == ["0", "0-done", "1", "1-done"]
    log = log_of(saver, "shared")
    assert len(log) == len(set(log))
    # A run that was refused leaves nothing behind but perhaps its input, which was stored before somebody overtook it.
    assert {f"{entry}-done" for entries in found.values() for entry in entries} == {entry for entry in log if "-done" in entry}
