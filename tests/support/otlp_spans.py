"""Spans as OTLP receivers hold them, as the same plain records that ours are compared as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from tracegraph_exporters.base import EventRecord, LinkRecord, SpanRecord

_STATUS = {Status.STATUS_CODE_UNSET: "unset", Status.STATUS_CODE_OK: "ok", Status.STATUS_CODE_ERROR: "error"}


def records_of(requests: Iterable[Any]) -> list[SpanRecord]:
    """Return the spans of export requests."""
    return [record for request in requests for part in request.resource_spans for record in _records(part)]


def _records(part: ResourceSpans) -> Iterator[SpanRecord]:
    resource = _attributes(part.resource.attributes)
    for scoped in part.scope_spans:
        for span in scoped.spans:
            yield _record(span, resource, scoped.scope.name)


def _record(span: Span, resource: Mapping[str, Any], scope: str) -> SpanRecord:
    parent = span.parent_span_id.hex() or None
    return SpanRecord(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=parent,
        is_local_root=parent is None,
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status=_STATUS[span.status.code],
        message=span.status.message or None,
        attributes=_attributes(span.attributes),
        events=tuple(EventRecord(e.name, e.time_unix_nano, _attributes(e.attributes)) for e in span.events),
        links=tuple(LinkRecord(k.trace_id.hex(), k.span_id.hex(), _attributes(k.attributes)) for k in span.links),
        resource=resource,
        scope=scope,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(item) for item in value.array_value.values)
    return None if kind is None else getattr(value, kind)
