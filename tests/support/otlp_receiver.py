"""A small OTLP receiver, over HTTP (gzip or not) on the standard library or over gRPC: keeps the requests of every signal."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


class _Received:
    """The requests so far, and what is in them."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.logs: list[ExportLogsServiceRequest] = []

    @property
    def span_names(self) -> list[str]:
        """Names of all spans received, in order."""
        return [s.name for r in self.requests for rs in r.resource_spans for ss in rs.scope_spans for s in ss.spans]

    @property
    def metric_names(self) -> set[str]:
        """Names of all instruments received, but for what the SDK says of itself: its lower versions always do."""
        names = {m.name for r in self.metrics for rm in r.resource_metrics for sm in rm.scope_metrics for m in sm.metrics}
        return {name for name in names if not name.startswith("otel.sdk.")}

    @property
    def records(self) -> list[Any]:
        """All log records received, in order."""
        return [r for q in self.logs for rl in q.resource_logs for sl in rl.scope_logs for r in sl.log_records]

    @property
    def resource(self) -> dict[str, str]:
        """Resource attributes of the first request with spans."""
        return _texts(self.requests[0].resource_spans[0].resource)

    @property
    def log_resource(self) -> dict[str, str]:
        """Resource attributes of the first request with log records."""
        return _texts(self.logs[0].resource_logs[0].resource)


def _texts(resource: Any) -> dict[str, str]:
    return {kv.key: kv.value.string_value for kv in resource.attributes}


class OtlpReceiver(_Received):
    """Listens on the loopback interface, at a port of the system's choice, until closed."""

    def __init__(self) -> None:
        super().__init__()
        signals: dict[str, tuple[Any, Any, list[Any]]] = {
            "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse, self.requests),
            "/v1/metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse, self.metrics),
            "/v1/logs": (ExportLogsServiceRequest, ExportLogsServiceResponse, self.logs),
        }

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = b""
                if self.path in signals:
                    request, response, kept = signals[self.path]
                    kept.append(request.FromString(body))
                    answer = response().SerializeToString()
                self.send_response(200 if self.path in signals else 404)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base address, as OTEL_EXPORTER_OTLP_ENDPOINT takes it."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class OtlpGrpcReceiver(_Received):
    """The same for OTLP/gRPC."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        import grpc
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_service
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_service
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service

        super().__init__()

        def servicer(base: Any, kept: list[Any], response: Any) -> Any:
            def export(_self: Any, request: Any, _context: Any) -> Any:
                kept.append(request)
                return response()

            return type("Servicer", (base,), {"Export": export})()

        self._server = grpc.server(ThreadPoolExecutor(1))
        traces = servicer(service.TraceServiceServicer, self.requests, ExportTraceServiceResponse)
        service.add_TraceServiceServicer_to_server(traces, self._server)
        metrics = servicer(metrics_service.MetricsServiceServicer, self.metrics, ExportMetricsServiceResponse)
        metrics_service.add_MetricsServiceServicer_to_server(metrics, self._server)
        logs = servicer(logs_service.LogsServiceServicer, self.logs, ExportLogsServiceResponse)
        logs_service.add_LogsServiceServicer_to_server(logs, self._server)
        self._port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    url = property(lambda self: f"http://127.0.0.1:{self._port}")

    def close(self) -> None:
        """Stop listening."""
        self._server.stop(None).wait()
