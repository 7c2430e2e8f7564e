"""What a finished span of tracegraph's must look like: the registry's rules, held against records of spans.

Rules of one span: :func:`problems_of`; of a log record: :func:`problems_of_log_record`. Rules among the spans of a
trace (who lies below whom, and when): :func:`problems_among`. All return sentences, none if all is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tracegraph.telemetry import semconv
from tracegraph.telemetry.semconv.model import ANY_PARENT, Attribute, SpanType, Use
from tracegraph.telemetry.semconv.registry import ATTRIBUTES, EVENTS, span_type_of
from tracegraph_exporters.base import SpanRecord

VALUE_BYTES = 2_000
"""What a value may have. Tempo cuts at 2,048 bytes, in the middle of whatever stands there."""

STACKTRACE_BYTES = 4_000
"""Of a traceback, which stands on an event and is cut by us in the middle: 512 failed spans must fit into 4 MiB."""

ATTRIBUTE_COUNT = 60
"""OpenTelemetry drops the oldest of more than 128."""

RESERVED = ("gen_ai.", "tracegraph.")
NAMED_BY_CLASS = (semconv.CHAT, semconv.TEXT_COMPLETION)
"""Spans that say the model's class where its name is not known."""

PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "double": (float,),
    "boolean": (bool,),
    "string[]": (tuple, list),
    "double[]": (tuple, list),
    "any": (str,),
}


def problems_of(span: SpanRecord, *, allows_content: bool = False, needs_exceptions: bool = True) -> list[str]:
    """Return what is wrong with one span by itself; *needs_exceptions*: an error has its exception on a span, not in a log."""
    kind = span_type_of(span.name)
    if kind is None:
        return [f"{span.name!r} is no span name of ours"]
    found = [
        *_name(span, kind),
        *_carried(span.attributes, _due(span, kind), allows_content),
        *_events(span, kind, allows_content),
        *_links(span, kind),
        *_status(span, kind, needs_exceptions),
    ]
    if span.kind.upper() not in kind.kinds:
        found.append(f"kind is {span.kind.upper()}, not {' or '.join(kind.kinds)}")
    if len(span.attributes) >= ATTRIBUTE_COUNT:
        found.append(f"has {len(span.attributes)} attributes")
    if span.end_ns < span.start_ns:
        found.append("ends before it starts")
    return [f"{span.name!r}: {problem}" for problem in found]


def _name(span: SpanRecord, kind: SpanType) -> Iterator[str]:
    subject = span.attributes.get(kind.subject)
    wanted = f"{kind.id} {subject}" if subject is not None else kind.id
    if span.name != wanted and not (subject is None and kind.id in NAMED_BY_CLASS):
        yield f"should be called {wanted!r}"
    operation = span.attributes.get(semconv.OPERATION_NAME, kind.id)
    if operation != kind.id:
        yield f"{semconv.OPERATION_NAME} is {operation!r}"


def _due(span: SpanRecord, kind: SpanType) -> tuple[Use, ...]:
    """Return what the span may and must carry; one whose process died has no more than it began with."""
    if span.attributes.get(semconv.SPAN_ABANDONED) is not True:
        return kind.attributes
    return tuple(replace(use, level="recommended") if use.attribute == kind.status else use for use in kind.attributes)


def _carried(attributes: Mapping[str, Any], uses: Iterable[Use], allows_content: bool) -> Iterator[str]:
    known = {use.attribute: use for use in uses}
    for use in known.values():
        if use.level == "required" and use.attribute not in attributes:
            yield f"lacks {use.attribute}"
    for name, value in attributes.items():
        if name in known:
            yield from _value(ATTRIBUTES[name], value)
            if ATTRIBUTES[name].is_content and not allows_content:
                yield f"carries content: {name}"
        elif name.startswith(RESERVED) or name in ATTRIBUTES:
            yield f"must not carry {name}"
        size = _bytes(value)
        limit = STACKTRACE_BYTES if name == semconv.EXCEPTION_STACKTRACE else VALUE_BYTES
        if size > limit:
            yield f"{name} has {size} bytes"


def problems_of_log_record(name: str, severity: str, attributes: Mapping[str, Any], *, allows_content: bool = False) -> list[str]:
    """Return what is wrong with a log record of event *name*; content may be structured there, and of any size."""
    event = EVENTS.get(name)
    if event is None or not event.in_logs:
        return [f"log record {name!r}: no event of ours"]
    content = {key for key in attributes if key in ATTRIBUTES and ATTRIBUTES[key].is_content}
    found = [f"carries content: {key}" for key in sorted(content) if not allows_content]
    plain = {key: value for key, value in attributes.items() if key not in content}
    found += _carried(plain, (*event.attributes, *event.in_logs_too), allows_content)
    if severity != event.severity and not (severity == "ERROR" and semconv.ERROR_TYPE in attributes):
        found.append(f"its severity is {severity}, not {event.severity}")
    return [f"log record {name!r}: {problem}" for problem in found]


