"""A real Prometheus of its own: on loopback, with an empty database, gone at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from other_process import free_port, serving


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
    """Let one scrape each of these addresses under the name of its job; it keeps exemplars, if it gets any."""
    config = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "500ms"},
        "rule_files": [str(rules)] if rules else [],
        "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(config), "utf-8")  # YAML, as all JSON is
    address = f"127.0.0.1:{free_port()}"
    words = [
        command,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
    ]
    with serving(words, folder, dict(os.environ), f"http://{address}/-/ready"):
        yield Prometheus(f"http://{address}")
