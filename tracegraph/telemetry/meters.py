"""Which meter provider measures runs, if any. As :mod:`tracegraph.telemetry.roots`, this loads no OpenTelemetry by itself."""

from __future__ import annotations

import os
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider

    from tracegraph.events import RunStarted
    from tracegraph.telemetry.instruments import Instruments
    from tracegraph.telemetry.metrics import MetricsObserver
    from tracegraph.telemetry.spans import SpanObserver

__all__ = ["is_real", "is_stand_in", "metrics_for_root", "use_meter_provider"]

_PROVIDER_VARIABLE = "OTEL_PYTHON_METER_PROVIDER"


class _Choice:
    """Which provider runs use, if not the global one; the instruments last used; and the global stand-in last seen.

    Every run asks, so the two are known by identity.
    """

    provider: MeterProvider | None = None
    instruments: tuple[Any, Instruments] | None = None
    stand_in: MeterProvider | None = None


_lock = threading.Lock()
_made: WeakKeyDictionary[MeterProvider, Instruments] = WeakKeyDictionary()
"""The SDK exports an instrument that is made twice twice, so each provider's are kept for as long as it lives."""


def use_meter_provider(provider: MeterProvider | None) -> None:
    """Measure later runs with *provider* rather than the global one (``None``: the global one again)."""
    _Choice.provider = provider


def metrics_for_root(started: RunStarted, spans: SpanObserver | None, context: Context | None) -> MetricsObserver | None:
    """Return what measures a root run, ``None`` if no meter provider is set.

    Args:
        spans: makes the run's spans, which measurements are exemplars of; None if there are none, or they are sampled out.
        context: the one that the run's code runs in; None: the caller's.
    """
    instruments = _instruments() if _may_have_provider() else None
    if instruments is None:
        return None
    return _metrics_observer().open(started, instruments, spans, context)


def is_stand_in(provider: MeterProvider) -> bool:
    """Say whether *provider* is one of those that the API itself brings: they do nothing, or wait for another to be set."""
    return type(provider).__module__.startswith("opentelemetry.metrics")


def is_real(provider: MeterProvider) -> bool:
    """Say whether *provider* measures anything: no stand-in, nor one that setup() made and shut down."""
    return not (getattr(provider, "is_retired", False) or is_stand_in(provider))


def _may_have_provider() -> bool:
    return "opentelemetry.metrics" in sys.modules or _Choice.provider is not None or _PROVIDER_VARIABLE in os.environ


def _instruments() -> Instruments | None:
    provider = _Choice.provider
    if provider is None:
        provider = _metrics_api().get_meter_provider()
        if provider is _Choice.stand_in:
            return None
    if not is_real(provider):
        _Choice.stand_in = provider if is_stand_in(provider) else None
        return None
    if (cached := _Choice.instruments) is not None and cached[0] is provider:
        return cached[1]
    with _lock:
        made = _made.get(provider)
        if made is None:
            from tracegraph.telemetry import semconv
            from tracegraph.telemetry.instruments import Instruments

            meter = provider.get_meter(semconv.SCOPE_NAME, semconv.SCOPE_VERSION, schema_url=semconv.SCHEMA_URL)
            made = _made[provider] = Instruments(meter)
    _Choice.instruments = (provider, made)
    return made


# As in roots: an import in a function takes its time even when there is nothing to load.


@cache
def _metrics_api() -> Any:
    from opentelemetry import metrics

    return metrics


@cache
def _metrics_observer() -> type[MetricsObserver]:
    from tracegraph.telemetry.metrics import MetricsObserver

    return MetricsObserver
