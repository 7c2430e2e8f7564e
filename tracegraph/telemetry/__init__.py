"""Telemetry: the events of a run as spans, metrics and log records, and log lines that say where in a run they come from.

The library uses the OpenTelemetry API only. An application that has configured the SDK itself needs nothing
from here; one that has not calls :func:`setup`. Importing this package loads and starts nothing.
"""

from __future__ import annotations

from tracegraph.telemetry.correlation import RUN_FIELDS, RunFieldsFilter, add_run_fields, run_fields
from tracegraph.telemetry.forwarding import ForwardingHandler, forward_line
from tracegraph.telemetry.joining import continue_trace
from tracegraph.telemetry.log_provider import use_logger_provider
from tracegraph.telemetry.meters import use_meter_provider
from tracegraph.telemetry.options import TelemetryOptions
from tracegraph.telemetry.roots import attach_here, observers_for_root, spans_for_root, use_provider
from tracegraph.telemetry.setup import Telemetry, setup

__all__ = [
    "RUN_FIELDS",
    "ForwardingHandler",
    "RunFieldsFilter",
    "Telemetry",
    "TelemetryOptions",
    "add_run_fields",
    "attach_here",
    "continue_trace",
    "forward_line",
    "observers_for_root",
    "run_fields",
    "setup",
    "spans_for_root",
    "use_logger_provider",
    "use_meter_provider",
    "use_provider",
]
