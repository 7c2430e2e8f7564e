"""The tracer provider of :func:`tracegraph.telemetry.setup`: the application's own, or one made here. Loads the SDK."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider

from tracegraph.errors import InvalidInputError

__all__ = ["application_provider", "check_takes_processors", "make_global", "new_provider", "own_provider", "own_resource"]


class _Owned:
    """The provider made here and set as the global one. OpenTelemetry allows that once a process, so it is used again."""

    provider: TracerProvider | None = None


def own_provider() -> TracerProvider | None:
    """Return the global provider that an earlier setup() made, None if there is none."""
    return _Owned.provider


def application_provider() -> TracerProvider | None:
    """Return the global provider that somebody else has set, None if there is none.

    Raises:
        InvalidInputError: it takes no span processors.
    """
    found: Any = trace.get_tracer_provider()
    if found is _Owned.provider or isinstance(found, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    check_takes_processors(found, "the application's tracer provider")
    return found  # type: ignore[no-any-return]  # it quacks like the SDK's


def check_takes_processors(provider: object, what: str) -> None:
    """Refuse a provider, *what* in the error, that nothing can be added to.

    Raises:
        InvalidInputError: it takes no span processors.
    """
    if not hasattr(provider, "add_span_processor"):
        raise InvalidInputError(
            f"{what} is a {type(provider).__name__}, which takes no span processors; "
            "pass provider= an SDK provider, or let the application export its spans itself"
        )


def new_provider(service_name: str | None) -> TracerProvider:
    """Return a provider that nobody knows of yet."""
    # The handle shuts its exporters down itself when the process ends.
    return TracerProvider(resource=own_resource(service_name), shutdown_on_exit=False)


def make_global(provider: TracerProvider) -> None:
    """Let the provider made here be the global one, if it is not yet."""
    if _Owned.provider is not provider:
        _Owned.provider = provider
        trace.set_tracer_provider(provider)


def own_resource(service_name: str | None) -> Resource:
    """Return the resource of providers made here."""
    resource = Resource.create()
    if service_name is not None or str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: service_name or "tracegraph"}))
    return resource
