"""What the standard variables say about exporters and OTLP, for one signal: its own variable wins over the one for all."""

from __future__ import annotations

import os
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from tracegraph.errors import InvalidInputError

__all__ = ["Signal", "endpoint", "entry_point_name", "exporter_names"]

Signal: TypeAlias = Literal["TRACES", "METRICS", "LOGS"]
"""As it is spelt in variables."""

_ENTRY_POINTS: Final = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def endpoint(signal: Signal) -> str:
    """Return where *signal* is to be sent, ``""`` if no variable says so."""
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or ""


def exporter_names(signal: Signal, otherwise: list[str]) -> list[str]:
    """Return the exporters that ``OTEL_<signal>_EXPORTER`` names, without ``none``; *otherwise* if it is not set.

    >>> exporter_names("METRICS", ["otlp"])
    ['otlp']
    """
    named = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip()
    if not named:
        return otherwise
    return [name for part in named.split(",") if (name := part.strip()) and name.lower() != "none"]


def entry_point_name(signal: Signal) -> str:
    """Return the entry point of the exporter for the protocol asked for.

    That is gRPC if none is asked for, as in OpenTelemetry for Python; but port 4318 speaks HTTP only.

    Raises:
        InvalidInputError: a variable names a protocol that has no exporter.
    """
    for variable in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if protocol := os.environ.get(variable, "").strip().lower():
            if protocol not in _ENTRY_POINTS:
                raise InvalidInputError(f"{variable} is {protocol!r}; known: {', '.join(_ENTRY_POINTS)}")
            return _ENTRY_POINTS[protocol]
    try:
        port = urlsplit(endpoint(signal)).port
    except ValueError:
        port = None
    return _ENTRY_POINTS["http/protobuf" if port == 4318 else "grpc"]
