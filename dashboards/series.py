"""PromQL over the instruments of the registry, under the names and labels that Prometheus has them by.

The exporter for Prometheus, Prometheus' own OTLP receiver and the collector all translate the same way: what is no letter
or digit becomes ``_``, a unit is spelled out at the end, and a counter ends with ``_total``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tracegraph.telemetry.semconv.model import Metric
from tracegraph.telemetry.semconv.registry import METRICS

__all__ = ["TARGET_LABELS", "Series", "label_of", "name_of", "per", "samples_of", "share"]

TARGET_LABELS: Final = ("job", "instance")
"""What Prometheus itself says of where a series comes from; ``job`` is the program's ``service.name``."""

RATE_WINDOW: Final = "$__rate_interval"
WHOLE_RANGE: Final = "$__range"
_UNITS: Final = {"s": "seconds", "ms": "milliseconds", "By": "bytes"}


def label_of(attribute: str) -> str:
    """Return the label that an attribute of a metric becomes.

    >>> label_of("gen_ai.workflow.name")
    'gen_ai_workflow_name'
    """
    return re.sub(r"[^a-zA-Z0-9_]", "_", attribute)


def name_of(metric: Metric) -> str:
    """Return the name of a metric in Prometheus; that of a histogram has no series of its own.

    >>> name_of(METRICS["gen_ai.run_step.duration"]), name_of(METRICS["tracegraph.task.retries"])
    ('gen_ai_run_step_duration_seconds', 'tracegraph_task_retries_total')
    """
    words = [label_of(metric.name)]
    unit = _UNITS.get(metric.unit)
    if unit and not words[0].endswith(f"_{unit}"):
        words.append(unit)
    if metric.instrument == "counter":
        words.append("total")
    return "_".join(words)


def samples_of(metric: Metric) -> tuple[str, ...]:
    """Return the names of the series that a metric has.

    >>> samples_of(METRICS["tracegraph.runs.active"])
    ('tracegraph_runs_active',)
    """
    name = name_of(metric)
    return tuple(f"{name}_{part}" for part in ("bucket", "count", "sum")) if metric.instrument == "histogram" else (name,)


@dataclass(frozen=True, slots=True)
class Series:
    """The time series of one metric, as far as matchers choose them.

    Attributes in methods are those of the registry; one that the metric has not raises :class:`ValueError`.

    >>> runs = Series.of("gen_ai.invoke_workflow.duration").where({"tracegraph.nested": '=""'})
    >>> runs.per_second("error.type", window="5m")
    'sum by (error_type) (rate(gen_ai_invoke_workflow_duration_seconds_count{tracegraph_nested=""}[5m]))'
    >>> runs.per_second("gen_ai.step.name")
    Traceback (most recent call last):
    ValueError: gen_ai.invoke_workflow.duration has no attribute gen_ai.step.name
    """

    metric: Metric
    matchers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str) -> Series:
        """Return the series of the metric of this *name*; KeyError if there is none."""
        return cls(METRICS[name])

    def has(self, attribute: str) -> bool:
        """Tell whether the metric has this attribute."""
        return any(use.attribute == attribute for use in self.metric.attributes)

    def where(self, matchers: Mapping[str, str]) -> Series:
        """Return the series that also match: an operator and a quoted value for each attribute or target label."""
        return replace(self, matchers={**self.matchers, **{key: value for key, value in matchers.items() if self._label(key)}})

    def per_second(self, *by: str, window: str = RATE_WINDOW) -> str:
        """Return how often it was counted, or measured, in a second."""
        return per(f"rate({self._counted(window)})", self._labels(by))

    def increase(self, *by: str, window: str = WHOLE_RANGE) -> str:
        """Return how often it was counted, or measured, during *window*."""
        return per(f"increase({self._counted(window)})", self._labels(by))

    def quantile(self, q: float, *by: str, window: str = RATE_WINDOW) -> str:
        """Return a quantile of a histogram, interpolated within its buckets."""
        return f"histogram_quantile({q:g}, {self.buckets(*by, window=window)})"

    def buckets(self, *by: str, window: str = RATE_WINDOW) -> str:
        """Return the growth of a histogram's buckets, for a heatmap or a quantile."""
        return per(f"rate({self.selector('bucket', window)})", ("le", *self._labels(by)))

    def mean(self, *by: str, window: str = RATE_WINDOW) -> str:
        """Return the mean of what a histogram measured."""
        return f"{self.total(*by, window=window)} / {self.per_second(*by, window=window)}"

    def total(self, *by: str, window: str = RATE_WINDOW) -> str:
        """Return the sum of what a histogram measured, per second."""
        return per(f"rate({self.selector('sum', window)})", self._labels(by))

    def current(self, *by: str) -> str:
        """Return the present value of what goes up and down."""
        return per(self.selector(), self._labels(by))

    def raw(self, window: str = RATE_WINDOW) -> str:
        """Return the rate of each single series."""
        return f"rate({self._counted(window)})"

    def happened(self, *by: str, window: str) -> str:
        """Return what was counted during *window* at all, also if its series began then: `increase` misses a first time.

        >>> Series.of("tracegraph.task.retries").happened("gen_ai.step.name", window="5m")  # doctest: +NORMALIZE_WHITESPACE
        'sum by (gen_ai_step_name) (increase(tracegraph_task_retries_total[5m])) > 0
         or sum by (gen_ai_step_name) (tracegraph_task_retries_total) > 0
         unless sum by (gen_ai_step_name) (tracegraph_task_retries_total offset 5m)'
        """
        labels = self._labels(by)
        now = self._counted("")
        return f"{self.increase(*by, window=window)} > 0 or {per(now, labels)} > 0 unless {per(f'{now} offset {window}', labels)}"

    def _counted(self, window: str) -> str:
        return self.selector("count" if self.metric.instrument == "histogram" else "", window)

    def selector(self, part: str = "", window: str = "") -> str:
        """Return the series themselves: of a histogram ``bucket``, ``count`` or ``sum``, over *window* if one is given."""
        name = f"{name_of(self.metric)}_{part}" if part else name_of(self.metric)
        if name not in samples_of(self.metric):
            raise ValueError(f"{self.metric.name} is a {self.metric.instrument} and has no series {name}")
        matchers = ", ".join(f"{self._label(key)}{value}" for key, value in self.matchers.items())
        return f"{name}{f'{{{matchers}}}' if matchers else ''}{f'[{window}]' if window else ''}"

    def _labels(self, attributes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._label(attribute) for attribute in attributes)

    def _label(self, attribute: str) -> str:
        if attribute in TARGET_LABELS:
            return attribute
        if not self.has(attribute):
            raise ValueError(f"{self.metric.name} has no attribute {attribute}")
        return label_of(attribute)


def per(expression: str, labels: tuple[str, ...] = ()) -> str:
    """Return the sum of an expression, for each value of these labels.

    >>> per("up", ("job",)), per("up")
    ('sum by (job) (up)', 'sum(up)')
    """
    return f"sum by ({', '.join(labels)}) ({expression})" if labels else f"sum({expression})"


def share(part: str, whole: str) -> str:
    """Return what *part* is of *whole*, 0 where there is no such part yet.

    >>> share("sum(a)", "sum(b)")
    '(sum(a) or sum(b) * 0) / sum(b)'
    """
    return f"({part} or {whole} * 0) / {whole}"
