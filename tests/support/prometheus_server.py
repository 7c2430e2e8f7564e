"""A real Prometheus of its own: on loopback, with an empty database, gone at the end."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

START_S = 60


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of its API; AssertionError with its complaint if it has one."""
        try:
            with urlopen(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=10) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            raise AssertionError(json.load(error)["error"]) from error

    def query(self, question: str) -> list[Any]:
        """Return the series that it answers with."""
        found: list[Any] = self.ask("query", query=question)["result"]
        return found


@contextmanager
def running_prometheus(command: str, folder: Path, targets: Mapping[str, str], rules: Path | None = None) -> Iterator[Prometheus]:
    """Let one scrape each of these addresses twice a second, under the name of its job."""
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "400ms", "evaluation_interval": "500ms"},
        "rule_files": [str(rules)] if rules else [],
        "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(config), "utf-8")  # YAML, as all JSON is
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    log = folder / "prometheus.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [command, f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"http://{address}/-/ready", process, log)
        yield Prometheus(f"http://{address}")
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)  # another process opens the port
    raise RuntimeError(f"Prometheus did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
