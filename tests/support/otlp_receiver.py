"""A small OTLP/HTTP receiver on the standard library: keeps the trace and metrics requests it gets, gzip or not."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


class OtlpReceiver:
    """Listens on the loopback interface, at a port of the system's choice, until closed."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = b""
                if self.path == "/v1/traces":
                    outer.requests.append(ExportTraceServiceRequest.FromString(body))
                    answer = ExportTraceServiceResponse().SerializeToString()
                elif self.path == "/v1/metrics":
                    outer.metrics.append(ExportMetricsServiceRequest.FromString(body))
                    answer = ExportMetricsServiceResponse().SerializeToString()
                self.send_response(200 if self.path in ("/v1/traces", "/v1/metrics") else 404)
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
    def resource(self) -> dict[str, str]:
        """Resource attributes of the first request."""
        return {kv.key: kv.value.string_value for kv in self.requests[0].resource_spans[0].resource.attributes}

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class OtlpGrpcReceiver:
    """The same for OTLP/gRPC."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        import grpc
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_service
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service

        self.requests: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        outer = self

        class Servicer(service.TraceServiceServicer):
            def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:
                outer.requests.append(request)
                return ExportTraceServiceResponse()

        class MetricsServicer(metrics_service.MetricsServiceServicer):
            def Export(self, request: ExportMetricsServiceRequest, context: Any) -> ExportMetricsServiceResponse:
                outer.metrics.append(request)
                return ExportMetricsServiceResponse()

        self._server = grpc.server(ThreadPoolExecutor(1))
        service.add_TraceServiceServicer_to_server(Servicer(), self._server)
        metrics_service.add_MetricsServiceServicer_to_server(MetricsServicer(), self._server)
        self._port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    url = property(lambda self: f"http://127.0.0.1:{self._port}")
    span_names = OtlpReceiver.span_names
    metric_names = OtlpReceiver.metric_names

    def close(self) -> None:
        """Stop listening."""
        self._server.stop(None).wait()
