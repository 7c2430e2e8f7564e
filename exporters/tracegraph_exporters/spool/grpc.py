"""One request by OTLP/gRPC."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import grpc
from google.rpc.error_details_pb2 import RetryInfo

from tracegraph_exporters.spool.answers import Answer
from tracegraph_exporters.spool.destination import Destination
from tracegraph_exporters.spool.services import METHODS, rejected_of

__all__ = ["GrpcTransport"]

_RETRYABLE: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        # As with HTTP: about the key, not about the data.
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
_BAD_HEADERS: Final = "Invalid metadata"
"""What the client itself says of headers that cannot be sent: nothing of the data, which a corrected process can send."""

_TOO_LARGE: Final = "larger than max"
"""How gRPC's own servers, in C, Go and Java, say that a message is too large, with the code of a receiver that is busy."""

_RETRY_INFO: Final = "google.rpc.retryinfo-bin"
_OPTIONS: Final = (("grpc.enable_retries", 0),)
"""The waiting is ours: a retry inside the channel would not know that the process is about to end."""


class GrpcTransport:
    """Sends to *destination* over one channel, made when it is first used: one made before a fork would not work after it."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._metadata = tuple((name.lower(), value) for name, value in destination.headers.items())
        self._channel: Any = None
        self._call: Any = None

    def send(self, body: bytes) -> Answer:
        """Send *body*; what the network says is a reason to try again, too."""
        if self._call is None:
            try:
                self._channel = _channel(self._destination)
            except OSError as error:  # a certificate that cannot be read
                return Answer("later", f"{type(error).__name__}: {error}")
            self._call = self._channel.unary_unary(METHODS[self._destination.signal])
        try:
            answer = self._call(body, timeout=self._destination.timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            return _meaning(error)
        rejected, message = rejected_of(self._destination.signal, answer)
        return Answer("taken", message, rejected=rejected)

    def close(self) -> None:
        """Drop the connection."""
        channel, self._channel, self._call = self._channel, None, None
        if channel is not None:
            channel.close()


def _channel(destination: Destination) -> Any:
    parts = urlsplit(destination.endpoint)
    compression = grpc.Compression.Gzip if destination.is_compressed else grpc.Compression.NoCompression
    if parts.scheme == "http":
        return grpc.insecure_channel(parts.netloc, options=_OPTIONS, compression=compression)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_read(destination.certificate),
        private_key=_read(destination.client_key),
        certificate_chain=_read(destination.client_certificate),
    )
    return grpc.secure_channel(parts.netloc, credentials, options=_OPTIONS, compression=compression)


def _read(path: str | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


def _meaning(error: Any) -> Answer:
    code = error.code()
    text = f"gRPC {code.name} {error.details() or ''}".strip()
    wait_s = _retry_delay(error)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and wait_s is None and _TOO_LARGE in text.lower():
        return Answer("too_large", text)
    if code in _RETRYABLE or (code is grpc.StatusCode.INTERNAL and error.details() == _BAD_HEADERS):
        return Answer("later", text, wait_s=wait_s)
    return Answer("refused", text)


def _retry_delay(error: Any) -> float | None:
    for name, value in error.trailing_metadata() or ():
        if name == _RETRY_INFO:
            delay = RetryInfo.FromString(value).retry_delay
            return float(delay.seconds + delay.nanos / 1e9)
    return None
