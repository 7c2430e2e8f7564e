"""A killed process loses nothing that was stored: real processes, SIGKILL at random moments, resumed in new ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from databases import DATABASES

ROUNDS = int(os.environ.get("TRACEGRAPH_CRASH_ROUNDS", "20"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.timeout(60 + 6 * ROUNDS)
def test_killed_run_resumes_to_the_same_values_and_repeats_nothing_stored(
    tmp_path: Path, durability: str, database: str, request: pytest.FixtureRequest
) -> None:
    """The values are those of a run left alone, tasks with stored writes ran once, and the database is sound."""
    host = [sys.executable, str(Path(__file__).with_name("crash_host.py")), str(tmp_path), durability, str(ROUNDS)]
    if database == "postgres":
        host.append(request.getfixturevalue("postgres_url"))
    done = subprocess.run(host, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    whole, *rounds = map(json.loads, done.stdout.splitlines())

    assert len(rounds) == ROUNDS
    assert any(each["was_killed"] for each in rounds)
    assert len(whole["effects"]) == len(set(whole["effects"])) == len(whole["values"]["log"])
    for each in rounds:
        assert each["values"] == whole["values"]
        assert each["is_sound"]
        repeated = {entry for entry in each["effects"] if each["effects"].count(entry) > 1}
        # Under sync only tasks of the superstep that was cut off: left and right, or one other.
        assert durability == "async" or len({entry.lstrip("leftrigh") for entry in repeated}) <= 1
        assert {entry: each["effects"].count(entry) for entry in each["stored"]} == dict.fromkeys(each["stored"], 1)
