"""Where one signal is sent by OTLP: the standard variables, read once.

The rules are those of the OpenTelemetry protocol exporter specification: a signal's own variable wins over the one for
all; ``OTEL_EXPORTER_OTLP_ENDPOINT`` is a base for HTTP, to which ``v1/traces`` or ``v1/logs`` is added, while a signal's
own endpoint is taken as it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

__all__ = ["Destination", "DestinationError", "Signal"]

Signal: TypeAlias = Literal["traces", "logs"]
_HTTP: Final = "http/protobuf"
_GRPC: Final = "grpc"
_TIMEOUT_S: Final = 10.0


class DestinationError(ValueError):
    """The OTLP variables or arguments name something that there is not; the text says which."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A collector, as one signal is sent there.

    Attributes:
        signal: ``traces`` or ``logs``.
        protocol: ``grpc`` or ``http/protobuf``.
        endpoint: the whole URL for HTTP, ``scheme://host:port`` for gRPC.
        headers: sent with every request; they may hold keys, so they are never stored or shown.
        timeout_s: how long one request may take.
        is_compressed: whether requests are gzipped.
        certificate, client_key, client_certificate: paths of PEM files for TLS.
    """

    signal: Signal
    protocol: str
    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = _TIMEOUT_S
    is_compressed: bool = False
    certificate: str | None = None
    client_key: str | None = None
    client_certificate: str | None = None

    @property
    def key(self) -> str:
        """What stored requests are kept under: the signal and the address, without a user or password in it.

        >>> Destination("traces", "http/protobuf", "https://me:secret@example.org/v1/traces").key
        'traces https://example.org/v1/traces'
        """
        parts = urlsplit(self.endpoint)
        return f"{self.signal} {urlunsplit(parts._replace(netloc=parts.netloc.rpartition('@')[2], query='', fragment=''))}"

    @property
    def is_grpc(self) -> bool:
        """Whether it speaks gRPC."""
        return self.protocol == _GRPC

    @classmethod
    def find(
        cls,
        signal: Signal,
        *,
        endpoint: str | None = None,
        protocol: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Destination:
        """Return where *signal* goes: what the arguments say, else the environment, else the protocol's default.

        *endpoint* is taken as it is, like a signal's own variable.

        Raises:
            DestinationError: the protocol, the timeout or the compression is none that there is.

        >>> Destination.find("logs", endpoint="http://localhost:4318/v1/logs").protocol
        'http/protobuf'
        """
        spoken = _protocol(signal, endpoint, protocol)
        return cls(
            signal=signal,
            protocol=spoken,
            endpoint=_endpoint(signal, endpoint, spoken),
            headers=_headers(signal) if headers is None else dict(headers),
            timeout_s=_timeout(signal) if timeout_s is None else timeout_s,
            is_compressed=_is_compressed(signal),
            certificate=_said(signal, "CERTIFICATE") or None,
            client_key=_said(signal, "CLIENT_KEY") or None,
            client_certificate=_said(signal, "CLIENT_CERTIFICATE") or None,
        )


def _said(signal: Signal, what: str) -> str:
    own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_{what}", "").strip()
    return own or os.environ.get(f"OTEL_EXPORTER_OTLP_{what}", "").strip()


def _protocol(signal: Signal, endpoint: str | None, asked: str | None) -> str:
    """Return the protocol asked for; gRPC if none is, as in OpenTelemetry for Python, but port 4318 speaks HTTP only."""
    if named := (asked or _said(signal, "PROTOCOL")).lower():
        if named not in {_HTTP, _GRPC}:
            raise DestinationError(f"the OTLP protocol {named!r} is not known; known: {_HTTP}, {_GRPC}")
        return named
    try:
        port = urlsplit(endpoint or _said(signal, "ENDPOINT")).port
    except ValueError:
        port = None
    return _HTTP if port == 4318 else _GRPC


def _endpoint(signal: Signal, given: str | None, protocol: str) -> str:
    own = given or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    if protocol == _HTTP:
        return own or f"{(base or 'http://localhost:4318').rstrip('/')}/v1/{signal}"
    found = own or base or "http://localhost:4317"
    if "://" in found:
        return found
    # Without a scheme, the standard has a variable that says whether to encrypt; the default is to.
    return f"{'http' if _said(signal, 'INSECURE').lower() == 'true' else 'https'}://{found}"


def _headers(signal: Signal) -> dict[str, str]:
    from opentelemetry.util.re import parse_env_headers

    return dict(parse_env_headers(_said(signal, "HEADERS"), liberal=True))


def _timeout(signal: Signal) -> float:
    said = _said(signal, "TIMEOUT")
    try:
        return float(said) if said else _TIMEOUT_S
    except ValueError:
        raise DestinationError(f"OTEL_EXPORTER_OTLP_TIMEOUT is {said!r}; it must be a number of seconds") from None


def _is_compressed(signal: Signal) -> bool:
    said = _said(signal, "COMPRESSION").lower()
    if said not in {"", "none", "gzip"}:
        raise DestinationError(f"the OTLP compression {said!r} is not known; known: gzip, none")
    return said == "gzip"
