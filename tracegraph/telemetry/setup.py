"""Configure the OpenTelemetry SDK for an application that has not done so itself.

Where spans go:

- ``OTEL_TRACES_EXPORTER`` set: exactly to the exporters it names (``none``: nowhere), found as entry points;
  ``otlp`` follows ``OTEL_EXPORTER_OTLP_PROTOCOL``.
- not set: to the embedded SQLite store, and by OTLP as well if ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its
  ``_TRACES_`` form) is set.
- arguments add to that: a store path, the console tree, exporters of your own.

Where metrics go, if the application has set no meter provider of its own:

- ``OTEL_METRICS_EXPORTER`` set: to what it names: ``otlp``, ``console``, ``prometheus`` (an HTTP endpoint, on the loopback
  interface unless ``OTEL_EXPORTER_PROMETHEUS_HOST`` says otherwise), another entry point's name, ``none``.
- not set: by OTLP if ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its ``_METRICS_`` form) is set, else nowhere, and nothing is measured.

Log records go where ``OTEL_LOGS_EXPORTER`` and the OTLP variables say in the same way; there is no store for them.

``OTEL_SDK_DISABLED=true`` switches everything off; sampler, resource, limits and batching variables are the
SDK's own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.meters import use_meter_provider
from tracegraph.telemetry.mirroring import Events, use_events
from tracegraph.telemetry.options import DEFAULT_OPTIONS, ModelMetrics, ModelSpans, Profile, Semconv, current_options, use_options
from tracegraph.telemetry.roots import use_provider

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from tracegraph.telemetry.content import Capture, ContentPolicy
    from tracegraph.telemetry.content.upload import Upload
    from tracegraph.telemetry.log_lines import LogForm
    from tracegraph.telemetry.log_setup import LogPipeline
    from tracegraph.telemetry.readers import Meters
    from tracegraph.telemetry.sinks import Sink

__all__ = ["Telemetry", "setup"]

_lock = threading.RLock()
_active: Telemetry | None = None
_owned: Any = None
"""The provider made here and set as the global one. OpenTelemetry allows that once a process, so it is used again."""


class Telemetry:
    """What :func:`setup` configured; a context manager that shuts it down.

    ``provider`` is None if the SDK is disabled; ``store_path`` is None unless spans go to the SQLite store.
    """

    def __init__(self, provider: TracerProvider | None) -> None:
        self.provider = provider
        self.store_path: Path | None = None
        self._sinks: dict[str, Sink] = {}
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
        """Export what is waiting; return whether all of it went out, as far as the SDK tells: of metrics it does not."""
        has_flushed = True
        for sink in tuple(self._sinks.values()):
            has_flushed &= sink.processor.force_flush(timeout_ms)
        if self._logs is not None:
            has_flushed &= self._logs.force_flush(timeout_ms)
        if self._meters is not None:
            has_flushed &= self._meters.force_flush(timeout_ms)
        if self._upload is not None:
            has_flushed &= self._upload.flush(timeout_ms / 1e3)
        return has_flushed

    def shutdown(self) -> None:
        """Export what is waiting and close the exporters that setup() made; also done when the process ends.

        A provider that setup() found or was given keeps running with its own exporters. Harmless if repeated.
        """
        global _active  # noqa: PLW0603  # one SDK configuration a process, as OpenTelemetry has it
        with _lock:
            if _active is self:
                _active = None
                use_provider(None, retired=_owned)
                use_events(None)
                use_options(DEFAULT_OPTIONS)
                self._choose_content(None)
            meters, self._meters = self._meters, None
            if meters is not None:
                use_meter_provider(None)
            sinks, self._sinks = self._sinks, {}
            logs, self._logs = self._logs, None
        atexit.unregister(self.shutdown)
        for sink in sinks.values():
            sink.processor.shutdown()
        if logs is not None:
            logs.shutdown()
        if meters is not None:
            meters.shutdown()

    def _choose_content(self, policy: ContentPolicy | None) -> None:
        """Let later runs record content as *policy* says (None: as the environment does); what waits is still uploaded."""
        before, self._upload = self._upload, None if policy is None else policy.upload
        if policy is not None or self._has_content:
            from tracegraph.telemetry.content import use_content

            use_content(policy)
            self._has_content = policy is not None
        if before is not None and before is not self._upload:
            before.shutdown()

    def _add(self, sinks: Sequence[Sink]) -> None:
        assert self.provider is not None  # the disabled handle gets no sinks
        for sink in sinks:
            self._sinks[sink.key] = sink
            self.store_path = sink.store_path or self.store_path
            self.provider.add_span_processor(sink.processor)

    def _use_logs(self, pipeline: LogPipeline) -> None:
        if self._logs is not None and self._logs is not pipeline:
            self._logs.shutdown()
        self._logs = pipeline
        pipeline.open(self.provider)

    def _measure(self, meters: Meters | None) -> None:
        if meters is not None:
            self._meters = meters
            meters.use()


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
    profile: Profile | None = None,
    semconv: Semconv | None = None,
    model_spans: ModelSpans | None = None,
    model_metrics: ModelMetrics | None = None,
) -> Telemetry:
    """Configure where spans, metrics and log records go (see the module's docstring); return the handle to flush and close it.

    Called again, it adds what is asked for and not there yet, and returns the same handle. A tracer provider
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
        profile: ``"openinference"`` adds what Arize Phoenix draws its views from; ``"none"``, the default, does not.
        semconv: ``"1.41"`` uses the names of the last released GenAI conventions rather than the ``"latest"``.
        model_spans: ``"never"`` makes no spans of model calls, where an instrumentation of the provider does;
            ``"always"`` is the default.
        model_metrics: ``"with_spans"``, the default, measures model calls where their spans are made here; ``"always"``
            also where they are not, for instrumentations that measure nothing; ``"never"`` does not.

    Raises:
        InvalidInputError: ``OTEL_TRACES_EXPORTER``, ``OTEL_METRICS_EXPORTER``, ``OTEL_LOGS_EXPORTER`` or the OTLP protocol
            names something that does not exist, the application's provider takes no processors, the Prometheus endpoint
            cannot be opened, *capture* or a variable of content says nothing known, or an option has a value it cannot have.
    """
    global _active  # noqa: PLW0603  # see shutdown()
    _write_lines(logs)
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Telemetry(None)
    from tracegraph.telemetry import sinks

    with _lock:
        handle = _handle_for(provider)
        target = (handle and handle.provider) or provider or _application_provider()
        is_ours = target is None or target is _owned
        names = [] if provider is not None else sinks.environment_names() if is_ours else [sinks.STORE]
        options = (DEFAULT_OPTIONS if handle is None else current_options()).changed(
            profile=profile, semconv=semconv, model_spans=model_spans, model_metrics=model_metrics
        )
        # All of it before anything is changed: an unknown name must not leave half a configuration behind.
        present = frozenset(handle._sinks) if handle is not None else frozenset()  # noqa: SLF001  # one concept, two halves
        if handle is None or events is not None:
            use_events(events)
        content = _content(capture) if handle is None or capture is not None else None
        pipeline = _log_pipeline(handle, logger_provider, log_exporters or (), has_environment=provider is None)
        has_meters = handle is not None and handle.meter_provider is not None
        meters = None if has_meters or provider is not None else _meters(target, service_name)
        with ExitStack() as undo:
            if meters is not None:
                undo.callback(meters.shutdown)
            wanted = sinks.make_sinks(names, store, has_console=console, exporters=exporters or (), present=present)
            undo.pop_all()
        if handle is None:
            handle = Telemetry(_own_provider(service_name) if is_ours else target)
            use_provider(provider)
            atexit.register(handle.shutdown)
            _active = handle
        use_options(options)
        handle._add(wanted)  # noqa: SLF001  # as above
        handle._use_logs(pipeline)  # noqa: SLF001
        handle._measure(meters)  # noqa: SLF001  # as above
        if content is not None:
            handle._choose_content(content)  # noqa: SLF001  # as above
        return handle


def _write_lines(form: LogForm | None) -> None:
    """Let log lines be written in the given form."""
    if form is not None:
        from tracegraph.telemetry.log_lines import configure_logs

        configure_logs(form)


def _handle_for(provider: TracerProvider | None) -> Telemetry | None:
    """Return the handle of an earlier call, None if there is none; one that feeds another provider is shut down."""
    handle = _active
    if handle is not None and provider is not None and handle.provider is not provider:
        handle.shutdown()
        return None
    return handle


def _log_pipeline(
    handle: Telemetry | None,
    provider: LoggerProvider | None,
    exporters: Sequence[LogRecordExporter],
    *,
    has_environment: bool,
) -> LogPipeline:
    """Return the handle's pipeline of log records, or a new one if *provider* is another one than it feeds."""
    from tracegraph.telemetry.log_setup import LogPipeline

    pipeline = handle._logs if handle is not None else None  # noqa: SLF001  # as in setup()
    if pipeline is None or not pipeline.feeds(provider):
        pipeline = LogPipeline(provider)
    pipeline.plan(exporters, has_environment=has_environment)
    return pipeline


def _content(capture: ContentPolicy | Capture | str | bool | None) -> ContentPolicy | None:
    """Return the policy that *capture* or the environment asks for, None if neither says anything."""
    from tracegraph.telemetry.content.capture import CAPTURE_VARIABLE, HOOK_VARIABLE

    if capture is None and CAPTURE_VARIABLE not in os.environ and HOOK_VARIABLE not in os.environ:
        return None
    from tracegraph.telemetry.content.choice import policy_from_environment

    return policy_from_environment(capture)


def _application_provider() -> TracerProvider | None:
    """Return the real provider that is the global one (ours of an earlier setup included), None if there is none."""
    from opentelemetry import trace

    found: Any = trace.get_tracer_provider()
    if isinstance(found, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    if not hasattr(found, "add_span_processor"):
        raise InvalidInputError(
            f"the application's tracer provider is a {type(found).__name__}, which takes no span processors; "
            "pass provider= an SDK provider, or let the application export its spans itself"
        )
    return found  # type: ignore[no-any-return]  # it quacks like the SDK's


def _meters(target: Any, service_name: str | None) -> Meters | None:
    """Return a meter provider with the readers that the environment asks for, if any; of the same service as the spans."""
    from tracegraph.telemetry import readers

    names = readers.environment_names()
    if not names or readers.has_application_provider():
        return None
    return readers.Meters(names, getattr(target, "resource", None) or _resource(service_name))


def _own_provider(service_name: str | None) -> TracerProvider:
    """Return the provider made here; make it and set it as the global one the first time."""
    global _owned  # noqa: PLW0603  # see _owned
    if _owned is None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        # The handle shuts its exporters down itself when the process ends.
        _owned = TracerProvider(resource=_resource(service_name), shutdown_on_exit=False)
        trace.set_tracer_provider(_owned)
    return _owned  # type: ignore[no-any-return]  # Any, because the SDK is not imported at the top


def _resource(service_name: str | None) -> Resource:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    resource = Resource.create()
    if service_name is not None or str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: service_name or "tracegraph"}))
    return resource
