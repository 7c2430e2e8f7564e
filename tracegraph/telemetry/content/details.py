"""Content as log events: the full, structured form, beside the span or in its place."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.context import Context

__all__ = ["emit_details", "find_logger"]

_PROVIDER_VARIABLE = "OTEL_PYTHON_LOGGER_PROVIDER"


def find_logger(provider: LoggerProvider | None = None) -> Logger | None:
    """Return a logger of *provider*, or else of the global one; None while there is no real one."""
    if provider is None and "opentelemetry._logs" not in sys.modules and _PROVIDER_VARIABLE not in os.environ:
        return None
    from opentelemetry._logs import NoOpLoggerProvider, get_logger_provider

    from tracegraph.telemetry import semconv

    provider = get_logger_provider() if provider is None else provider
    # The class of the one that stands in for a provider to come is not public.
    if isinstance(provider, NoOpLoggerProvider) or type(provider).__name__ == "ProxyLoggerProvider":
        return None
    return provider.get_logger(semconv.SCOPE_NAME, semconv.SCOPE_VERSION, schema_url=semconv.SCHEMA_URL)


def emit_details(logger: Logger, name: str, attributes: dict[str, Any], context: Context | None, at_ns: int) -> None:
    """Emit one event whose attributes may hold whole structures; *context* says which span it belongs to."""
    from opentelemetry._logs import LogRecord, SeverityNumber

    logger.emit(
        LogRecord(
            timestamp=at_ns,
            observed_timestamp=at_ns,
            context=context,
            severity_number=SeverityNumber.INFO,
            severity_text="INFO",
            attributes=attributes,
            event_name=name,
        )
    )
