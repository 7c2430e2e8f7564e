"""``tracegraph run``: one run of a graph, traced."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

from tracegraph.cli.loading import describe_error, load_graph, read_json
from tracegraph.cli.output import ExitCode, fail, note, print_data, to_plain_data
from tracegraph.cli.progress import Progress
from tracegraph.drivers.body import Body
from tracegraph.errors import EmptyInputError, GraphDrained, InvalidInputError
from tracegraph.pregel import Pregel
from tracegraph.runtime import RunControl
from tracegraph.telemetry import setup
from tracegraph.telemetry.semconv import RUN_ID
from tracegraph_exporters.store import TraceStore, TraceStoreError

__all__ = ["Outcome", "needs_async", "run_graph"]

_EXIT_CODES = {
    "completed": ExitCode.COMPLETED,
    "failed": ExitCode.FAILED,
    "interrupted": ExitCode.INTERRUPTED,
    "cancelled": ExitCode.KEYBOARD,
    "drained": ExitCode.TERMINATED,
    "terminated": ExitCode.TERMINATED,
}

Status = Literal["completed", "failed", "interrupted", "cancelled", "drained", "terminated"]


@dataclass(slots=True)
class Outcome:
    """How a run ended; ``terminated``: a second SIGTERM did not wait for the superstep."""

    status: Status
    result: Any = None
    error: BaseException | None = None


class _TraceFinder:
    """A span exporter that only remembers in which trace the run with a certain id was."""

    def __init__(self, run_id: UUID) -> None:
        self._run_id = str(run_id)
        self.trace_id: str | None = None

    def export(self, spans: Sequence[Any]) -> None:
        for span in spans:
            if span.attributes and span.attributes.get(RUN_ID) == self._run_id:
                self.trace_id = f"{span.context.trace_id:032x}"

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the exporter interface
        return True

    def shutdown(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Trace:
    trace_id: str
    is_lost: bool


def _is_lost(trace_id: str, store_path: Path | None) -> bool:
    """Say whether the trace should be in the store and is not (what went wrong has been logged)."""
    if store_path is None:
        return False
    try:
        with TraceStore(store_path) as store:
            return store.resolve(trace_id) != trace_id
    except (OSError, LookupError, TraceStoreError, sqlite3.Error):
        return True


def run_graph(
    target: str,
    *,
    input_text: str | None,
    thread_id: str | None,
    config_text: str | None,
    is_json: bool,
    has_store: bool,
    shows_traceback: bool,
) -> ExitCode:
    """Run the graph, print how it ended, and return the exit code.

    Raises:
        CliError: there is nothing to run: a bad argument, or a graph that does not load.
    """
    config = _config(config_text, thread_id)
    graph_input = read_json(input_text, "--input")
    graph = load_graph(target)
    progress, control = Progress(), RunControl()
    run_id = config.setdefault("run_id", uuid4())
    config["callbacks"] = [progress]
    finder = _TraceFinder(run_id)
    exports = has_store or any(os.environ.get(name) for name in _EXPORT_VARIABLES)
    # After the graph is loaded: its file may have configured OpenTelemetry itself, and that is kept.
    try:
        telemetry = setup(store=has_store, exporters=[finder] if exports else None)  # type: ignore[list-item]  # by duck type
    except InvalidInputError as error:
        fail(str(error), error)
    try:
        # What nodes print goes to stderr: stdout is the result, and nothing else.
        with progress.shown(), redirect_stdout(sys.stderr), _sigterm_drains(control) as signals:
            outcome = _execute(graph, graph_input, config, control, signals)
    finally:
        telemetry.shutdown()
    if isinstance(outcome.error, EmptyInputError) and input_text is None:
        fail(
            f"thread {thread_id!r} has nothing to continue: it has no checkpoint in the graph's saver (an in-memory one is gone "
            "with the process that made it); give --input to begin"
            if thread_id is not None
            else "there is nothing to run: give --input, or the --thread of a run to continue"
        )
    if isinstance(outcome.error, InvalidInputError) and thread_id is None and graph.checkpointer is not None:
        fail("the graph has a checkpointer, so its runs need a thread to be saved under: give --thread ID", outcome.error)
    trace = None if finder.trace_id is None else _Trace(finder.trace_id, is_lost=_is_lost(finder.trace_id, telemetry.store_path))
    _print(outcome, progress, trace, thread_id=thread_id, is_json=is_json, shows_traceback=shows_traceback)
    return _EXIT_CODES[outcome.status]


_DRAIN_WAIT_S = 1.0
_EXPORT_VARIABLES = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def _config(text: str | None, thread_id: str | None) -> dict[str, Any]:
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
    if "run_id" in config:
        try:
            config["run_id"] = UUID(str(config["run_id"]))
        except ValueError as error:
            fail(f"the key 'run_id' of --config has to be a UUID, not {config['run_id']!r}", error)
    return config


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


def _execute(graph: Pregel, graph_input: Any, config: Any, control: RunControl, signals: list[int]) -> Outcome:
    try:
        if needs_async(graph):
            result = asyncio.run(graph.ainvoke(graph_input, config, control=control))
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


def _print(
    outcome: Outcome, progress: Progress, trace: _Trace | None, *, thread_id: str | None, is_json: bool, shows_traceback: bool
) -> None:
    result = outcome.result
    questions = []
    if outcome.status == "completed" and progress.pause is not None:
        outcome.status = "interrupted"
        questions = [{"id": found.id, "value": to_plain_data(found.value)} for found in progress.pause.interrupts]
        if isinstance(result, dict):
            result = {key: value for key, value in result.items() if key != "__interrupt__"}
    message = None if outcome.error is None else _error_text(outcome, progress)
    if is_json:
        shown: dict[str, Any] = {"status": outcome.status, "result": to_plain_data(result), "interrupts": questions}
        if outcome.error is not None:
            shown["error"] = {"type": type(outcome.error).__name__, "message": message}
        print_data(shown | {"thread_id": thread_id, "trace_id": None if trace is None else trace.trace_id})
    elif outcome.status == "interrupted":
        _print_pause(questions, progress)
    elif isinstance(result, str):
        print(result)
    elif outcome.status == "completed":
        print_data(to_plain_data(result))
    if outcome.error is not None:
        if shows_traceback:
            traceback.print_exception(outcome.error)
        note(f"error: {message}" if outcome.status == "failed" else f"{outcome.status}: {message}")
    if trace is not None and (trace.is_lost or not is_json):
        note(f"trace {trace.trace_id}{' could not be stored' if trace.is_lost else ''}")


def _print_pause(questions: list[dict[str, Any]], progress: Progress) -> None:
    if questions:
        print_data(questions)
        note(f"interrupted: the run waits for {len(questions)} answer{'s' if len(questions) > 1 else ''}")
    elif progress.pause is not None:
        note(f"interrupted: the run stopped at a breakpoint ({progress.pause.status})")


def _error_text(outcome: Outcome, progress: Progress) -> str:
    match outcome.status:
        case "drained":
            return "SIGTERM stopped the run between two supersteps"
        case "terminated":
            return "a second SIGTERM stopped the run"
        case "cancelled":
            return "the keyboard stopped the run"
        case _:
            assert outcome.error is not None  # a failed run has an error
            node = progress.failed[0] if progress.failed is not None and progress.failed[1] is outcome.error else None
            return describe_error(outcome.error, node)
