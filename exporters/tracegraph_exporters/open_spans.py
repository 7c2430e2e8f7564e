"""The span processor that keeps the trace store informed of spans that have not ended yet."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, attach, detach, set_value
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tracegraph_exporters.sqlite import SQLiteSpanExporter

__all__ = ["StoreSpanProcessor"]


class StoreSpanProcessor(BatchSpanProcessor):
    """Batches ended spans as its base class does, and writes those as open that live longer than *open_delay_s*.

    Most spans end sooner, so all they cost is an entry in a table. A crash loses what was not written yet: spans that
    started or ended within the delays.

    Args:
        exporter: the store.
        open_delay_s: how long a span may be open before the store knows of it.
        options: those of :class:`~opentelemetry.sdk.trace.export.BatchSpanProcessor`.
    """

    def __init__(self, exporter: SQLiteSpanExporter, *, open_delay_s: float = 1.0, **options: Any) -> None:
        super().__init__(exporter, **options)
        self._exporter = exporter
        self._delay_s = open_delay_s
        self._reset()
        if hasattr(os, "register_at_fork"):
            method = weakref.WeakMethod(self._reset)
            os.register_at_fork(after_in_child=lambda: (found := method()) and found())

    def _reset(self) -> None:
        """Begin with nothing: what a parent process has open is that process's to tell of."""
        self._unknown: dict[int, Span] = {}
        """Open spans that the store does not know of, by span id."""
        self._lock = threading.Lock()
        self._has_work = threading.Event()
        self._is_shut_down = threading.Event()
        self._worker: threading.Thread | None = None
        self._is_idle = True

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002  # the SDK's signature
        """Remember the span."""
        context = span.context
        if context.trace_flags.sampled:
            self._unknown[context.span_id] = span
            if self._is_idle:
                self._wake()

    def on_end(self, span: ReadableSpan) -> None:
        """Forget the span and put it into the next batch."""
        self._unknown.pop(span.context.span_id, None)
        super().on_end(span)

    def discard(self, spans: Sequence[ReadableSpan]) -> None:
        """Forget spans that have ended and are not kept; the store, too, if it knows of them."""
        for span in spans:
            self._unknown.pop(span.context.span_id, None)
        self._exporter.discard(spans)

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        """Write what has ended and what is open."""
        has_flushed = super().force_flush(timeout_millis)
        return self._write() and has_flushed

    def shutdown(self) -> None:
        """Write what has ended, and as open what has not, and close the store."""
        self._is_shut_down.set()
        self._has_work.set()
        if (worker := self._worker) is not None:
            worker.join()
        self._write()
        super().shutdown()  # type: ignore[no-untyped-call]  # the SDK's

    def _wake(self) -> None:
        with self._lock:
            self._is_idle = False
            if self._worker is None and not self._is_shut_down.is_set():
                self._worker = threading.Thread(target=self._work, name="tracegraph-open-spans", daemon=True)
                self._worker.start()
        self._has_work.set()

    def _work(self) -> None:
        while not self._is_shut_down.wait(self._delay_s):
            self._write()
            self._has_work.clear()
            # Idle first, looked second: a span that starts in between sees that it has to wake this thread.
            self._is_idle = True
            if not (self._unknown or self._exporter.has_open or self._is_shut_down.is_set()):
                self._has_work.wait()
            self._is_idle = False

    def _write(self) -> bool:
        unknown = self._unknown.copy()
        # As the SDK does around an export: an instrumented sqlite3 would make spans of it.
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            if not self._exporter.export_open(unknown.values()):
                return False
        finally:
            detach(token)
        for span_id in unknown:
            self._unknown.pop(span_id, None)
        return True
