"""Holds every span and log record that tracegraph makes in any test against the registry, whoever's provider it went to.

Every SDK provider of the process gets one more processor (of log records: if it has any); trace stores that processes of
a test wrote below its ``tmp_path`` are read as well. What is wrong fails the test in its teardown. Three markers make
exceptions, each with its reason:

- ``hand_made_spans(reason)``: the test makes spans that no run makes;
- ``content_on_spans(reason)``: the test asks for content, which log records may carry too then;
- ``exceptions_in_logs(reason)``: the test asks for events in logs alone, so that spans have no exception events.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from span_rules import problems_among, problems_of, problems_of_log_record

from tracegraph.telemetry import semconv
from tracegraph_exporters.base import SpanRecord, to_record
from tracegraph_exporters.store import TraceStore, TraceStoreError

__all__ = ["WATCH", "SpanWatch", "pytest_configure", "pytest_runtest_teardown", "stored_spans"]

SHOWN = 12
"""Problems listed of one test; a mistake in the spans' code shows on all of them."""


class SpanWatch(SpanProcessor):
    """Keeps the finished spans of tracegraph's own scope until somebody takes them."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep the span; the list is shared by all threads, and appending is one step."""
        if span.instrumentation_scope is not None and span.instrumentation_scope.name == semconv.SCOPE_NAME:
            self.ended.append(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the SDK's signature
        """Say that nothing waits: the base class of older SDKs returns None, which keeps other processors from being asked."""
        return True

    def take(self) -> list[ReadableSpan]:
        """Return what has ended since the last call."""
        taken, self.ended = self.ended, []
        return taken

    def watch_all_providers(self) -> None:
        """Add this processor to every provider from now on, before any other: a later one may raise."""
        original = TracerProvider.__init__
        watch = self

        @functools.wraps(original)
        def init(self: TracerProvider, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            self.add_span_processor(watch)

        TracerProvider.__init__ = init  # type: ignore[method-assign]  # the one place that all providers come through


class RecordWatch(LogRecordProcessor):
    """The same for log records with an event name; the lines of loggers have none."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, str, Mapping[str, Any]]] = []

    def on_emit(self, log_record: Any) -> None:
        """Keep name, severity and attributes."""
        record, scope = log_record.log_record, log_record.instrumentation_scope
        if scope is not None and scope.name == semconv.SCOPE_NAME and record.event_name:
            self.emitted.append((record.event_name, record.severity_text or "", dict(record.attributes or {})))

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing."""
        return True

    def take(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Return what was emitted since the last call."""
        taken, self.emitted = self.emitted, []
        return taken

    def watch_all_providers(self) -> None:
        """Stand before the first processor of each provider; without one a provider is silent, and stays so."""
        original = LoggerProvider.add_log_record_processor
        watch, watched = self, WeakSet[LoggerProvider]()

        @functools.wraps(original)
        def add(self: LoggerProvider, processor: LogRecordProcessor) -> None:
            if self not in watched:
                watched.add(self)
                original(self, watch)
            original(self, processor)

        LoggerProvider.add_log_record_processor = add  # type: ignore[method-assign]  # as above


WATCH = SpanWatch()
RECORD_WATCH = RecordWatch()


def scope_problems(span: ReadableSpan) -> list[str]:
    """Return what is wrong with a span's instrumentation scope."""
    scope = span.instrumentation_scope
    assert scope is not None
    found = (scope.version, scope.schema_url)
    wanted = (semconv.SCOPE_VERSION, semconv.SCHEMA_URL)
    return [] if found == wanted else [f"{span.name!r}: its scope says {found}, not {wanted}"]


def all_problems(spans: Iterable[SpanRecord], *, allows_content: bool = False, needs_exceptions: bool = True) -> list[str]:
    """Return what is wrong with spans, each by itself and among each other; each problem once."""
    spans = list(spans)
    rules = {"allows_content": allows_content, "needs_exceptions": needs_exceptions}
    found = [problem for span in spans for problem in problems_of(span, **rules)]
    return list(dict.fromkeys([*found, *problems_among(spans, needs_exceptions=needs_exceptions)]))


def stored_spans(folder: Path) -> list[SpanRecord]:
    """Return tracegraph's spans in the trace stores in and below *folder*; what is no trace store is some test's own matter."""
    found: list[SpanRecord] = []
    for path in folder.rglob("traces.db"):
        try:
            with TraceStore(path) as store:
                found += [span for trace in store.traces(limit=-1) for span in store.spans(trace.trace_id)]
        except (TraceStoreError, OSError):
            continue
    return [span for span in found if span.scope == semconv.SCOPE_NAME]


def pytest_configure(config: pytest.Config) -> None:
    """Describe the markers and begin to watch."""
    config.addinivalue_line("markers", "hand_made_spans(reason): the test makes spans that no run makes; they are not checked")
    config.addinivalue_line("markers", "content_on_spans(reason): the test asks for content, so spans may carry it")
    config.addinivalue_line("markers", "exceptions_in_logs(reason): the test asks for events in logs alone")
    WATCH.watch_all_providers()
    RECORD_WATCH.watch_all_providers()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Judge the spans of a test when all of its fixtures are gone."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    stored = stored_spans(folder) if folder is not None else []
    yield
    ended, emitted = WATCH.take(), RECORD_WATCH.take()
    if _marked(item, "hand_made_spans"):
        return
    has_content = _marked(item, "content_on_spans")
    told = [problem for record in emitted for problem in problems_of_log_record(*record, allows_content=has_content)]
    has_exceptions = not _marked(item, "exceptions_in_logs")
    problems = [
        *(problem for span in ended for problem in scope_problems(span)),
        *all_problems([*map(to_record, ended), *stored], allows_content=has_content, needs_exceptions=has_exceptions),
        *dict.fromkeys(told),
    ]
    if problems:
        rest = f"\n... and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        pytest.fail("spans of this test break the rules:\n" + "\n".join(problems[:SHOWN]) + rest, pytrace=False)


def _marked(item: pytest.Item, name: str) -> bool:
    marker = item.get_closest_marker(name)
    if marker is not None and not marker.kwargs.get("reason") and not marker.args:
        raise pytest.UsageError(f"{item.nodeid}: the marker {name} needs a reason")
    return marker is not None
