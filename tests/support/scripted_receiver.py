"""OTLP receivers, over HTTP and gRPC, that answer as a test wants them to, and come back at the port where they were."""

from __future__ import annotations

import gzip
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


@dataclass(frozen=True)
class Reply:
    """An answer: an HTTP status (or gRPC code), when to come back, and how many items of a request are not taken."""

    status: Any = 200
    retry_after: str | None = None
    rejected: int = 0
    text: str = ""


@dataclass
class Inbox:
    """What arrived, over all lives of a receiver, and the answers that are still to be given; then all is well."""

    replies: deque[Reply] = field(default_factory=deque)
    spans: list[tuple[bytes, str]] = field(default_factory=list)
    """Span ids and names of the requests that were taken, in order."""
    records: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Bytes of every request, before it was compressed."""
    headers: list[dict[str, str]] = field(default_factory=list)
    on_request: Callable[[], None] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, signal: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Note a request; return how to answer."""
        self.on_request()
        with self.lock:
            self.sizes.append(len(body))
            self.headers.append(headers)
            reply = self.replies.popleft() if self.replies else Reply()
            if reply.status in (200, grpc.StatusCode.OK):
                self._keep(signal, body)
        return reply

    def _keep(self, signal: str, body: bytes) -> None:
        if signal == "traces":
            request = ExportTraceServiceRequest.FromString(body)
            self.spans += [
                (span.span_id, span.name) for rs in request.resource_spans for ss in rs.scope_spans for span in ss.spans
            ]
        else:
            logs = ExportLogsServiceRequest.FromString(body)
            self.records += [
                record.body.string_value for rl in logs.resource_logs for sl in rl.scope_logs for record in sl.log_records
            ]

    @property
    def names(self) -> list[str]:
        """Names of the spans that were taken, in order."""
        return [name for _, name in self.spans]


def _response(signal: str, reply: Reply) -> Any:
    if signal == "traces":
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = reply.rejected
    else:
        answer = ExportLogsServiceResponse()
        answer.partial_success.rejected_log_records = reply.rejected
    answer.partial_success.error_message = reply.text
    return answer


class HttpReceiver:
    """OTLP/HTTP on the loopback interface."""

    protocol = "http/protobuf"

    def __init__(self, inbox: Inbox, port: int = 0) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                signal = self.path.rpartition("/")[2]
                reply = inbox.take(signal, body, {name.lower(): value for name, value in self.headers.items()})
                answer = _response(signal, reply).SerializeToString()
                self.send_response(reply.status)
                if reply.retry_after is not None:
                    self.send_header("retry-after", reply.retry_after)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.port = self._server.server_address[1]

    def endpoint(self, signal: str) -> str:
        """The address of a signal."""
        return f"http://127.0.0.1:{self.port}/v1/{signal}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcReceiver:
    """OTLP/gRPC on the loopback interface."""

    protocol = "grpc"

    def __init__(self, inbox: Inbox, port: int = 0) -> None:
        def method(signal: str) -> Callable[[bytes, Any], bytes]:
            def export(body: bytes, context: Any) -> bytes:
                metadata = {item.key: item.value for item in context.invocation_metadata()}
                reply = inbox.take(signal, body, metadata)
                if reply.status not in (200, grpc.StatusCode.OK):
                    if reply.retry_after is not None:
                        info = RetryInfo()
                        info.retry_delay.FromNanoseconds(int(float(reply.retry_after) * 1e9))
                        context.set_trailing_metadata((("google.rpc.retryinfo-bin", info.SerializeToString()),))
                    context.abort(reply.status, reply.text)
                return bytes(_response(signal, reply).SerializeToString())

            return export

        services = {"traces": "trace.v1.TraceService", "logs": "logs.v1.LogsService"}
        handlers: Sequence[Any] = [
            grpc.method_handlers_generic_handler(
                f"opentelemetry.proto.collector.{name}", {"Export": grpc.unary_unary_rpc_method_handler(method(signal))}
            )
            for signal, name in services.items()
        ]
        self._server = grpc.server(ThreadPoolExecutor(1), handlers=handlers, options=(("grpc.so_reuseport", 0),))
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def endpoint(self, signal: str) -> str:  # noqa: ARG002  # gRPC has one address for all
        """The address."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop listening."""
        self._server.stop(None).wait()
