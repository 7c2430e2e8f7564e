"""Telemetry: the events of a run as spans.

The library uses the OpenTelemetry API only. An application that has configured the SDK itself needs nothing
from here; one that has not calls :func:`setup`. Importing this package loads and starts nothing.
"""

from __future__ import annotations

from tracegraph.telemetry.joining import continue_trace
from tracegraph.telemetry.roots import attach_here, observers_for_root, spans_for_root, use_provider
from tracegraph.telemetry.setup import Telemetry, setup

__all__ = ["Telemetry", "attach_here", "continue_trace", "observers_for_root", "setup", "spans_for_root", "use_provider"]
