"""Prints each trace as a tree once its local root has ended."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import IO, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tracegraph_exporters.base import SpanRecord, to_record
from tracegraph_exporters.tree import SpanNode, build_tree, render_plain, render_rich

__all__ = ["ConsoleTreeExporter"]

_MAX_WAITING: Final = 20_000


class ConsoleTreeExporter(SpanExporter):
    """Keeps spans until the root of their part of a trace ends, then prints that part.

    A terminal gets a rich tree, anything else plain indented lines. A root's late children (a background save)
    are printed at shutdown, marked as such.

    Args:
        out: where to print; standard error if None, so that a program's own output stays clean.
        has_attributes: print attributes, events and links too.
        max_waiting: how many spans may wait for their roots; beyond it the trace that waits longest is printed as it is.
    """

    def __init__(self, out: IO[str] | None = None, *, has_attributes: bool = False, max_waiting: int = _MAX_WAITING) -> None:
        self._out = out
        self._has_attributes = has_attributes
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._waiting: dict[str, list[SpanRecord]] = {}
        self._count = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take spans, and print the trees that are complete now."""
        with self._lock:
            for span in spans:
                record = to_record(span)
                self._waiting.setdefault(record.trace_id, []).append(record)
                self._count += 1
                if record.is_local_root:
                    self._print_below(record)
            while self._count > self._max_waiting:
                self._print_unfinished(next(iter(self._waiting)))
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # printing takes no time worth a limit
        """Return True: what still waits, waits for its root."""
        return True

    def shutdown(self) -> None:
        """Print what still waits for a root."""
        with self._lock:
            for trace_id in tuple(self._waiting):
                self._print_unfinished(trace_id)

    def _print_below(self, root: SpanRecord) -> None:
        records = self._waiting.pop(root.trace_id)
        mine = next(node for node in build_tree(records) if node.span is root)
        printed = {node.span.span_id for _, node in mine.walk()}
        # Another root in this process may be part of the same trace; its spans keep waiting for it.
        if rest := [record for record in records if record.span_id not in printed]:
            self._waiting[root.trace_id] = rest
        self._count -= len(printed)
        self._print(f"trace {root.trace_id}", [mine])

    def _print_unfinished(self, trace_id: str) -> None:
        records = self._waiting.pop(trace_id)
        self._count -= len(records)
        self._print(f"trace {trace_id}: {len(records)} more spans", build_tree(records))

    def _print(self, title: str, roots: Sequence[SpanNode]) -> None:
        out = self._out or sys.stderr
        if out.isatty():
            from rich.console import Console

            console = Console(file=out, highlight=False)
            console.print(title, style="dim", markup=False)
            for tree in render_rich(roots, has_attributes=self._has_attributes):
                console.print(tree)
        else:
            out.write(f"{title}\n{render_plain(roots, has_attributes=self._has_attributes)}\n")
            out.flush()