def _value(attribute: Attribute, value: Any) -> Iterator[str]:
    fits = type(value) in PYTHON_TYPES[attribute.type]
    items = {"string[]": str, "double[]": float}.get(attribute.type)
    if not fits or (items is not None and not all(isinstance(item, items) for item in value)):
        yield f"{attribute.name} is {value!r}, no {attribute.type}"
    elif attribute.values and str(value).lower() not in {v.lower() for v in attribute.values}:
        yield f"{attribute.name} is {value!r}, none of {', '.join(attribute.values)}"


def _bytes(value: Any) -> int:
    if isinstance(value, (tuple, list)):
        return sum(map(_bytes, value))
    return len(value.encode(errors="replace")) if isinstance(value, str) else 8


def _events(span: SpanRecord, kind: SpanType, allows_content: bool) -> Iterator[str]:
    for event in span.events:
        if event.name in kind.events:
            for problem in _carried(event.attributes, EVENTS[event.name].attributes, allows_content):
                yield f"event {event.name}: {problem}"
        elif event.name.startswith(RESERVED) or event.name in EVENTS:
            yield f"must not have an event {event.name}"


def _links(span: SpanRecord, kind: SpanType) -> Iterator[str]:
    for link in span.links:
        if link.attributes.get(semconv.LINK_KIND) not in kind.links:
            yield f"must not have a link {dict(link.attributes)}"


def _status(span: SpanRecord, kind: SpanType, needs_exceptions: bool) -> Iterator[str]:
    is_error = span.status == "error"
    if span.status == "ok":
        yield "status is OK; success is Unset"
    if is_error is not (semconv.ERROR_TYPE in span.attributes):
        yield f"status is {span.status} and {semconv.ERROR_TYPE} is {span.attributes.get(semconv.ERROR_TYPE)!r}"
    exceptions = sum(event.name == semconv.EXCEPTION_EVENT for event in span.events)
    # An attempt may leave its exception to the task, see problems_among.
    is_missing = is_error and not exceptions and needs_exceptions and kind.id != semconv.ATTEMPT_SPAN
    if exceptions > 1 or (not is_error and exceptions) or is_missing:
        yield f"status is {span.status} and it has {exceptions} exception events"
    ending = span.attributes.get(kind.status)
    if kind.status and is_error is not (ending in kind.failures):
        yield f"status is {span.status} and {kind.status} is {ending!r}"
    if is_error and semconv.CALL_STATUS in span.attributes:
        yield f"status is error and {semconv.CALL_STATUS} is {span.attributes[semconv.CALL_STATUS]!r}"


def problems_among(spans: Iterable[SpanRecord], *, needs_exceptions: bool = True) -> list[str]:
    """Return what is wrong with how the spans of traces lie in each other; a parent that is not among them is not judged."""
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    found: list[str] = []
    for span in by_id.values():
        if (kind := span_type_of(span.name)) is None:
            continue
        if span.parent_id is None:
            problems = [] if ANY_PARENT in kind.parents else ["has no parent"]
        else:
            parent = by_id.get((span.trace_id, span.parent_id))
            problems = [] if parent is None else [*_below(span, kind, parent, needs_exceptions), *_as_its_run(span, kind, by_id)]
        found.extend(f"{span.name!r}: {problem}" for problem in problems)
    return found


def _below(span: SpanRecord, kind: SpanType, parent: SpanRecord, needs_exceptions: bool) -> Iterator[str]:
    above = span_type_of(parent.name)
    if above is None or above.id not in kind.parents:
        yield f"lies below {parent.name!r}"
    # The root of a trace's part ends when the next part begins, whatever is still open below it.
    is_inside = span.start_ns >= parent.start_ns and span.end_ns <= parent.end_ns
    if not is_inside and parent.name != semconv.TRACE_PART_SPAN:
        after, before = (span.start_ns - parent.start_ns) / 1e6, (parent.end_ns - span.end_ns) / 1e6
        yield f"does not lie inside {parent.name!r}: starts {after} ms after it, ends {before} ms before it"
    if kind.id == semconv.ATTEMPT_SPAN and span.status == "error" and needs_exceptions:
        exceptions = [event.name for record in (span, parent) for event in record.events if event.name == semconv.EXCEPTION_EVENT]
        if not exceptions:
            yield "is an error whose exception stands neither on it nor on its task"


def _as_its_run(span: SpanRecord, kind: SpanType, by_id: Mapping[tuple[str, str], SpanRecord]) -> Iterator[str]:
    """Compare thread and namespace with the run that the span belongs to."""
    if kind.id == semconv.INVOKE_WORKFLOW:
        return
    run: SpanRecord | None = span
    while run is not None and run.name.partition(" ")[0] != semconv.INVOKE_WORKFLOW:
        run = by_id.get((run.trace_id, run.parent_id or ""))
    if run is None:
        return
    for name in (semconv.CONVERSATION_ID, semconv.CHECKPOINT_NS):
        if name in {use.attribute for use in kind.attributes} and span.attributes.get(name) != run.attributes.get(name):
            yield f"{name} is {span.attributes.get(name)!r}, its run's is {run.attributes.get(name)!r}"
