"""Real backends that are too large for every test run: `make test-otlp` installs or finds them and says where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from other_process import free_port, serving
from prometheus_server import running_prometheus
from scraped import Running, measured_program


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
    url = f"http://127.0.0.1:{port}"
    with serving([program, "serve"], folder, kept | settings, f"{url}/healthz"):
        yield url


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A program of tracegraph's, done with its runs, whose metrics can be scraped."""
    with measured_program(tmp_path_factory.mktemp("program")) as running:
        yield running


@pytest.fixture(scope="session")
def prometheus_command() -> Path:
    """The server's command; promtool lies beside it."""
    if not (program := os.environ.get("TRACEGRAPH_TEST_PROMETHEUS")):
        pytest.skip("`make test-otlp` sets TRACEGRAPH_TEST_PROMETHEUS to the command of an installed Prometheus")
    return Path(program)


@pytest.fixture(scope="session")
def prometheus(prometheus_command: Path, measured: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a running Prometheus with an empty database, which scrapes that program."""
    folder = tmp_path_factory.mktemp("prometheus")
    target = measured.url.removeprefix("http://").removesuffix("/metrics")
    with running_prometheus(str(prometheus_command), folder, {"program": target}) as server:
        yield server.url
