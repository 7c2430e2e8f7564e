"""One run of a graph as the command makes it: traced, with progress on a terminal, stopped by SIGTERM between supersteps."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

from tracegraph.cli.lines import Lines
from tracegraph.cli.loading import read_json
from tracegraph.cli.output import ExitCode, fail, json_text
from tracegraph.cli.progress import Progress
from tracegraph.drivers.body import Body
from tracegraph.errors import GraphDrained, InvalidInputError
from tracegraph.pregel import Pregel
from tracegraph.runtime import RunControl
from tracegraph.telemetry import continue_trace, setup
from tracegraph_exporters.store import TraceStore, TraceStoreError

__all__ = ["Ended", "Outcome", "Trace", "needs_async", "run_config", "run_traced", "thread_of"]

_DRAIN_WAIT_S = 1.0
_EXPORT_VARIABLES = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

Status = Literal["completed", "failed", "interrupted", "cancelled", "drained", "terminated"]


@dataclass(slots=True)
class Outcome:
    """How a run ended; ``terminated``: a second SIGTERM did not wait for the superstep."""

    status: Status
    result: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of a run; ``is_lost`` if it should be in the store and is not."""

    trace_id: str
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over, whatever became of it; no trace if nothing exports any."""

    outcome: Outcome
    progress: Progress
    trace: Trace | None


def run_config(text: str | None, thread_id: str | None) -> dict[str, Any]:
    """Return the config that ``--config`` and the thread on the command line give.

    Raises:
        CliError: it is not what a config is.
    """
    config: dict[str, Any] = dict(read_json(text, "--config", [dict]) or {})
    if "callbacks" in config:
        fail("the key 'callbacks' of --config takes objects, which JSON does not have")
    configurable = config.get("configurable", {})
    if not isinstance(configurable, dict):
        fail("the key 'configurable' of --config has to be an object")
    if thread_id is not None:
        configurable = {**configurable, "thread_id": thread_id}
    if configurable:
        config["configurable"] = configurable
    _check_kinds(config, _KINDS, "--config")
    _check_kinds(configurable, _ADDRESS_KINDS, "'configurable' in --config")
    if "run_id" in config:
        try:
            config["run_id"] = UUID(str(config["run_id"]))
        except ValueError as error:
            fail(f"the key 'run_id' of --config has to be a UUID, not {config['run_id']!r}", error)
    return config


def _is_limit(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_Kinds = dict[str, tuple[Callable[[Any], bool], str]]
_KINDS: _Kinds = {
    "tags": (lambda value: isinstance(value, list) and all(map(_is_text, value)), "an array of strings"),
    "metadata": (lambda value: isinstance(value, dict), "an object"),
    "run_name": (_is_text, "a string"),
    "max_concurrency": (_is_limit, "a whole number above zero"),
    "recursion_limit": (_is_limit, "a whole number above zero"),
}
_ADDRESS_KINDS: _Kinds = {
    "thread_id": (lambda value: type(value) in (str, int), "a string or a whole number"),
    "checkpoint_ns": (_is_text, "a string"),
    "checkpoint_id": (_is_text, "a string"),
    "checkpoint_map": (lambda value: isinstance(value, dict) and all(map(_is_text, value.values())), "an object of strings"),
}


def _check_kinds(given: dict[str, Any], kinds: _Kinds, where: str) -> None:
    """Raise if a key has a value that the run would stumble over; null stands for a key that is not there."""
    for key, (is_right, kind) in kinds.items():
        if (value := given.get(key)) is not None and not is_right(value):
            fail(f"the key {key!r} of {where} has to be {kind}, not {json_text(value, indent=None)}")


def thread_of(config: dict[str, Any]) -> str | None:
    """Return the thread that a config names."""
    thread_id = config.get("configurable", {}).get("thread_id")
    return None if thread_id is None else str(thread_id)


def run_traced(graph: Pregel, graph_input: Any, config: dict[str, Any], *, has_store: bool, lines: Lines | None = None) -> Ended:
    """Run the graph and return how it ended; nothing that user code raises gets out. *lines*: where its parts go meanwhile.

    Raises:
        CliError: the environment names an exporter that does not exist.
    """
    from tracegraph.telemetry.trace_finder import TraceFinder

    run_id = config.setdefault("run_id", uuid4())
    progress, control = Progress(run_id), RunControl()
    config["callbacks"] = [progress]
    finder = TraceFinder(run_id)
    exports = has_store or any(os.environ.get(name) for name in _EXPORT_VARIABLES)
    # After the graph is loaded: its file may have configured OpenTelemetry itself, and that is kept.
    try:
        telemetry = setup(store=has_store, exporters=[finder] if exports else None)
    except InvalidInputError as error:
        fail(str(error), error)
    try:
        # What nodes print goes to stderr: stdout is the result, and nothing else.
        with progress.shown(), redirect_stdout(sys.stderr), _sigterm_drains(control) as signals, continue_trace(_environment()):
            outcome = _execute(graph, graph_input, config, control, signals, lines)
            if lines is not None and outcome.status == "completed":
                # A pause with no state has no result, which `invoke` shows as a dict that is empty but for the questions.
                is_bare = progress.pause is not None and not isinstance(progress.output, dict)
                outcome.result = {} if is_bare else progress.output
    finally:
        telemetry.shutdown()
    trace_id = finder.trace_id
    return Ended(outcome, progress, None if trace_id is None else Trace(trace_id, _is_lost(trace_id, telemetry.store_path)))


def _is_lost(trace_id: str, store_path: Path | None) -> bool:
    """Say whether the trace should be in the store and is not (what went wrong has been logged)."""
    if store_path is None:
        return False
    try:
        with TraceStore(store_path) as store:
            return store.resolve(trace_id) != trace_id
    except (OSError, LookupError, TraceStoreError, sqlite3.Error):
        return True


def _environment() -> dict[str, str]:
    """Return the trace context that this process was started in: the variables are those of W3C's headers."""
    return {name: text for name in ("TRACEPARENT", "TRACESTATE", "BAGGAGE") if (text := os.environ.get(name))}


