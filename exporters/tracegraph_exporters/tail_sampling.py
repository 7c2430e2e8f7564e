"""Which traces to keep, decided when they are over: all that failed, all that were slow, and some of the others.

A sampler of the SDK decides before anything has happened. :class:`TailSpanProcessor` holds the ended spans of a trace
back until its local root has ended, and hands them on, or not, as :class:`TailSampling` says.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import StatusCode

__all__ = ["TailSampling", "TailSpanProcessor"]

_REMEMBERED: Final = 10_000
"""Traces whose decision is remembered, for spans that end after their root."""


@dataclass(frozen=True, slots=True)
class TailSampling:
    """Which traces are kept.

    Attributes:
        slower_than_s: those whose root took at least so many seconds; None: slowness is no reason.
        has_errors: those with a span of status ERROR.
        ratio: this part of the others, 0 to 1, by trace id: whoever else decides by the same ratio keeps the same ones.
        max_spans: how many ended spans may wait for a decision, over all traces. Beyond it the trace that has waited longest
            is kept without one, since whether it will fail or be slow is not known.

    Raises:
        ValueError: a number is out of its range.

    >>> TailSampling(slower_than_s=2.0, ratio=0.1).ratio
    0.1
    """

    slower_than_s: float | None = None
    has_errors: bool = True
    ratio: float = 0.0
    max_spans: int = 50_000

    def __post_init__(self) -> None:
        if not 0.0 <= self.ratio <= 1.0:
            raise ValueError(f"ratio is {self.ratio!r}; it must be from 0 to 1")
        if self.max_spans < 1 or (self.slower_than_s is not None and self.slower_than_s < 0):
            raise ValueError("max_spans must be at least 1, and slower_than_s must not be negative")

    def keeps(self, root: ReadableSpan, spans: Sequence[ReadableSpan]) -> bool:
        """Say whether a trace is kept whose local root has ended, *root* among its *spans*."""
        if self.has_errors and any(span.status.status_code is StatusCode.ERROR for span in spans):
            return True
        started, ended = root.start_time or 0, root.end_time or 0
        if self.slower_than_s is not None and ended - started >= self.slower_than_s * 1e9:
            return True
        # The SDK's own rule, so that a sampler with the same ratio elsewhere agrees.
        return bool(root.context.trace_id & TraceIdRatioBased.TRACE_ID_LIMIT < TraceIdRatioBased.get_bound_for_rate(self.ratio))


class TailSpanProcessor(SpanProcessor):
    """Hands ended spans to *behind* once it is decided that their trace is kept.

    What starts is told to *behind* at once, so that a store knows of running work. Of a trace that is not kept it is told
    through its method ``discard(spans)``, if it has one.

    A trace may have several local roots in one process, where a remote caller is the parent. What one of them keeps is kept
    from then on; nothing is dropped before the last one that is open has ended. Spans that wait are in memory: a killed
    process loses them.

    Args:
        behind: a processor, such as a batch.
        sampling: which traces are kept.
    """

    def __init__(self, behind: Any, sampling: TailSampling) -> None:
        self._behind = behind
        self._sampling = sampling
        self._discard = getattr(behind, "discard", None)
        self._begin_anew()
        if hasattr(os, "register_at_fork"):
            method = weakref.WeakMethod(self._begin_anew)
            os.register_at_fork(after_in_child=lambda: (found := method()) and found())

    def _begin_anew(self) -> None:
        """Begin with nothing: what waits in a parent process is that one's to decide on."""
        self._lock = threading.Lock()
        self._waiting: OrderedDict[int, list[ReadableSpan]] = OrderedDict()
        self._count = 0
        self._kept: OrderedDict[int, bool] = OrderedDict()
        """Decisions of the last traces."""
        self._open_roots: OrderedDict[int, int] = OrderedDict()
        """How many local roots of a trace are open."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Tell of a span that has started."""
        if _is_root(span):
            self._open(span.context.trace_id)
        self._behind.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Hold the span back, hand it on, or drop it."""
        trace_id = span.context.trace_id
        ready: list[ReadableSpan] = []
        dropped: list[ReadableSpan] = []
        with self._lock:
            is_root = _is_root(span)
            is_last = is_root and self._close(trace_id)
            decided = self._kept.get(trace_id)
            if decided or (decided is not None and not is_root):
                (ready if decided else dropped).append(span)
            else:
                waiting = self._waiting.setdefault(trace_id, [])
                waiting.append(span)
                self._count += 1
                is_kept = is_root and self._sampling.keeps(span, waiting)
                if is_kept or is_last:
                    self._take(trace_id)
                    self._remember(trace_id, is_kept=is_kept)
                    (ready if is_kept else dropped).extend(waiting)
                elif self._count > self._sampling.max_spans:
                    oldest = next(iter(self._waiting))
                    ready += self._take(oldest)
                    self._remember(oldest, is_kept=True)
        # Outside of the lock: what is behind may wait for room.
        for one in ready:
            self._behind.on_end(one)
        if dropped and self._discard is not None:
            self._discard(dropped)

    def _open(self, trace_id: int) -> None:
        """Count a local root; what an earlier one of its trace has not kept may yet be a reason of this one."""
        with self._lock:
            self._open_roots[trace_id] = self._open_roots.get(trace_id, 0) + 1
            if len(self._open_roots) > _REMEMBERED:
                self._open_roots.popitem(last=False)
            if self._kept.get(trace_id) is False:
                del self._kept[trace_id]

    def _close(self, trace_id: int) -> bool:
        """Return whether no other local root of the trace is open. The lock is held."""
        left = self._open_roots.pop(trace_id, 1) - 1
        if left > 0:
            self._open_roots[trace_id] = left
        return left <= 0

    def _take(self, trace_id: int) -> list[ReadableSpan]:
        taken = self._waiting.pop(trace_id)
        self._count -= len(taken)
        return taken

    def _remember(self, trace_id: int, *, is_kept: bool) -> None:
        self._kept[trace_id] = is_kept
        self._kept.move_to_end(trace_id)
        if len(self._kept) > _REMEMBERED:
            self._kept.popitem(last=False)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what is decided on. What is not goes on waiting: its run may still fail."""
        return bool(self._behind.force_flush(timeout_millis))

    def shutdown(self) -> None:
        """Keep what is not decided on, for it will not be, and close what is behind."""
        with self._lock:
            waiting = [span for spans in self._waiting.values() for span in spans]
            self._waiting.clear()
            self._count = 0
        for span in waiting:
            self._behind.on_end(span)
        self._behind.shutdown()


def _is_root(span: ReadableSpan) -> bool:
    return span.parent is None or span.parent.is_remote
