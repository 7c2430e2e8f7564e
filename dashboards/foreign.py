"""Metrics that are not ours: of OpenTelemetry's SDK (seen on the version we test with) and collector (from its documentation)."""

from __future__ import annotations

from typing import Final

__all__ = ["KNOWN_LABELS", "KNOWN_METRICS"]

SDK_QUEUE_SIZE: Final = "otel_sdk_processor_span_queue_size"
SDK_PROCESSED: Final = "otel_sdk_processor_span_processed_total"
SDK_EXPORTED: Final = "otel_sdk_exporter_span_exported_total"

COLLECTOR_REFUSED: Final = "otelcol_receiver_refused_spans"
COLLECTOR_SEND_FAILED: Final = "otelcol_exporter_send_failed_spans"
COLLECTOR_ENQUEUE_FAILED: Final = "otelcol_exporter_enqueue_failed_spans"
COLLECTOR_QUEUE_SIZE: Final = "otelcol_exporter_queue_size"
COLLECTOR_QUEUE_CAPACITY: Final = "otelcol_exporter_queue_capacity"

KNOWN_METRICS: Final = frozenset(
    {
        SDK_QUEUE_SIZE,
        SDK_PROCESSED,
        SDK_EXPORTED,
        COLLECTOR_REFUSED,
        COLLECTOR_SEND_FAILED,
        COLLECTOR_ENQUEUE_FAILED,
        COLLECTOR_QUEUE_SIZE,
        COLLECTOR_QUEUE_CAPACITY,
        "up",
    }
)
"""All of them, beside those of the registry."""

KNOWN_LABELS: Final = frozenset({"otel_component_name", "error_type", "receiver", "exporter"})
