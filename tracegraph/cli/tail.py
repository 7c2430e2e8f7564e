"""``tracegraph tail``: what runs do while they do it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from tracegraph.cli.output import ExitCode, json_text, note, printable
from tracegraph.cli.trace_store import opened_store, store_errors
from tracegraph_exporters.base import default_path
from tracegraph_exporters.filters import TraceFilter
from tracegraph_exporters.following import Follower, Point
from tracegraph_exporters.store import TraceStore
from tracegraph_exporters.tree import format_duration

__all__ = ["follow"]

_PAUSE_S: Final = 0.25


def follow(*, graph: str | None, thread_id: str | None, is_json: bool) -> ExitCode:
    """Print what comes in, a line each, until the keyboard stops it or nobody reads any more.

    Raises:
        CliError: the store cannot be read.
    """
    try:
        _wait_for_store()
        with opened_store() as store, store_errors():
            for points in _polled(Follower(store)):
                for point in _chosen(store, points, graph, thread_id):
                    print(json_text(asdict(point), indent=None) if is_json else _line(point), flush=True)
    except KeyboardInterrupt:
        return ExitCode.KEYBOARD
    except BrokenPipeError:
        # What is still in the buffer would be tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.COMPLETED


def _wait_for_store() -> None:
    if not default_path().exists():
        note(f"no traces yet in {str(default_path())!r}; waiting for the first")
    while not default_path().exists():
        time.sleep(_PAUSE_S)


def _polled(follower: Follower) -> Iterator[list[Point]]:
    while True:
        yield follower.poll()
        time.sleep(_PAUSE_S)


def _chosen(store: TraceStore, points: Iterable[Point], graph: str | None, thread_id: str | None) -> Iterator[Point]:
    for point in points:
        if thread_id is not None and point.thread_id != thread_id:
            continue
        if graph is None or _ran(store, point, graph):
            yield point


def _ran(store: TraceStore, point: Point, graph: str) -> bool:
    """Say whether the graph of this name runs or ran in the point's trace."""
    if point.point.startswith("graph.") and point.name == graph:
        return True
    which = TraceFilter(graph=graph)
    sql = f"SELECT EXISTS (SELECT 1 FROM traces {which.where()} AND trace_id = :trace_id)"  # noqa: S608  # constants only
    return bool(store.query(sql, which.values(0) | {"trace_id": point.trace_id})[0][0])


def _line(point: Point) -> str:
    at = datetime.fromtimestamp(point.at_ns / 1e9, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
    parts = [at, point.trace_id[:8], point.point, point.name]
    if point.superstep is not None:
        parts.append(f"step {point.superstep}")
    if point.duration_ns is not None:
        parts.append(format_duration(point.duration_ns))
    if point.status not in (None, "completed"):
        parts.append(str(point.status) + (f": {point.message.partition(chr(10))[0]}" if point.message else ""))
    parts.extend(f"{key}={json_text(value, indent=None)}" for key, value in sorted(point.attributes.items()))
    if point.thread_id is not None and point.point.startswith("graph."):
        parts.append(f"thread {point.thread_id}")
    return printable("  ".join(parts))
