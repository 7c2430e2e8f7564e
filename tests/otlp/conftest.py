"""Real backends that are too large for every test run: `make test-otlp` installs or finds them and says where."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from other_process import free_port, running, wait_until
from scraped import Running, measured_program

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
    url = f"http://127.0.0.1:{port}"
    with _serving([program, "serve"], folder, kept | settings, f"{url}/healthz"):
        yield url


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A program of tracegraph's, done with its runs, whose metrics can be scraped."""
    with measured_program(tmp_path_factory.mktemp("program")) as program:
        yield program


@pytest.fixture(scope="session")
def prometheus_command() -> Path:
    """The server's command; promtool lies beside it."""
    if not (program := os.environ.get("TRACEGRAPH_TEST_PROMETHEUS")):
        pytest.skip("`make test-otlp` sets TRACEGRAPH_TEST_PROMETHEUS to the command of an installed Prometheus")
    return Path(program)


@pytest.fixture(scope="session")
def prometheus(prometheus_command: Path, measured: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a running Prometheus with an empty database, which scrapes that program; it keeps exemplars, if it gets any."""
    folder = tmp_path_factory.mktemp("prometheus")
    target = measured.url.removeprefix("http://").removesuffix("/metrics")
    config = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
        "scrape_configs": [{"job_name": "program", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), "utf-8")  # YAML, as all JSON is
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(prometheus_command),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
    ]
    with _serving(command, folder, dict(os.environ), f"http://{address}/-/ready"):
        yield f"http://{address}"


@contextmanager
def _serving(command: Sequence[str], folder: Path, environment: Mapping[str, str], url: str) -> Iterator[None]:
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
