"""Which traces a question is about, as the SQL that finds them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

__all__ = ["COLUMNS", "NAME", "STATUS", "TraceFilter"]

# A trace runs as long as one of its spans does that began before every root that has ended.
_OPEN: Final = "FROM open_spans o WHERE o.trace_id = traces.trace_id"
_EARLIER: Final = f"{_OPEN} AND o.start_ns < coalesce(root_start_ns, 9223372036854775807)"
_IS_RUNNING: Final = f"EXISTS (SELECT 1 {_EARLIER})"
_FAILED: Final = "iif(run_status = 'step_limit', run_status, 'failed')"
_ENDED: Final = (
    f"iif(root_status = 'error', {_FAILED}, coalesce(run_status, iif(root_status IS NULL, 'unfinished', 'completed')))"
)
STATUS: Final = f"iif({_IS_RUNNING}, 'running', {_ENDED})"
NAME: Final = f"coalesce((SELECT o.name {_EARLIER} AND o.is_local_root ORDER BY o.start_ns LIMIT 1), root_name)"
_START: Final = f"iif({_IS_RUNNING}, traces.start_ns, coalesce(root_start_ns, traces.start_ns))"
_DURATION: Final = f"(iif({_IS_RUNNING}, :now_ns, coalesce(root_end_ns, end_ns)) - {_START})"
COLUMNS: Final = f"""
    trace_id, {NAME} AS name, {STATUS} AS status, span_count + (SELECT count(*) {_OPEN}) AS span_count, error_count,
    {_START} AS start_ns, coalesce(root_end_ns, end_ns) AS end_ns, thread_id, service_name
"""

_HAS_OPERATION: Final = (
    "EXISTS (SELECT 1 FROM operations op WHERE op.trace_id = traces.trace_id AND op.kind = '{kind}' AND op.name = :{kind})"
)
# What runs just now is no operation yet; the name of its span says what it is.
_OR_OPEN: Final = "OR EXISTS (SELECT 1 {open} AND o.name IN ({names}))"
_OPEN_NAMES: Final = {
    "graph": "'invoke_workflow ' || :graph, 'invoke_agent ' || :graph",
    "node": "'run_step ' || :node",
    "model": "'chat ' || :model, 'text_completion ' || :model",
    "tool": "'execute_tool ' || :tool",
}

_TESTS: Final = {
    "thread_id": "thread_id = :thread_id",
    "status": f"{STATUS} = :status",
    "name": f"instr({NAME}, :name) > 0",
    "since_ns": "traces.start_ns >= :since_ns",
    "until_ns": "traces.start_ns < :until_ns",
    "slower_ns": f"{_DURATION} > :slower_ns",
} | {
    kind: f"({_HAS_OPERATION.format(kind=kind)} {_OR_OPEN.format(open=_OPEN, names=names)})"
    for kind, names in _OPEN_NAMES.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which traces: those for which all that is given holds.

    Args:
        thread_id: of runs of this thread.
        status: with this :attr:`~tracegraph_exporters.TraceSummary.status`.
        name: whose root span's name contains this text.
        since_ns: that started then or later.
        until_ns: that started before.
        slower_ns: whose root span took longer, or has so far.
        has_error: in which a span has the status ERROR, be it an attempt that was made again.
        graph: in which a graph of this name ran, at the root or nested.
        node: in which this node ran.
        model: in which this model was asked for.
        tool: in which this tool was called.
    """

    thread_id: str | None = None
    status: str | None = None
    name: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    slower_ns: int | None = None
    has_error: bool = False
    graph: str | None = None
    node: str | None = None
    model: str | None = None
    tool: str | None = None

    def where(self) -> str:
        """Return the condition on a row of ``traces``, with named parameters; empty if every trace is meant."""
        tests = [test for name, test in _TESTS.items() if getattr(self, name) is not None]
        if self.has_error:
            tests.append("error_count > 0")
        return f"WHERE {' AND '.join(tests)}" if tests else ""

    def values(self, now_ns: int) -> dict[str, Any]:
        """Return the values of the parameters; *now_ns* is until when running traces have taken."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"now_ns": now_ns}
