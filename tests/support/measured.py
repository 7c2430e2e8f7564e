"""What an in-memory reader of metrics has, as flat points that tests can look through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader


@dataclass(frozen=True)
class Point:
    """One time series as last read."""

    name: str
    unit: str
    attributes: dict[str, Any]
    count: int
    """Measurements of a histogram, 1 of others."""
    sum: float
    """Their sum; of a counter its value."""
    bounds: tuple[float, ...]
    exemplars: tuple[Any, ...]


class Measured:
    """A meter provider, and what was recorded with it."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def all(self) -> list[Point]:
        """Return every time series."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return [
            Point(
                metric.name,
                metric.unit or "",
                dict(point.attributes or {}),
                getattr(point, "count", 1),
                getattr(point, "sum", getattr(point, "value", 0)),
                tuple(getattr(point, "explicit_bounds", ())),
                tuple(point.exemplars),
            )
            for scope in scopes
            for metric in scope.metrics
            for point in metric.data.data_points
        ]

    def scopes(self) -> list[tuple[str, str | None]]:
        """Return name and schema URL of every instrumentation scope."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return [(scope.scope.name, scope.schema_url) for scope in scopes]

    def of(self, name: str, **attributes: Any) -> list[Point]:
        """Return the time series of an instrument; *attributes* (dots as underscores) are those it must have."""
        wanted = {key.replace("_", "."): value for key, value in attributes.items()}
        return [
            point
            for point in self.all()
            if point.name == name
            and all(
                {k.replace("_", "."): v for k, v in point.attributes.items()}.get(key) == value for key, value in wanted.items()
            )
        ]

    def one(self, name: str, **attributes: Any) -> Point:
        """Return the only time series of an instrument with these attributes."""
        (point,) = self.of(name, **attributes)
        return point

    def names(self) -> set[str]:
        """Return the names of the instruments that something was recorded with."""
        return {point.name for point in self.all()}
