"""Which words queries may use: what the registry, and the known metrics of others, come to in PromQL, TraceQL and LogQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from dashboards import foreign
from dashboards.prices import PART, PRICE
from dashboards.series import TARGET_LABELS, label_of, samples_of
from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import Event
from tracegraph.telemetry.semconv.registry import ATTRIBUTES, EVENTS, METRICS, SPANS, span_type_of

__all__ = ["SERIES", "unknown_in_logql", "unknown_in_promql", "unknown_in_traceql"]


def _series() -> Iterator[tuple[str, frozenset[str]]]:
    for metric in METRICS.values():
        labels = {label_of(use.attribute) for use in metric.attributes}
        for sample in samples_of(metric):
            yield sample, frozenset(labels | ({"le"} if sample.endswith("_bucket") else set()))
    for name in foreign.KNOWN_METRICS:
        yield name, foreign.KNOWN_LABELS
    yield PRICE, frozenset({label_of(names.REQUEST_MODEL), PART})


SERIES: Final[Mapping[str, frozenset[str]]] = {name: labels | set(TARGET_LABELS) for name, labels in _series()}
"""Each series that may be queried, with its labels."""

_LABELS: Final = frozenset().union(*SERIES.values())
_AGGREGATED: Final = ("sum", "min", "max", "by", "without", "rate", "increase", "histogram_quantile", "vector")
_COMBINED: Final = ("on", "group_left", "or", "and", "unless", "offset", "__name__")
_PROMQL: Final = frozenset((*_AGGREGATED, *_COMBINED))
_STRING: Final = re.compile(r'"[^"]*"')
_WORD: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def unknown_in_promql(query: str) -> Iterator[str]:
    """Yield metrics and labels that there are not, and labels that a metric has not.

    >>> list(unknown_in_promql('rate(tracegraph_task_retries_total{gen_ai_tool_name="x"}[5m])'))
    ['tracegraph_task_retries_total{gen_ai_tool_name}']
    >>> list(unknown_in_promql('sum by (gen_ai_step_nam) (tracegraph_retries{job="a"})'))
    ['gen_ai_step_nam', 'tracegraph_retries']
    """
    query = re.sub(r'\{__name__=~"([^"]*)"\}', lambda found: " ".join(re.findall(r"otelcol_[a-z_]*[a-z]", found[1])), query)
    for name, matchers in re.findall(rf"({_WORD.pattern})\{{([^}}]*)\}}", query):
        for label in _WORD.findall(_STRING.sub("", matchers)):
            if name in SERIES and label not in SERIES[name]:
                yield f"{name}{{{label}}}"
    bare = re.sub(r"\[[^]]*\]|\$\w+|offset \w+|\b\d\w*", " ", _STRING.sub("", query))
    for word in dict.fromkeys(_WORD.findall(bare)):
        if word not in SERIES and word not in _LABELS and word not in _PROMQL:
            yield word


def unknown_in_traceql(query: str) -> Iterator[str]:
    """Yield attributes, values of attributes and names of spans that there are not.

    >>> list(unknown_in_traceql('{ name =~ "run_stp a" && span.tracegraph.run.status = "broken" && span.nothing > 1 }'))
    ['run_stp a', 'nothing', 'tracegraph.run.status = broken']
    """
    for name in re.findall(r'\bname =~? "([^"]*)"', query):
        if span_type_of(re.sub(r" ?\??\$\{.*", "", name).removesuffix(" ?")) is None and name not in SPANS:
            yield name
    for attribute in re.findall(r"\bspan\.([\w.]+)", query):
        if attribute not in ATTRIBUTES:
            yield attribute
    for attribute, values in re.findall(r'\bspan\.([\w.]+) =~? "([^"]*)"', query):
        yield from _unknown_values(attribute, values)


def _unknown_values(attribute: str, values: str) -> Iterator[str]:
    known = ATTRIBUTES[attribute].values if attribute in ATTRIBUTES else ()
    yield from (f"{attribute} = {value}" for value in values.split("|") if known and value not in known)


def _in_logs(event: Event) -> Iterator[str]:
    yield from (label_of(use.attribute) for use in (*event.attributes, *event.in_logs_too))


_RECORDS: Final = frozenset(label for event in EVENTS.values() if event.in_logs for label in _in_logs(event))
_LOKI: Final = frozenset({"service_name", "scope_name", "trace_id", "span_id", "severity_text"})
_ATTRIBUTE_OF: Final = {label_of(name): name for name in ATTRIBUTES}


def unknown_in_logql(query: str) -> Iterator[str]:
    """Yield labels that no log record of ours has, and values that an attribute cannot have.

    >>> list(unknown_in_logql('{service_name=~"a"} | tracegraph_run_status="broken" | nothing!=""'))
    ['tracegraph.run.status = broken', 'nothing']
    """
    for label, values in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"', query):
        if label in _RECORDS:
            yield from _unknown_values(_ATTRIBUTE_OF[label], values) if values else ()
        elif label not in _LOKI:
            yield label
