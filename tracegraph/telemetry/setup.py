"""Configure the OpenTelemetry SDK for an application that has not done so itself.

Where spans go:

- ``OTEL_TRACES_EXPORTER`` set: exactly to the exporters it names (``none``: nowhere), found as entry points;
  ``otlp`` follows ``OTEL_EXPORTER_OTLP_PROTOCOL``.
- not set: to the embedded SQLite store, and by OTLP as well if ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its
  ``_TRACES_`` form) is set, through a spool on disk (``tracegraph_spool``) that keeps what a collector does not take yet.
- arguments add to that: a store path, the console tree, exporters of your own.

Where metrics go, if the application has set no meter provider of its own:

- ``OTEL_METRICS_EXPORTER`` set: to what it names: ``otlp``, ``console``, ``prometheus`` (an HTTP endpoint, on the loopback
  interface unless ``OTEL_EXPORTER_PROMETHEUS_HOST`` says otherwise), another entry point's name, ``none``.
- not set: by OTLP if ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its ``_METRICS_`` form) is set, else nowhere, and nothing is measured.

Log records go where ``OTEL_LOGS_EXPORTER`` and the OTLP variables say in the same way, through the spool too; there is no
store for them.

``OTEL_SDK_DISABLED=true`` switches everything off; sampler, resource, limits and batching variables are the
SDK's own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tracegraph.telemetry.deadline import Deadline
from tracegraph.telemetry.meters import use_meter_provider
from tracegraph.telemetry.mirroring import Events, use_events
from tracegraph.telemetry.options import DEFAULT_OPTIONS, TelemetryOptions, use_options
from tracegraph.telemetry.roots import use_provider

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from tracegraph.telemetry.content import Capture, ContentPolicy
    from tracegraph.telemetry.content.upload import Upload
    from tracegraph.telemetry.log_lines import LogForm
    from tracegraph.telemetry.log_setup import LogPipeline, LogPlan
    from tracegraph.telemetry.plan import Plan, Standing
    from tracegraph.telemetry.readers import Meters
    from tracegraph.telemetry.sinks import Sink

__all__ = ["Telemetry", "setup"]

_lock = threading.RLock()
_active: Telemetry | None = None


class Telemetry:
    """What :func:`setup` configured; a context manager that shuts it down.

    ``provider`` is None if the SDK is disabled; ``store_path`` is None unless spans go to the SQLite store.
    """

    def __init__(self, provider: TracerProvider | None) -> None:
        self.provider = provider
        self.store_path: Path | None = None
        self._sinks: dict[str, Sink] = {}
        self._options = DEFAULT_OPTIONS
        self._logs: LogPipeline | None = None
        self._meters: Meters | None = None
        self._has_content = False
        self._upload: Upload | None = None

    @property
    def meter_provider(self) -> MeterProvider | None:
        """The meter provider that :func:`setup` made, None if it made none."""
        return None if self._meters is None else self._meters.provider

    @property
    def prometheus_url(self) -> str | None:
        """Where Prometheus can read the metrics, None if ``OTEL_METRICS_EXPORTER`` does not name it."""
        return None if self._meters is None else self._meters.prometheus_url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None) -> None:
        self.shutdown()

    def force_flush(self, timeout_ms: int = 30_000) -> bool:
        """Export what is waiting, all of it by one deadline; return whether it went out.

        That is as far as the SDK tells: of metrics it does not.
        """
        deadline, has_flushed = Deadline(timeout_ms), True
        for sink in tuple(self._sinks.values()):
            has_flushed &= sink.processor.force_flush(deadline.left_ms)
        if self._logs is not None:
            has_flushed &= self._logs.force_flush(deadline.left_ms)
        if self._meters is not None:
            has_flushed &= self._meters.force_flush(deadline.left_ms)
        if self._upload is not None:
            has_flushed &= self._upload.flush(deadline.left_ms / 1e3)
        return has_flushed

    def shutdown(self, timeout_ms: int = 30_000) -> None:
        """Export what is waiting and close the exporters that setup() made; also done when the process ends.

        All of it by one deadline, as far as the exporters keep to one. A provider that setup() found or was given keeps running
        with its own exporters. Harmless if repeated.
        """
        global _active  # noqa: PLW0603  # one SDK configuration a process, as OpenTelemetry has it
        with _lock:
            if _active is self:
                _active = None
                use_provider(None, retired=_retired())
                use_events(None)
                use_options(DEFAULT_OPTIONS)
                self._choose_content(None)
            meters, self._meters = self._meters, None
            if meters is not None:
                use_meter_provider(None)
            sinks, self._sinks = self._sinks, {}
            logs, self._logs = self._logs, None
        atexit.unregister(self.shutdown)
        deadline = Deadline(timeout_ms)
        for sink in sinks.values():
            sink.shutdown(deadline.left_ms)
        if logs is not None:
            logs.shutdown(deadline.left_ms)
        if meters is not None:
            meters.shutdown(deadline.left_ms)

    def _choose_content(self, policy: ContentPolicy | None) -> None:
        """Let later runs record content as *policy* says (None: as the environment does); what waits is still uploaded."""
        before, self._upload = self._upload, None if policy is None else policy.upload
        if policy is not None or self._has_content:
            from tracegraph.telemetry.content import use_content

            use_content(policy)
            self._has_content = policy is not None
        if before is not None and before is not self._upload:
            before.shutdown()

    def _standing(self) -> Standing:
        from tracegraph.telemetry.plan import Standing

        return Standing(
            provider=self.provider,
            sink_keys=frozenset(self._sinks),
            logs=self._logs,
            has_meters=self._meters is not None,
            options=self._options,
        )

    def _carry_out(self, plan: Plan) -> None:
        for sink in plan.sinks:
            self._sinks[sink.key] = sink
            self.store_path = sink.store_path or self.store_path
            sink.start(plan.provider)
        self._start_logs(plan.logs)
        if plan.meters is not None:
            self._meters = plan.meters
            plan.meters.use()
        if plan.has_events:
            use_events(plan.events)
        self._options = plan.options
        use_options(plan.options)
        if plan.content is not None:
            self._choose_content(plan.content)

    def _start_logs(self, plan: LogPlan) -> None:
        before, self._logs = self._logs, plan.pipeline
        if before is not None and before is not self._logs:
            before.shutdown()
        plan.pipeline.start(plan)


def setup(
    *,
    provider: TracerProvider | None = None,
    service_name: str | None = None,
    store: bool | str | Path | None = None,
    console: bool = False,
    exporters: Sequence[SpanExporter] | None = None,
    logs: LogForm | None = None,
    events: Events | None = None,
    logger_provider: LoggerProvider | None = None,
    log_exporters: Sequence[LogRecordExporter] | None = None,
    capture: ContentPolicy | Capture | str | bool | None = None,
    options: TelemetryOptions | None = None,
) -> Telemetry:
    """Configure where spans, metrics and log records go (see the module's docstring); return the handle to flush and close it.

    Called again, it adds the exporters that are asked for and not there yet, and returns the same handle. Of *events*, *capture*
    and *options* each one given replaces what was there, as a whole, for the runs that start from then on; what is None stays.
    Given another *provider* than before, it shuts the earlier handle down and begins anew.

    A tracer provider
    that the application has set is never replaced: the store (unless False) and what other arguments name are
    added to it, while the environment's exporters are taken to be that application's own doing. Nor is a meter provider
    that it has set.

    Args:
        provider: use this SDK provider for tracegraph's spans, without making it the global one; nothing is
            added to it but what other arguments name, and no meter provider is made.
        service_name: ``service.name`` of a provider made here; else ``OTEL_SERVICE_NAME``, else ``tracegraph``.
        store: a path: the SQLite store there; True: at its default place; False: none; None: as said above.
        console: print each finished trace as a tree to standard error.
        exporters: more span exporters, each in a batch of its own.
        logs: write log lines with the fields of the run they come from, as ``json`` or for the ``console``; see
            :func:`tracegraph.telemetry.log_lines.configure_logs`. None: logging is the application's own.
        events: where points in time go: ``logs``, ``spans`` or ``dup``, both; else ``TRACEGRAPH_EVENTS``, else ``dup``.
        logger_provider: use this SDK provider for log records, without making it the global one.
        log_exporters: more exporters of log records, each in a batch of its own.
        capture: what content is recorded, and where: a :class:`tracegraph.telemetry.content.ContentPolicy`, or what one of
            these takes as ``capture``; None: as ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` says, else nothing.
        options: what few applications ask for; None: the default.

    Raises:
        InvalidInputError: ``OTEL_TRACES_EXPORTER``, ``OTEL_METRICS_EXPORTER``, ``OTEL_LOGS_EXPORTER`` or the OTLP protocol
            names something that does not exist, the application's provider takes no processors, the Prometheus endpoint
            cannot be opened, or *events*, *logs*, *capture*, *options* or a variable of theirs says nothing known.
        Exception: what an exporter or the SDK raises about variables of its own. Whatever is raised, nothing has changed.
    """
    global _active  # noqa: PLW0603  # see shutdown()
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        _write_lines(logs)
        return Telemetry(None)
    from tracegraph.telemetry.plan import Asked, make_plan

    asked = Asked(
        provider=provider,
        service_name=service_name,
        store=store,
        console=console,
        exporters=tuple(exporters or ()),
        logs=logs,
        events=events,
        logger_provider=logger_provider,
        log_exporters=tuple(log_exporters or ()),
        capture=capture,
        options=options,
    )
    with _lock:
        before = _active
        handle = None if before is None or provider not in (None, before.provider) else before
        plan = make_plan(asked, None if handle is None else handle._standing())  # noqa: SLF001  # one concept, two halves
        if handle is None:
            if before is not None:
                before.shutdown()
            _active = handle = _open(plan, provider)
        handle._carry_out(plan)  # noqa: SLF001  # as above
    _write_lines(logs)
    return handle


def _open(plan: Plan, given: TracerProvider | None) -> Telemetry:
    """Return a handle to carry a first plan out with."""
    if plan.is_own_provider:
        from tracegraph.telemetry.tracer_provider import make_global

        make_global(plan.provider)
    use_provider(given)
    handle = Telemetry(plan.provider)
    atexit.register(handle.shutdown)
    return handle


def _write_lines(form: LogForm | None) -> None:
    """Let log lines be written in the given form."""
    if form is not None:
        from tracegraph.telemetry.log_lines import configure_logs

        configure_logs(form)


def _retired() -> TracerProvider | None:
    """Return the provider made here, whose exporters have been shut down."""
    from tracegraph.telemetry.tracer_provider import own_provider

    return own_provider()
