"""A durable queue in front of OTLP: spans and log records are on disk before they are sent, and until they have arrived.

- :class:`SpoolSpanExporter` and :class:`SpoolLogExporter` are ordinary exporters of the SDK, for any application.
- ``packing``: requests that no receiver refuses for their size; ``queue``: the SQLite file; ``destination``: what the
  ``OTEL_EXPORTER_OTLP_*`` variables say; ``http`` and ``grpc``: one request sent, and what the answer means; ``sender``:
  the thread that empties the queue.

What is in the file is sent at least once, in order. A collector that is down, slow or asks to wait costs nothing but disk
space, up to a limit; the process may end meanwhile, and the next one that uses the file goes on.
"""

from __future__ import annotations

from tracegraph_exporters.spool.destination import Destination, DestinationError, Signal
from tracegraph_exporters.spool.exporters import SpoolLogExporter, SpoolSpanExporter
from tracegraph_exporters.spool.queue import Backlog, Loss, SpoolError, SpoolQueue, default_spool_path

__all__ = [
    "Backlog",
    "Destination",
    "DestinationError",
    "Loss",
    "Signal",
    "SpoolError",
    "SpoolLogExporter",
    "SpoolQueue",
    "SpoolSpanExporter",
    "default_spool_path",
]
