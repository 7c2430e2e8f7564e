"""The instruments that runs are measured with are those of the registry, and the other way round."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider

from tracegraph.telemetry.instruments import Instruments
from tracegraph.telemetry.semconv.registry import METRICS


class Recording:
    """A meter that notes what is made with it."""

    def __init__(self) -> None:
        self._meter = MeterProvider(shutdown_on_exit=False).get_meter("tests")
        self.made: dict[str, tuple[str, str, str, tuple[float, ...]]] = {}

    def __getattr__(self, name: str) -> Any:
        kind = name.removeprefix("create_").removeprefix("observable_").replace("_", "")

        def create(called: str, unit: str, description: str, **rest: Any) -> Any:
            self.made[called] = kind, unit, description, tuple(rest.get("explicit_bucket_boundaries_advisory") or ())
            return getattr(self._meter, name)(called, unit=unit, description=description, **rest)

        return create


def test_instruments_are_those_of_the_registry() -> None:
    """Kind, unit, description and buckets of each."""
    meter = Recording()

    Instruments(meter)

    assert meter.made == {name: (m.instrument, m.unit, m.description, m.buckets) for name, m in METRICS.items()}
