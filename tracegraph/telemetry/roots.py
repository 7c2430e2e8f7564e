"""Where spans of a run begin: is anybody recording, and what is the root span's context?

This module is imported by the drivers, so it loads no OpenTelemetry: while nobody else has loaded the
API (27 ms), no provider can have been set, and there is nothing to observe.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from tracegraph.telemetry.content.presence import may_have_content
from tracegraph.telemetry.correlation import report_once
from tracegraph.telemetry.log_provider import logger_in_use
from tracegraph.telemetry.meters import metrics_for_root
from tracegraph.telemetry.mirroring import has_records

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer, TracerProvider

    from tracegraph.callbacks.hub import Observer
    from tracegraph.events import RunStarted
    from tracegraph.telemetry.content.recorder import ContentRecorder
    from tracegraph.telemetry.logs import LogsObserver
    from tracegraph.telemetry.spans import SpanObserver

__all__ = ["attach_here", "observers_for_root", "spans_for_root", "use_provider"]

_PROVIDER_VARIABLE = "OTEL_PYTHON_TRACER_PROVIDER"


class _Choice:
    """Which provider runs use, if not the global one; and the tracer last asked for."""

    provider: TracerProvider | None = None
    retired: TracerProvider | None = None
    tracer: tuple[Any, Tracer] | None = None


def use_provider(provider: TracerProvider | None, *, retired: TracerProvider | None = None) -> None:
    """Send the spans of later runs to *provider* rather than to the global one (``None``: the global one again).

    Runs are not observed at all while *retired*, a provider that was shut down, is still the global one.
    """
    _Choice.provider = provider
    _Choice.retired = retired


def observers_for_root(started: RunStarted) -> tuple[list[Observer], Context | None]:
    """Return what observes a root run for each signal that has a provider, and the context its code must run in.

    Spans come first: the other signals ask them which span they belong to. See :func:`spans_for_root`.
    """
    content = _content()
    spans, context = spans_for_root(started, content=content)
    # Metrics and records are not only of runs that are sampled: metrics count them all.
    metrics = metrics_for_root(started, spans, context)
    observers: list[Observer] = []
    if spans is not None:
        observers.append(spans)
    if metrics is not None:
        observers.append(metrics)
    if spans is None and content is not None and content.is_useful_without_spans:
        from tracegraph.telemetry.content.observer import ContentObserver

        content.context = context
        observers.append(ContentObserver(content))
    try:
        if (logger := logger_in_use()) is not None and has_records():
            observers.append(_logs_observer()(logger, context, spans))
    except Exception as error:  # noqa: BLE001  # the application's logger provider; its spans go on without
        report_once("runs make no log records", error)
    return observers, context


def spans_for_root(
    started: RunStarted, *, provider: TracerProvider | None = None, content: ContentRecorder | None = None
) -> tuple[SpanObserver | None, Context | None]:
    """Start the span of a root run; return what observes the run and the context its code must run in.

    Call it once per root run, in the caller's context, before the run's own context is copied; then call
    :func:`attach_here` with the second item, if any, inside that copy.

    Returns:
        ``(None, None)`` if no provider is set; ``(None, context)`` if the run is sampled out: the context
        holds the unsampled span, so that spans of node code are left out as well; else both.
    """
    tracer = _tracer(provider) if provider is not None or _may_have_provider() else None
    if tracer is None:
        return None, None
    return _span_observer().open(started, tracer, content)


def _content() -> ContentRecorder | None:
    """Return what records the content of a root run; None, as a rule, for nothing is to be recorded."""
    if not may_have_content():
        return None
    from tracegraph.telemetry.content.choice import active_logger_provider, active_policy

    policy = active_policy()
    if policy.is_off:
        return None
    from tracegraph.telemetry.calls import request_of
    from tracegraph.telemetry.content.details import find_logger
    from tracegraph.telemetry.content.recorder import ContentRecorder
    from tracegraph.telemetry.model_calls import model_answer

    logger = (logger_in_use() or find_logger(active_logger_provider())) if policy.emits_events else None
    return ContentRecorder(policy, logger, lambda event: request_of(event)[2], model_answer)


def attach_here(context: Context | None) -> None:
    """Make *context* current in the running ``contextvars.Context``, for as long as that lives.

    There is no detach on purpose: the Context is a run's or a task's own and is thrown away. Detaching is
    what fails with "created in a different Context" when a generator is closed elsewhere.
    """
    if context is not None:
        _context_api().attach(context)


def _may_have_provider() -> bool:
    return "opentelemetry.trace" in sys.modules or _Choice.provider is not None or _PROVIDER_VARIABLE in os.environ


def _tracer(given: TracerProvider | None) -> Tracer | None:
    provider = given if given is not None else _Choice.provider
    if provider is None:
        provider = _trace_api().get_tracer_provider()
    # One slot is enough: an application has one provider, and a race merely asks twice.
    if (cached := _Choice.tracer) is not None and cached[0] is provider and provider is not _Choice.retired:
        return cached[1]
    trace = _trace_api()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)) or provider is _Choice.retired:
        return None
    from tracegraph.telemetry import semconv

    tracer = provider.get_tracer(semconv.SCOPE_NAME, semconv.SCOPE_VERSION, schema_url=semconv.SCHEMA_URL)
    _Choice.tracer = (provider, tracer)
    return tracer


# An import in a function takes a microsecond with nothing to load, and the shortest runs would notice a handful of these.


@cache
def _trace_api() -> Any:
    from opentelemetry import trace

    return trace


@cache
def _context_api() -> Any:
    from opentelemetry import context

    return context


@cache
def _span_observer() -> type[SpanObserver]:
    from tracegraph.telemetry.spans import SpanObserver

    return SpanObserver


@cache
def _logs_observer() -> type[LogsObserver]:
    from tracegraph.telemetry.logs import LogsObserver

    return LogsObserver
