"""The OTLP services: the method of each signal, and how its answer tells of items that were not taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tracegraph_exporters.spool.destination import Signal

__all__ = ["METHODS", "rejected_of"]

METHODS: Final[Mapping[Signal, str]] = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

_ANSWERS: Final[Mapping[Signal, tuple[Callable[[bytes], Any], str]]] = {
    "traces": (ExportTraceServiceResponse.FromString, "rejected_spans"),
    "logs": (ExportLogsServiceResponse.FromString, "rejected_log_records"),
}


def rejected_of(signal: Signal, answer: bytes) -> tuple[int, str]:
    """Return how many items a receiver did not take of a request that it took, and what it said.

    An answer that is no such message (a proxy's page) tells of none.
    """
    parse, field = _ANSWERS[signal]
    try:
        partial = parse(answer).partial_success
    except DecodeError:
        return 0, ""
    return int(getattr(partial, field)), str(partial.error_message)
