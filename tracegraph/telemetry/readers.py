"""Where metrics can go: readers by name, as ``OTEL_METRICS_EXPORTER`` has them, and a provider for them. Loads the SDK."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIServer

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry import otlp
from tracegraph.telemetry.meters import is_real, is_stand_in, use_meter_provider

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

__all__ = ["Meters", "has_application_provider"]

_PROMETHEUS: Final = "prometheus"
_GROUP: Final = "opentelemetry_metrics_exporter"
_HOST: Final = "OTEL_EXPORTER_PROMETHEUS_HOST"
_PORT: Final = "OTEL_EXPORTER_PROMETHEUS_PORT"


class OwnMeterProvider(MeterProvider):
    """One that :func:`tracegraph.telemetry.setup` made."""

    is_retired = False
    """It was shut down, so runs are not to be measured with it."""


def has_application_provider() -> bool:
    """Say whether the application has set a meter provider, which does its own exporting."""
    found = metrics.get_meter_provider()
    return is_real(found) and not isinstance(found, OwnMeterProvider)


class Meters:
    """A meter provider made here, with what it is read by.

    Raises:
        InvalidInputError: a name is no installed exporter, or the Prometheus endpoint cannot be opened.
        ValueError: an exporter or the SDK refuses what a variable of its own says.
    """

    def __init__(self, names: Iterable[str], resource: Resource) -> None:
        self.prometheus_url: str | None = None
        self._server: WSGIServer | None = None
        names = tuple(dict.fromkeys(names))
        # What may fail comes first: a reader starts a thread, and an endpoint stays open.
        classes = [_exporter_class(name) for name in names if name != _PROMETHEUS]
        with ExitStack() as undo:
            exporters = []
            for cls in classes:
                exporters.append(exporter := cls())
                undo.callback(exporter.shutdown)
            readers = [self._prometheus_reader()] if _PROMETHEUS in names else []
            undo.callback(self._close_endpoint)
            readers.extend(made if isinstance(made, MetricReader) else PeriodicExportingMetricReader(made) for made in exporters)
            self.provider = OwnMeterProvider(readers, resource, shutdown_on_exit=False)
            undo.pop_all()

    def use(self) -> None:
        """Measure later runs with it, and make it the global one if there is none yet.

        OpenTelemetry allows the latter once a process: after a shutdown the global one stays the old one.
        """
        if is_stand_in(metrics.get_meter_provider()):
            metrics.set_meter_provider(self.provider)
        use_meter_provider(self.provider)

    def force_flush(self, timeout_ms: int) -> bool:
        """Export what was measured until now; return False if a reader failed. An exporter that did only logs it."""
        try:
            return self.provider.force_flush(timeout_ms)
        except Exception:  # noqa: BLE001  # the SDK's way to say that a reader failed, which it has logged
            return False

    def shutdown(self, timeout_ms: int = 30_000) -> None:
        """Export what was measured until now, for so long at most, stop the readers and close the endpoint."""
        self.provider.is_retired = True
        with suppress(Exception):  # as above
            self.provider.shutdown(timeout_ms)
        self._close_endpoint()

    def _close_endpoint(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _prometheus_reader(self) -> MetricReader:
        """Return a reader behind an HTTP endpoint, on the loopback interface unless a variable names another."""
        try:
            from opentelemetry.exporter.prometheus import PrometheusMetricReader
            from prometheus_client import start_http_server
        except ImportError as error:
            raise InvalidInputError(
                "OTEL_METRICS_EXPORTER names 'prometheus', which is not installed: pip install 'tracegraph[prometheus]'"
            ) from error
        host, port = os.environ.get(_HOST) or "localhost", os.environ.get(_PORT) or "9464"
        # The class behind the standard entry point leaves its server running, so that it cannot be set up again.
        try:
            server, _ = start_http_server(int(port), host)
        except (OSError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"the Prometheus endpoint cannot be opened at {host}:{port} ({error}); {_HOST} and {_PORT} choose another"
            ) from error
        self._server = server
        self.prometheus_url = f"http://{host}:{server.server_port}/metrics"
        return PrometheusMetricReader()


def _exporter_class(name: str) -> Any:
    looked_up = otlp.entry_point_name("METRICS") if name == "otlp" else name
    for entry_point in entry_points(group=_GROUP, name=looked_up):
        return entry_point.load()
    known = sorted({"otlp", "none", _PROMETHEUS} | {point.name for point in entry_points(group=_GROUP)})
    raise InvalidInputError(
        f"OTEL_METRICS_EXPORTER names {name!r}, which is no installed metrics exporter; known: {', '.join(known)}"
    )
