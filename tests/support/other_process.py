"""Programs that are not ours, for as long as a test needs them: a port for each, and an end."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

__all__ = ["free_port", "run", "running", "serving", "wait_until"]

START_S = 120
"""Phoenix needs 15 to 25 seconds on an idle machine with two cores."""


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], log: Path, *, patience_s: float, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program whose output goes to *log*; asked to end, it has *patience_s* to do so."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(is_up: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, *, limit_s: float, pause_s: float) -> None:
    """Wait until a program is up.

    Raises:
        RuntimeError: it ended, or was not up in time.
    """
    deadline = time.monotonic() + limit_s
    while process.poll() is None and time.monotonic() < deadline:
        if is_up():
            return
        time.sleep(pause_s)  # another process opens the port
    raise RuntimeError(f"{log.stem} did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


def run(command: Sequence[str | Path], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Return how a command ended that was given this text."""
    assert shutil.which(str(command[0])), f"{command[0]} is missing"
    return subprocess.run([*map(str, command)], input=text, capture_output=True, text=True, timeout=120, check=False)


@contextmanager
def serving(command: Sequence[str], folder: Path, environment: Mapping[str, str], url: str) -> Iterator[None]:
    """Let a server run in *folder*, from when it answers at *url*."""
    log = folder / "server.log"
    with running([*command], log, patience_s=20, cwd=folder, env=environment) as process:
        wait_until(lambda: _answers(url), process, log, limit_s=START_S, pause_s=0.2)
        yield


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False
