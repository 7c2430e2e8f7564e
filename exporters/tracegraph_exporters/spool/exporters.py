"""The exporters that the SDK feeds: what they are given is in the spool when they return."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tracegraph_exporters.spool.answers import Transport
from tracegraph_exporters.spool.destination import Destination, Signal
from tracegraph_exporters.spool.packing import MAX_REQUEST_BYTES, Packed, pack
from tracegraph_exporters.spool.queue import SpoolError, SpoolQueue
from tracegraph_exporters.spool.sender import Sender
from tracegraph_exporters.spool.splitting import split

__all__ = ["SpoolLogExporter", "SpoolSpanExporter"]

_log = logging.getLogger("tracegraph_exporters.spool")

_LAST_WORDS_S: Final = 5.0
"""How long a process that ends keeps sending; the rest waits for the next one."""


class _Spooled:
    """What both exporters do."""

    signal: ClassVar[Signal]
    encode: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        protocol: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        path: str | Path | None = None,
        max_bytes: int | None = None,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        on_loss: Callable[[str, int], None] | None = None,
    ) -> None:
        self.destination = Destination.find(
            self.signal, endpoint=endpoint, protocol=protocol, headers=headers, timeout_s=timeout_s
        )
        self.queue = SpoolQueue(path, max_bytes=max_bytes)
        self._max_request_bytes = max_request_bytes
        self._sender = Sender(self.queue, self.destination.key, self._connect, self._split, self._note_loss)
        self._is_shut_down = False
        self._has_logged = False
        self._on_loss = on_loss
        _made[self.queue.path, self.destination.key] = self
        self.lost = 0
        """How many items are known to be lost behind this exporter. Those that it returned FAILURE for are not among them."""
        if hasattr(os, "register_at_fork"):
            method = weakref.WeakMethod(self._after_fork)
            os.register_at_fork(after_in_child=lambda: (found := method()) and found())
        if self.queue.path.exists():
            # What an earlier process could not send.
            self._sender.wake()

    def _spool(self, items: Sequence[Any]) -> bool:
        if self._is_shut_down:
            return False
        packed, too_large = pack(items, type(self).encode, self._max_request_bytes)
        try:
            if packed:
                self._note_evicted(self.queue.put(self.destination.key, packed))
            if too_large:
                self._note_loss("too_large", too_large)
                self.queue.count_loss(self.destination.key, "too_large", too_large)
        except (sqlite3.Error, OSError, SpoolError) as error:
            if not self._has_logged:
                self._has_logged = True
                _log.error("telemetry for %s cannot be written to the spool %s: %s", self.destination.key, self.queue.path, error)
            return False
        self._has_logged = False
        self._sender.wake()
        return True

    def force_flush(self, timeout_millis: float = 30_000) -> bool:
        """Wait until what is in the spool now has been sent; return whether that was in time. What was not stays there."""
        return self._flush(timeout_millis / 1e3, while_it_goes=False)

    def shutdown(self, timeout_millis: float = _LAST_WORDS_S * 1e3) -> None:
        """Send for up to five seconds longer, if the receiver answers at all; what is left waits for the next process."""
        if self._is_shut_down:
            return
        self._is_shut_down = True
        # The SDK asks for half a minute; a process that ends should not take so long for what is safe anyway.
        seconds = min(timeout_millis / 1e3, _LAST_WORDS_S)
        until = time.monotonic() + seconds
        self._flush(seconds, while_it_goes=True)
        self._sender.stop(max(0.1, until - time.monotonic()))
        self.queue.close()

    def _flush(self, seconds: float, *, while_it_goes: bool) -> bool:
        if not self.queue.path.exists():
            return True
        try:
            newest = self.queue.last_id(self.destination.key)
            return newest is None or self._sender.wait_until_sent(newest, seconds, while_it_goes=while_it_goes)
        except (sqlite3.Error, OSError, SpoolError):
            return False

    def _connect(self) -> Transport:
        # Loaded here: gRPC takes longer to load than all the rest.
        if self.destination.is_grpc:
            from tracegraph_exporters.spool.grpc import GrpcTransport

            return GrpcTransport(self.destination)
        from tracegraph_exporters.spool.http import HttpTransport

        return HttpTransport(self.destination)

    def _split(self, body: bytes) -> list[Packed]:
        return split(self.signal, body)

    def _note_loss(self, reason: str, items: int) -> None:
        self.lost += items
        if items and self._on_loss is not None:
            self._on_loss(reason, items)

    def _note_evicted(self, evicted: Mapping[str, int]) -> None:
        """Tell of what had to make room as the loss of the exporter that it came from, if this process has that."""
        for destination, items in evicted.items():
            _made.get((self.queue.path, destination), self)._note_loss("spool_full", items)  # noqa: SLF001  # of the same class

    def _after_fork(self) -> None:
        self.queue.forget_parent()
        self._sender.begin_anew()


_made: Final[weakref.WeakValueDictionary[tuple[Path, str], _Spooled]] = weakref.WeakValueDictionary()
"""The exporters of this process, by file and destination."""


class SpoolSpanExporter(_Spooled, SpanExporter):
    """Puts spans into the spool, from where they are sent by OTLP; for any application of the OpenTelemetry SDK.

    Args:
        endpoint: where to send, else as ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` and its relatives say.
        protocol: ``grpc`` or ``http/protobuf``.
        headers: for every request.
        timeout_s: how long one request may take.
        path: the spool's file; several exporters and processes may share it.
        max_bytes: what may wait there; see :class:`SpoolQueue`.
        max_request_bytes: no request is larger, before it is compressed.
        on_loss: called with a reason (see :class:`Loss`) and a number of spans, in whatever thread finds that they are lost.

    Raises:
        DestinationError: a variable or an argument names something that there is not.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from opentelemetry.sdk.trace.export import BatchSpanProcessor
    >>> exporter = SpoolSpanExporter(endpoint="http://localhost:4318/v1/traces")
    >>> provider = TracerProvider(shutdown_on_exit=False)
    >>> provider.add_span_processor(BatchSpanProcessor(exporter))
    >>> provider.shutdown()
    """

    signal = "traces"
    encode = staticmethod(encode_spans)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Store a batch; FAILURE only if it could not be written to the disk."""
        return SpanExportResult.SUCCESS if self._spool(spans) else SpanExportResult.FAILURE


class SpoolLogExporter(_Spooled, LogRecordExporter):
    """Puts log records into the spool, from where they are sent by OTLP. Its arguments are a :class:`SpoolSpanExporter`'s."""

    signal = "logs"
    encode = staticmethod(encode_logs)

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Store a batch; FAILURE only if it could not be written to the disk."""
        return LogRecordExportResult.SUCCESS if self._spool(batch) else LogRecordExportResult.FAILURE
