"""Running programs that are no Python packages of ours: tools that end, and servers that go on."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

START_S = 120
"""Phoenix needs 15 to 25 seconds on an idle machine with two cores."""


def run(command: Sequence[str | Path], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Return how a command ended that was given this text."""
    assert shutil.which(str(command[0])), f"{command[0]} is missing"
    return subprocess.run([*map(str, command)], input=text, capture_output=True, text=True, timeout=120, check=False)


@contextmanager
def serving(command: Sequence[str], folder: Path, environment: Mapping[str, str], url: str) -> Iterator[None]:
    """Let a server run in *folder*, from when it answers at *url*."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        _wait_for(url, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """Return a port of the loopback interface that nobody listened at just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)  # another process opens the port
    raise RuntimeError(f"{process.args!r} did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
