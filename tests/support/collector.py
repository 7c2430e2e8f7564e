"""A real OpenTelemetry collector that is not ours: rotel, a binary in a wheel. What it prints is an independent decoder."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from other_process import free_port, running, wait_until

NO_ROTEL = "no rotel: install the `test` extra, which brings it on Linux, or set TRACEGRAPH_TEST_ROTEL to its agent"

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_FIELD = re.compile(r" *(Trace ID|Parent ID|ID|Name|Kind|Status code|Status message) *: (.*)")
_TIME = re.compile(r"(Start|End) time: (\d+)")
_PAIR = re.compile(r" +-> ([\w.]+): ((?:Str|Int|Double|Bool|Slice)\(.*)")
_HEADING = re.compile(r"(Span|SpanEvent|SpanLink|ResourceSpans|ScopeSpans) #\d+")
_ABOUT = re.compile(r" +-> (Name|Timestamp|Trace ID|ID|TraceState|DroppedAttributesCount): (.*)")


@dataclass
class Part:
    """A span, or an event or link of one: what the decoder printed of it."""

    fields: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[Part] = field(default_factory=list)
    links: list[Part] = field(default_factory=list)
    scope: str = ""


@dataclass(frozen=True)
class Rotel:
    """A running collector."""

    grpc_endpoint: str
    http_endpoint: str
    log: Path

    def spans(self, expected: set[str]) -> dict[str, Part]:
        """Return the spans received so far by id, once all *expected* ones are there.

        Raises:
            TimeoutError: they are not after ten seconds.
        """
        deadline = time.monotonic() + 10
        while True:
            found = parse(self.log.read_text(encoding="utf-8"))
            if expected <= found.keys():
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"of {sorted(expected)}, rotel got {sorted(found.keys() & expected)}; see {self.log}")
            time.sleep(0.02)  # another process writes the file


def find_rotel() -> Path | None:
    """Return the agent's binary."""
    if yours := os.environ.get("TRACEGRAPH_TEST_ROTEL"):
        return Path(yours)
    wheel = find_spec("rotel")
    places = [Path(place) / "rotel-agent" for place in (wheel.submodule_search_locations or () if wheel else ())]
    return next((place for place in places if place.exists()), None)


@contextmanager
def running_rotel(program: Path, folder: Path) -> Iterator[Rotel]:
    """Run the collector with a log of all it decodes, on free ports of the loopback interface.

    Raises:
        RuntimeError: it did not start.
    """
    grpc_port, http_port = free_port(), free_port()
    log = folder / "rotel.log"
    command = [
        str(program), "start", "--pid-file", str(folder / "rotel.pid"), "--exporter", "blackhole",
        "--otlp-grpc-endpoint", f"127.0.0.1:{grpc_port}", "--otlp-http-endpoint", f"127.0.0.1:{http_port}",
        "--debug-log", "traces", "--debug-log-verbosity", "detailed",
    ]  # fmt: skip
    with running(command, log, patience_s=10) as process:
        for port in (grpc_port, http_port):
            wait_until(partial(_listens, port), process, log, limit_s=20, pause_s=0.02)
        yield Rotel(f"http://127.0.0.1:{grpc_port}", f"http://127.0.0.1:{http_port}", log)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def parse(log: str) -> dict[str, Part]:
    """Return the spans in the detailed debug log, by span id."""
    reader = _Reader()
    for line in _COLOURS.sub("", log).split("\n"):
        reader.read(line)
    return {span.fields["ID"]: span for span in reader.spans if "ID" in span.fields}


class _Reader:
    """Reads line by line; a line of no known form goes on with the value before it, which has line breaks."""

    def __init__(self) -> None:
        self.spans: list[Part] = []
        self._part: Part | None = None
        self._scope = ""
        self._last: tuple[str, str] | None = None

    def read(self, line: str) -> None:
        if line.startswith("InstrumentationScope "):
            self._scope = line.removeprefix("InstrumentationScope ")
        elif heading := _HEADING.fullmatch(line):
            self._begin(heading[1])
        elif self._part is not None and (pair := _PAIR.fullmatch(line)):
            self._last = (pair[1], pair[2])
            self._part.attributes[pair[1]] = _decoded(pair[2])
        elif self._part is not None and (found := _FIELD.fullmatch(line) or _ABOUT.fullmatch(line) or _TIME.fullmatch(line)):
            self._part.fields[found[1]] = found[2]
        elif (
            self._part is not None
            and self._last is not None
            and line.strip() not in {"Attributes:", "Events:", "Links:", "Attributes::"}
        ):
            self._last = (self._last[0], f"{self._last[1]}\n{line}")
            self._part.attributes[self._last[0]] = _decoded(self._last[1])

    def _begin(self, kind: str) -> None:
        self._last = None
        if kind in {"ResourceSpans", "ScopeSpans"}:
            self._part = None
            return
        self._part = Part(scope=self._scope)
        match kind:
            case "Span":
                self.spans.append(self._part)
            case "SpanEvent":
                self.spans[-1].events.append(self._part)
            case _:
                self.spans[-1].links.append(self._part)


def _decoded(text: str) -> Any:
    kind, _, rest = text.partition("(")
    inner = rest.rstrip("\n").removesuffix(")")  # an entry of the log ends with an empty line
    match kind:
        case "Int":
            return int(inner)
        case "Double":
            return float(inner)
        case "Bool":
            return inner == "true"
        case "Slice":
            return tuple(_decoded(item) for item in re.split(r", (?=(?:Str|Int|Double|Bool)\()", inner)) if inner else ()
        case _:
            return inner


def is_expected_here() -> bool:
    """Say whether the `test` extra brings a binary for this system, so that its absence is a mistake."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.version_info < (3, 14)
