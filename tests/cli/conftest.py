"""Runs the real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import GRAPHS, Command, Done

from tracegraph.checkpoint.sqlite import SqliteSaver


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: a trace store of its own, and no OpenTelemetry settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACEGRAPH_"))}
    return kept | {"TRACEGRAPH_HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "error"}


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Command:
    def run(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "tracegraph.cli", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            env=environment | (env or {}),
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[], Any]:
    """Read what the default checkpoint database has of each thread, without another process."""

    def read() -> Any:
        if not (path := tmp_path / "home" / "checkpoints.db").exists():
            return None
        with SqliteSaver.from_conn_string(path) as saver:
            return saver.list_threads()

    return read


@pytest.fixture
def run(command: Command) -> Command:
    """Run one of the sample graphs by name."""

    def run_sample(name: str, *arguments: str, **options: Any) -> Done:
        return command("run", f"{GRAPHS}:{name}", *arguments, **options)

    return run_sample
