"""Write the lifecycle events of a run as a log: lines of JSON, each with the ids that lead to its span.

Here it is the log of a triage, whose retries are warnings; the lines go to stdout, for whatever ships your logs::

    python examples/log_pipeline.py examples/data/package-manager.log
    python examples/log_pipeline.py --level debug --content build.log

Input, results, tokens and the words of errors are content: nothing of it is written unless it is asked for.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, TextIO
from uuid import UUID

import structlog
from log_triage import builder
from structlog.typing import FilteringBoundLogger

from tracegraph import InMemorySaver
from tracegraph.config import RunnableConfig
from tracegraph.events import (
    AttemptEnded,
    CheckpointSaved,
    Drained,
    ErrorHandled,
    Event,
    Interrupted,
    JoinStarved,
    ModelEnded,
    ObserverFailed,
    ReportIgnored,
    Resumed,
    RetrievalEnded,
    RunEnded,
    RunStarted,
    TaskEnded,
    TaskStarted,
    ToolEnded,
    UnknownKeyIgnored,
)
from tracegraph.stream.wire import to_wire
from tracegraph.telemetry import setup
from tracegraph.types import StreamPart

FACTS = (
    "name",
    "status",
    "task_id",
    "attempt",
    "attempts",
    "will_retry",
    "delay_s",
    "durability",
    "is_resume",
    "checkpoint_id",
    "task_count",
    "reason",
    "waited_ns",
)
"""Fields without content, of whichever events have them; ``name`` is that of a graph, a node, a model, ..."""


def level_of(event: Event) -> int:
    """Say how much an event matters.

    A failed attempt or call is a warning, since something else may come of it; a failed task or run is an error.
    """
    match event:
        case RunEnded(status="failed" | "step_limit") | TaskEnded(status="failed") | CheckpointSaved(error=Exception()):
            return logging.ERROR
        case AttemptEnded(error=Exception()) | ModelEnded(error=Exception()) | ToolEnded(error=Exception()):
            return logging.WARNING
        case RetrievalEnded(error=Exception()) | ErrorHandled() | JoinStarved() | UnknownKeyIgnored():
            return logging.WARNING
        case ReportIgnored() | ObserverFailed():
            return logging.WARNING
        case RunStarted() | RunEnded() | Interrupted() | Resumed() | Drained():
            return logging.INFO
        case TaskStarted(is_hidden=False) | TaskEnded(is_hidden=False):
            return logging.INFO
        case _:
            return logging.DEBUG


def describe(_logger: Any, _method: str, line: dict[str, Any], *, has_content: bool = False) -> dict[str, Any]:
    """Return what is to be written of the part in a line; a processor of structlog."""
    part: StreamPart = line.pop("part")
    event: Event = part["data"]
    error = getattr(event, "error", None)
    told = {
        "timestamp": datetime.fromtimestamp(event.at_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
        "level": line.pop("level"),
        "event": type(event).__name__,
        **{name: getattr(event, name, None) for name in FACTS},
        "error": None if error is None else type(error).__name__,
        **line,
        **{name: getattr(part.meta, name) for name in ("step", "seq", "run_id", "trace_id", "span_id")},
        "content": to_wire(part)["data"] if has_content else None,
    }
    return {key: value for key, value in told.items() if value is not None}


def logger_to(out: TextIO, level: int | str = logging.INFO, *, has_content: bool = False) -> FilteringBoundLogger:
    """Return a logger that writes lines of JSON; what is below *level* costs next to nothing."""
    processors: list[Callable[..., Any]] = [
        structlog.processors.add_log_level,
        partial(describe, has_content=has_content),
        structlog.processors.JSONRenderer(),
    ]
    wrapper = structlog.make_filtering_bound_logger(level)
    return structlog.wrap_logger(structlog.WriteLogger(out), processors, wrapper)  # type: ignore[no-any-return]


def log_run(parts: Iterable[StreamPart], log: FilteringBoundLogger) -> None:
    """Log every event of a run, and of the runs inside if they are in the stream; the error of the run is raised."""
    runs: dict[UUID, RunStarted] = {}
    nodes: dict[str, str] = {}
    for part in parts:
        event: Event = part["data"]
        if isinstance(event, RunStarted):
            runs[event.run_id] = event
        elif isinstance(event, TaskStarted):
            nodes[event.task_id] = event.name
        run = runs[event.run_id]
        node = nodes.get(getattr(event, "task_id", ""))
        log.log(level_of(event), type(event).__name__, part=part, graph=run.name, node=node, thread_id=run.thread_id)


def main() -> None:
    """Triage a log file and log that."""
    arguments = argparse.ArgumentParser(description="Write the lifecycle events of a run as lines of JSON.")
    arguments.add_argument("log", nargs="?", help="the file to triage; the machine's own if left out")
    arguments.add_argument("--level", default="info", choices=["debug", "info", "warning", "error"])
    arguments.add_argument("--content", action="store_true", help="write inputs, results and the words of errors too")
    given = arguments.parse_args()

    graph = builder.compile(name="log-triage", checkpointer=InMemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "nightly"}}
    log = logger_to(sys.stdout, given.level, has_content=given.content)
    with setup():
        question = {"path": given.log} if given.log else {}
        log_run(graph.stream(question, thread, stream_mode="events", subgraphs=True, version="v2"), log)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # the log has it as well
        sys.exit(f"the run failed: {error}")
