"""Which OpenTelemetry logger log records go to, if to any.

Loads no OpenTelemetry: while nobody else has loaded its logs API, no provider can have been set.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tracegraph.telemetry import semconv

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider

__all__ = ["logger_in_use", "use_logger_provider"]

_PROVIDER_VARIABLE: Final = "OTEL_PYTHON_LOGGER_PROVIDER"


class _Choice:
    """Which provider is used, if not the global one; the loggers last asked for, by name; and the global proxy last seen.

    Every run asks, so they are known by identity.
    """

    provider: LoggerProvider | None = None
    retired: LoggerProvider | None = None
    known: tuple[LoggerProvider | None, dict[str, Logger | None]] = (None, {})
    proxy: LoggerProvider | None = None


def use_logger_provider(provider: LoggerProvider | None, *, retired: LoggerProvider | None = None) -> None:
    """Send log records to *provider* rather than to the global one (``None``: the global one again).

    None are made at all while *retired*, a provider that was shut down, is still the global one.
    """
    _Choice.provider = provider
    _Choice.retired = retired
    _Choice.known = (None, {})


def logger_in_use(name: str = semconv.SCOPE_NAME) -> Logger | None:
    """Return the logger called *name*; ``None`` where no provider is set or nobody takes its records."""
    if _Choice.provider is None and "opentelemetry._logs" not in sys.modules and _PROVIDER_VARIABLE not in os.environ:
        return None
    logger = _logger(name)
    if logger is None:
        return None
    # Younger than the oldest API that we run on.
    enabled = getattr(logger, "enabled", None)
    return logger if enabled is None or enabled() else None


def _logger(name: str) -> Logger | None:
    _logs = _logs_api()
    provider = _Choice.provider or _logs.get_logger_provider()
    if provider is _Choice.proxy:
        return None
    known_of, known = _Choice.known
    if known_of is provider and name in known:
        return known[name]
    if provider is _Choice.retired:
        return None
    if known_of is not provider:
        known = {}
        _Choice.known = (provider, known)
    # The proxy has no public name; what it stands for may be set later, so it is not kept.
    if type(provider).__name__ == "ProxyLoggerProvider":
        _Choice.proxy = provider
        return None
    is_ours = name == semconv.SCOPE_NAME
    logger = provider.get_logger(name, semconv.SCOPE_VERSION, semconv.SCHEMA_URL) if is_ours else provider.get_logger(name)
    known[name] = None if isinstance(logger, _logs.NoOpLogger) else logger
    return known[name]


@cache
def _logs_api() -> Any:
    from opentelemetry import _logs

    return _logs
