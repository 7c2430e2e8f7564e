"""The registry as a page of Markdown: ``docs/telemetry.md``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import ANY_PARENT, Attribute, Event, Metric, SpanType, Use
from tracegraph.telemetry.semconv.registry import ATTRIBUTES, EVENTS, METRICS, SPANS

__all__ = ["telemetry_page"]

_HEAD: Final = f"""\
<!-- Written by `python -m tracegraph.telemetry.semconv`; change the registry in tracegraph/telemetry/semconv, not this page. -->

# What telemetry says

Every span, event, attribute and metric of tracegraph. How to read them is told in [Tracing](tracing.md). In a program the same
is in `tracegraph.telemetry.semconv.registry`:

```python
>>> from tracegraph.telemetry.semconv import registry
>>> registry.ATTRIBUTES["tracegraph.task.queued_ms"].unit
'ms'

```

The instrumentation scope is `{names.SCOPE_NAME}`, its version the package's, its schema URL `{names.SCHEMA_URL}`.

**Sources.** *core*: OpenTelemetry's semantic conventions. *genai*: the conventions for generative AI as of October 2026, which
have no release in this form yet. *genai 1.41*: their last release, where it has another name. *proposal*: an open one to them.
*openinference*: what Arize Phoenix draws its views from, in that profile only. *tracegraph*: ours, where none of these has a
word. All but *core* are in development: names may change, and only here.

**Levels.** *required*: always there. *conditionally required*: there exactly if what is said beside it holds. *recommended*:
there as far as it is known. *opt-in*: only if somebody asked for it; all content is.
"""


def telemetry_page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_spans(), *_events(), *_metrics(), *_attributes()])


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    columns = tuple(columns)
    yield _row(columns)
    yield _row("---" for _ in columns)
    yield from map(_row, rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _uses(uses: Iterable[Use]) -> Iterator[str]:
    return _table(
        ("attribute", "type", "level"),
        (
            (
                f"`{use.attribute}`",
                ATTRIBUTES[use.attribute].type,
                f"{use.level}: {use.condition}" if use.condition else use.level,
            )
            for use in uses
        ),
    )


def _spans() -> Iterator[str]:
    yield "## Spans\n"
    for span in SPANS.values():
        yield from _span(span)


def _span(span: SpanType) -> Iterator[str]:
    parents = [p for p in span.parents if p != ANY_PARENT]
    yield f"### `{span.name}`\n"
    yield f"{span.description}\n"
    yield f"- kind {' or '.join(span.kinds)}; source {span.source}; {span.stability}"
    yield f"- lies right below {_code(parents)}{', or any other span or none' if ANY_PARENT in span.parents else ''}"
    if span.failures:
        yield f"- status ERROR exactly if `{span.status}` is {_code(span.failures)}; never OK"
    if span.events:
        yield f"- events {_code(span.events)}"
    if span.links:
        yield f"- links with `{names.LINK_KIND}` {_code(span.links)}"
    yield ""
    yield from _uses(span.attributes)


def _events() -> Iterator[str]:
    yield "## Events\n"
    yield "A log record that tells of a failure has severity ERROR whatever is said below.\n"
    for event in EVENTS.values():
        yield from _event(event)


def _event(event: Event) -> Iterator[str]:
    where = " and ".join([*(["log record"] if event.in_logs else []), *(["event of a span"] if event.on_spans else [])])
    severity = f" of severity {event.severity}" if event.in_logs else ""
    yield f"### `{event.name}`\n"
    yield f"{event.description} {where[0].upper()}{where[1:]}{severity}; source {event.source}; {event.stability}.\n"
    if event.attributes:
        yield from _uses(event.attributes)
    if event.in_logs_too:
        yield "The log record has these too:\n"
        yield from _uses(event.in_logs_too)


def _metrics() -> Iterator[str]:
    yield "## Metrics\n"
    yield "No thread, run, checkpoint or task id is ever on a metric.\n"
    for metric in METRICS.values():
        yield from _metric(metric)


def _metric(metric: Metric) -> Iterator[str]:
    yield f"### `{metric.name}`\n"
    yield f"{metric.description} A {metric.instrument} in `{metric.unit}`; source {metric.source}; {metric.stability}.\n"
    if metric.buckets:
        yield f"Buckets: {', '.join(f'{bound:g}' if bound < 1e5 else str(int(bound)) for bound in metric.buckets)}.\n"
    yield from _uses(metric.attributes)


def _attributes() -> Iterator[str]:
    yield "## Attributes\n"
    yield from _table(
        ("attribute", "type", "unit", "source", "stability", "meaning"),
        (
            (f"`{a.name}`", a.type, f"`{a.unit}`" if a.unit else "", a.source, a.stability, _meaning(a))
            for a in sorted(ATTRIBUTES.values(), key=lambda a: a.name)
        ),
    )


def _meaning(attribute: Attribute) -> str:
    values = f" One of {_code(attribute.values)}." if len(attribute.values) > 1 else ""
    return f"{attribute.description}{values}{' **Content.**' if attribute.is_content else ''}"
