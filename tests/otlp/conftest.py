"""Real backends that are too large for every test run: `make test-otlp` installs them, and says so in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from other_process import free_port, running, wait_until

START_S = 120
"""Phoenix needs 15 to 25 seconds on an idle machine with two cores."""


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a running arize-phoenix with an empty database, which takes OTLP over HTTP."""
    program = os.environ.get("TRACEGRAPH_TEST_PHOENIX")
    if not program:
        pytest.skip("`make test-otlp` installs arize-phoenix (830 MB) and sets TRACEGRAPH_TEST_PHOENIX to its command")
    folder = tmp_path_factory.mktemp("phoenix")
    port = free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        # It asks nobody on the network, and runs nothing for anybody.
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
        "PHOENIX_AGENTS_DISABLE_BASH": "true",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
    log = folder / "phoenix.log"
    url = f"http://127.0.0.1:{port}"
    with running([program, "serve"], log, patience_s=20, cwd=folder, env=kept | settings) as process:
        wait_until(lambda: _answers(f"{url}/healthz"), process, log, limit_s=START_S, pause_s=0.2)
        yield url


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False
