"""Configure the OpenTelemetry SDK for an application that has not done so itself.

Where spans go:

- ``OTEL_TRACES_EXPORTER`` set: exactly to the exporters it names (``none``: nowhere), found as entry points;
  ``otlp`` follows ``OTEL_EXPORTER_OTLP_PROTOCOL``.
- not set: to the embedded SQLite store, and by OTLP as well if ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its
  ``_TRACES_`` form) is set.
- arguments add to that: a store path, the console tree, exporters of your own.

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
from typing import TYPE_CHECKING, Any, Self

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.options import DEFAULT_OPTIONS, ModelSpans, Profile, Semconv, current_options, use_options
from tracegraph.telemetry.roots import use_provider

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None) -> None:
        self.shutdown()

    def force_flush(self, timeout_ms: int = 30_000) -> bool:
        """Export what is waiting; return whether all of it went out."""
        has_flushed = True
        for sink in tuple(self._sinks.values()):
            has_flushed &= sink.processor.force_flush(timeout_ms)
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
                use_options(DEFAULT_OPTIONS)
            sinks, self._sinks = self._sinks, {}
        atexit.unregister(self.shutdown)
        for sink in sinks.values():
            sink.processor.shutdown()

    def _add(self, sinks: Sequence[Sink]) -> None:
        assert self.provider is not None  # the disabled handle gets no sinks
        for sink in sinks:
            self._sinks[sink.key] = sink
            self.store_path = sink.store_path or self.store_path
            self.provider.add_span_processor(sink.processor)


def setup(
    *,
    provider: TracerProvider | None = None,
    service_name: str | None = None,
    store: bool | str | Path | None = None,
    console: bool = False,
    exporters: Sequence[SpanExporter] | None = None,
    profile: Profile | None = None,
    semconv: Semconv | None = None,
    model_spans: ModelSpans | None = None,
) -> Telemetry:
    """Configure where spans go (see the module's docstring) and return the handle to flush and shut it down.

    Called again, it adds what is asked for and not there yet, and returns the same handle. A tracer provider
    that the application has set is never replaced: the store (unless False) and what other arguments name are
    added to it, while the environment's exporters are taken to be that application's own doing.

    Args:
        provider: use this SDK provider for tracegraph's spans, without making it the global one; nothing is
            added to it but what other arguments name.
        service_name: ``service.name`` of a provider made here; else ``OTEL_SERVICE_NAME``, else ``tracegraph``.
        store: a path: the SQLite store there; True: at its default place; False: none; None: as said above.
        console: print each finished trace as a tree to standard error.
        exporters: more span exporters, each in a batch of its own.
        profile: ``"openinference"`` adds what Arize Phoenix draws its views from; ``"none"``, the default, does not.
        semconv: ``"1.41"`` uses the names of the last released GenAI conventions rather than the ``"latest"``.
        model_spans: ``"never"`` makes no spans of model calls, where an instrumentation of the provider does;
            ``"always"`` is the default.

    Raises:
        InvalidInputError: ``OTEL_TRACES_EXPORTER`` or the OTLP protocol names something that does not exist,
            the application's provider takes no span processors, or an option has a value it cannot have.
    """
    global _active  # noqa: PLW0603  # see shutdown()
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Telemetry(None)
    from tracegraph.telemetry import sinks

    with _lock:
        handle = _active
        if handle is not None and provider is not None and handle.provider is not provider:
            handle.shutdown()
            handle = None
        target = (handle and handle.provider) or provider or _application_provider()
        is_ours = target is None or target is _owned
        names = [] if provider is not None else sinks.environment_names() if is_ours else [sinks.STORE]
        options = (DEFAULT_OPTIONS if handle is None else current_options()).changed(
            profile=profile, semconv=semconv, model_spans=model_spans
        )
        # Made before anything is changed: an unknown name must not leave half a configuration behind.
        present = frozenset(handle._sinks) if handle is not None else frozenset()  # noqa: SLF001  # one concept, two halves
        wanted = sinks.make_sinks(names, store, has_console=console, exporters=exporters or (), present=present)
        if handle is None:
            handle = Telemetry(_own_provider(service_name) if is_ours else target)
            use_provider(provider)
            atexit.register(handle.shutdown)
            _active = handle
        use_options(options)
        handle._add(wanted)  # noqa: SLF001  # as above
        return handle


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


def _own_provider(service_name: str | None) -> TracerProvider:
    """Return the provider made here; make it and set it as the global one the first time."""
    global _owned  # noqa: PLW0603  # see _owned
    if _owned is None:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider

        resource = Resource.create()
        if service_name is not None or str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: service_name or "tracegraph"}))
        # The handle shuts its exporters down itself when the process ends.
        _owned = TracerProvider(resource=resource, shutdown_on_exit=False)
        trace.set_tracer_provider(_owned)
    return _owned  # type: ignore[no-any-return]  # Any, because the SDK is not imported at the top
