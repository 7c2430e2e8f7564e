"""Real backends that are too large for every test run: `make test-otlp` installs them, and says so in the environment."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

START_S = 120
"""Phoenix needs 15 to 25 seconds on an idle machine with two cores."""


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a running arize-phoenix with an empty database, which takes OTLP over HTTP."""
    program = os.environ.get("TRACEGRAPH_TEST_PHOENIX")
    if not program:
        pytest.skip("`make test-otlp` installs arize-phoenix (830 MB) and sets TRACEGRAPH_TEST_PHOENIX to its command")
    folder = tmp_path_factory.mktemp("phoenix")
    port = _free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(_free_port()),
        # It asks nobody on the network, and runs nothing for anybody.
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
        "PHOENIX_AGENTS_DISABLE_BASH": "true",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
    log = folder / "phoenix.log"
    with log.open("wb") as out:
        process = subprocess.Popen([program, "serve"], cwd=folder, env=kept | settings, stdout=out, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/healthz", process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
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
    raise RuntimeError(f"phoenix did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
