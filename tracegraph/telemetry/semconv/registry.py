"""All that telemetry may say, by name: for validators, dashboards, and whoever writes an exporter.

>>> ATTRIBUTES["tracegraph.superstep.commit_ms"].unit
'ms'
>>> SPANS["run_step"].parents
('invoke_workflow', 'trace part', 'superstep', 'run_step', 'attempt')
>>> [use.attribute for use in SPANS["chat"].attributes if use.level == "required"]
['gen_ai.operation.name', 'gen_ai.provider.name']
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tracegraph.telemetry.semconv import attributes, events, metrics, spans
from tracegraph.telemetry.semconv.model import Attribute, Event, Metric, SpanType

__all__ = ["ATTRIBUTES", "EVENTS", "METRICS", "SPANS", "span_type_of"]

ATTRIBUTES: Final[Mapping[str, Attribute]] = MappingProxyType({a.name: a for a in attributes.ATTRIBUTES})
SPANS: Final[Mapping[str, SpanType]] = MappingProxyType({s.id: s for s in spans.SPANS})
EVENTS: Final[Mapping[str, Event]] = MappingProxyType({e.name: e for e in events.EVENTS})
METRICS: Final[Mapping[str, Metric]] = MappingProxyType({m.name: m for m in metrics.METRICS})


def span_type_of(name: str) -> SpanType | None:
    """Return what kind of span one of this *name* is; None if it is none of ours.

    >>> span_type_of("run_step grade").id, span_type_of("checkpoint put").id, span_type_of("GET /")
    ('run_step', 'checkpoint put', None)
    """
    found = SPANS.get(name)
    if found is not None:
        return found
    found = SPANS.get(name.partition(" ")[0])
    return found if found is not None and found.subject else None
