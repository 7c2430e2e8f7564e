"""A request that a receiver finds too large, as two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tracegraph_exporters.spool.destination import Signal
from tracegraph_exporters.spool.packing import Packed

__all__ = ["split"]

_PARTS: Final[Mapping[Signal, tuple[Any, str, str, str]]] = {
    "traces": (ExportTraceServiceRequest, "resource_spans", "scope_spans", "spans"),
    "logs": (ExportLogsServiceRequest, "resource_logs", "scope_logs", "log_records"),
}


def split(signal: Signal, body: bytes) -> list[Packed]:
    """Return the two halves of a request, by number of items, in order; nothing if it has one item."""
    kind, resources, scopes, items = _PARTS[signal]
    whole = kind.FromString(body)
    count = sum(len(getattr(scope, items)) for resource in getattr(whole, resources) for scope in getattr(resource, scopes))
    if count < 2:
        return []
    halves = [(0, count // 2), (count // 2, count)]
    return [Packed(_cut(whole, signal, start, stop).SerializeToString(), stop - start) for start, stop in halves]


def _cut(whole: Any, signal: Signal, start: int, stop: int) -> Any:
    """Return *whole* with only the items numbered *start* up to *stop*, in their resources and scopes."""
    kind, resources, scopes, items = _PARTS[signal]
    part = kind()
    number = 0
    for resource in getattr(whole, resources):
        kept_resource = None
        for scope in getattr(resource, scopes):
            found = getattr(scope, items)
            kept = [item for index, item in enumerate(found, number) if start <= index < stop]
            number += len(found)
            if not kept:
                continue
            if kept_resource is None:
                kept_resource = getattr(part, resources).add()
                kept_resource.resource.CopyFrom(resource.resource)
                kept_resource.schema_url = resource.schema_url
            kept_scope = getattr(kept_resource, scopes).add()
            kept_scope.scope.CopyFrom(scope.scope)
            kept_scope.schema_url = scope.schema_url
            getattr(kept_scope, items).extend(kept)
    return part
