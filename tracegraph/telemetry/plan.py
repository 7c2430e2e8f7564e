"""What one call of :func:`tracegraph.telemetry.setup` will change, as one value. Loads the SDK.

All that can be refused is refused while the plan is made, and a plan that is refused leaves nothing behind: what was made for
it is discarded. To carry it out is to put what was made in its place.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry import otlp, sinks, tracer_provider
from tracegraph.telemetry.log_setup import LogPipeline, LogPlan
from tracegraph.telemetry.mirroring import check_events
from tracegraph.telemetry.options import DEFAULT_OPTIONS, TelemetryOptions

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from tracegraph.telemetry.content import Capture, ContentPolicy
    from tracegraph.telemetry.log_lines import LogForm
    from tracegraph.telemetry.mirroring import Events
    from tracegraph.telemetry.readers import Meters

__all__ = ["Asked", "Plan", "Standing", "make_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The arguments of a call."""

    provider: TracerProvider | None
    service_name: str | None
    store: bool | str | Path | None
    console: bool
    exporters: Sequence[SpanExporter]
    logs: LogForm | None
    events: Events | None
    logger_provider: LoggerProvider | None
    log_exporters: Sequence[LogRecordExporter]
    capture: ContentPolicy | Capture | str | bool | None
    options: TelemetryOptions | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What earlier calls have set up, as far as a plan depends on it; by default nothing."""

    provider: TracerProvider | None = None
    sink_keys: frozenset[str] = frozenset()
    logs: LogPipeline | None = None
    has_meters: bool = False
    options: TelemetryOptions = DEFAULT_OPTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be put in place; nobody sees any of it yet."""

    provider: TracerProvider
    is_own_provider: bool
    sinks: tuple[sinks.Sink, ...]
    logs: LogPlan
    meters: Meters | None
    content: ContentPolicy | None
    """None: as it is."""
    has_events: bool
    """Whether *events* takes the place of what was chosen."""
    events: Events | None
    options: TelemetryOptions


def make_plan(asked: Asked, standing: Standing | None) -> Plan:
    """Return what has to change from *standing* (None: nothing was set up) to what is *asked*.

    Raises:
        InvalidInputError: it cannot be, see :func:`tracegraph.telemetry.setup`; nothing was changed.
        Exception: whatever an exporter or the SDK raises about variables of its own; nothing was changed either.
    """
    is_first, standing = standing is None, standing or Standing()
    _check_words(asked, is_first=is_first)
    with ExitStack() as undo:
        provider, is_own = _provider(asked, standing)
        plan = Plan(
            provider=provider,
            is_own_provider=is_own,
            content=_content(asked, undo) if is_first or asked.capture is not None else None,
            has_events=is_first or asked.events is not None,
            events=asked.events,
            options=standing.options if asked.options is None else asked.options,
            logs=_logs(asked, standing, provider, undo),
            meters=_meters(asked, standing, provider, undo),
            sinks=_sinks(asked, standing, undo, is_own=is_own),
        )
        undo.pop_all()
    return plan


def _check_words(asked: Asked, *, is_first: bool) -> None:
    """Refuse the arguments that are wrong in themselves."""
    _check_lines(asked.logs)
    if is_first or asked.events is not None:
        check_events(asked.events)
    if not isinstance(asked.options, TelemetryOptions | None):
        raise InvalidInputError(f"options takes TelemetryOptions(...), not {asked.options!r}")
    if asked.provider is not None:
        tracer_provider.check_takes_processors(asked.provider, "provider")


def _check_lines(form: LogForm | None) -> None:
    """Refuse an unknown form of log lines."""
    if form is not None:
        from tracegraph.telemetry.log_lines import check_form

        check_form(form)


def _provider(asked: Asked, standing: Standing) -> tuple[TracerProvider, bool]:
    """Return the provider to feed, and whether it is the global one made here, now or earlier."""
    own = tracer_provider.own_provider()
    chosen = standing.provider or asked.provider or tracer_provider.application_provider()
    if chosen is not None:
        return chosen, chosen is own
    return own or tracer_provider.new_provider(asked.service_name), True


def _sinks(asked: Asked, standing: Standing, undo: ExitStack, *, is_own: bool) -> tuple[sinks.Sink, ...]:
    names = [] if asked.provider is not None else sinks.environment_names() if is_own else [sinks.STORE]
    made = sinks.make_sinks(
        names, asked.store, has_console=asked.console, exporters=asked.exporters, present=standing.sink_keys, undo=undo
    )
    return tuple(made)


def _logs(asked: Asked, standing: Standing, provider: TracerProvider, undo: ExitStack) -> LogPlan:
    """Plan for the pipeline that there is, or for a new one if another provider is given than it feeds."""
    pipeline = standing.logs
    if pipeline is None or not pipeline.feeds(asked.logger_provider):
        pipeline = LogPipeline(asked.logger_provider)
    return pipeline.plan(
        asked.log_exporters,
        has_environment=asked.provider is None,
        resource=lambda: getattr(provider, "resource", None),
        undo=undo,
    )


def _meters(asked: Asked, standing: Standing, provider: Any, undo: ExitStack) -> Meters | None:
    """Return a meter provider with the readers that the environment asks for, if any; of the same service as the spans."""
    names = otlp.exporter_names("METRICS", ["otlp"] if otlp.endpoint("METRICS") else [])
    if not names or standing.has_meters or asked.provider is not None:
        return None
    # Loaded only now: the metrics half of the SDK is a tenth of what a short command takes.
    from tracegraph.telemetry import readers

    if readers.has_application_provider():
        return None
    made = readers.Meters(names, getattr(provider, "resource", None) or tracer_provider.own_resource(asked.service_name))
    undo.callback(made.shutdown)
    return made


def _content(asked: Asked, undo: ExitStack) -> ContentPolicy | None:
    """Return the policy that the call or the environment asks for, None if neither says anything."""
    from tracegraph.telemetry.content.capture import VARIABLES

    if asked.capture is None and not any(variable in os.environ for variable in VARIABLES):
        return None
    from tracegraph.telemetry.content.choice import policy_from_environment

    policy = policy_from_environment(asked.capture)
    if policy is not asked.capture and policy.upload is not None:
        undo.callback(atexit.unregister, policy.upload.shutdown)
    return policy
