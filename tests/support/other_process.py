"""Programs that are not ours, for as long as a test needs them: a port for each, and an end."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["free_port", "running", "wait_until"]


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