@contextmanager
def _sigterm_drains(control: RunControl) -> Iterator[list[int]]:
    """Let SIGTERM ask the run to stop after its superstep, and a second one stop it at once; yield the signals seen."""
    seen: list[int] = []

    def on_signal(number: int, _frame: Any) -> None:
        seen.append(number)
        if len(seen) > 1:
            raise SystemExit(ExitCode.TERMINATED)
        # From a thread of its own: the interrupted code may be holding the very lock that a drain takes. It is
        # waited for a moment, so that the next superstep does not start if the lock is free.
        asking = threading.Thread(target=control.request_drain, args=("SIGTERM",), daemon=True)
        asking.start()
        asking.join(_DRAIN_WAIT_S)

    previous = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, previous)


def _execute(
    graph: Pregel, graph_input: Any, config: Any, control: RunControl, signals: list[int], lines: Lines | None
) -> Outcome:
    result: Any = None
    try:
        if needs_async(graph):
            if lines is not None:
                asyncio.run(lines.arun(graph, graph_input, config, control=control))
            else:
                result = asyncio.run(graph.ainvoke(graph_input, config, control=control))
        elif lines is not None:
            lines.run(graph, graph_input, config, control=control)
        else:
            result = graph.invoke(graph_input, config, control=control)
    except GraphDrained as error:
        return Outcome("drained", error=error)
    except KeyboardInterrupt as error:
        return Outcome("cancelled", error=error)
    except BaseException as error:  # noqa: BLE001  # whatever user code raises ends the run, and is reported
        return Outcome("terminated" if len(signals) > 1 and isinstance(error, SystemExit) else "failed", error=error)
    return Outcome("completed", result)


def needs_async(graph: Any) -> bool:
    """Say whether a node or path function of the graph, or of a graph inside it, can only be awaited."""
    found, seen = [graph], {id(graph)}
    for graph in found:
        for node in graph.nodes.values():
            if node.body is not None and node.body.is_async:
                return True
            if node.subgraph is not None and id(node.subgraph) not in seen:
                seen.add(id(node.subgraph))
                found.append(node.subgraph)
        branches = getattr(getattr(graph, "builder", None), "branches", {})
        if any(Body.of(branch.path).is_async for named in branches.values() for branch in named.values()):
            return True
    return False
