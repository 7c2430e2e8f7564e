"""A small OTLP/HTTP receiver of log records on the standard library; traces are accepted and forgotten."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse


class OtlpLogReceiver:
    """Listens on the loopback interface, at a port of the system's choice, until closed."""

    def __init__(self) -> None:
        self.requests: list[ExportLogsServiceRequest] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/logs":
                    outer.requests.append(ExportLogsServiceRequest.FromString(body))
                answer = ExportLogsServiceResponse().SerializeToString()
                self.send_response(200)
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
    def records(self) -> list[Any]:
        """All records received, in order."""
        return [r for q in self.requests for rl in q.resource_logs for sl in rl.scope_logs for r in sl.log_records]

    @property
    def resource(self) -> dict[str, str]:
        """Resource attributes of the first request."""
        return {kv.key: kv.value.string_value for kv in self.requests[0].resource_logs[0].resource.attributes}

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
