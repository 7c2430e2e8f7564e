"""What a receiver answers, and what becomes of the spans: sent once it takes them, dropped only if it never will, and counted."""

from __future__ import annotations

import logging
from typing import Any

import grpc
import pytest
from opentelemetry.sdk.trace.export import SpanExportResult
from scripted_receiver import GrpcReceiver, HttpReceiver, Inbox, Reply

from tracegraph_exporters.spool import SpoolQueue, SpoolSpanExporter

NOT_NOW = {
    "http": [Reply(503), Reply(429, retry_after="0"), Reply(502), Reply(504), Reply(401), Reply(403), Reply(302)],
    "grpc": [
        Reply(grpc.StatusCode.UNAVAILABLE),
        Reply(grpc.StatusCode.RESOURCE_EXHAUSTED, retry_after="0.01"),
        Reply(grpc.StatusCode.RESOURCE_EXHAUSTED, text="too many requests"),
        Reply(grpc.StatusCode.DEADLINE_EXCEEDED),
        Reply(grpc.StatusCode.ABORTED),
        Reply(grpc.StatusCode.UNAUTHENTICATED),
    ],
}
NEVER = {"http": Reply(400), "grpc": Reply(grpc.StatusCode.INVALID_ARGUMENT, text="no")}
TOO_LARGE = {
    "http": Reply(413),
    "grpc": Reply(grpc.StatusCode.RESOURCE_EXHAUSTED, text="Received message larger than max (5 vs. 4)"),
}


def kind(receiver: Any) -> str:
    return "http" if isinstance(receiver, HttpReceiver) else "grpc"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracegraph_exporters.spool.answers._FIRST_S", 0.001)


def test_spans_arrive_in_order_and_are_gone_from_the_spool(exporter: Any, maker: Any, inbox: Inbox) -> None:
    spooled = exporter()
    for number in range(5):
        assert spooled.export(maker.run(f"run {number}", steps=1)) is SpanExportResult.SUCCESS

    assert spooled.force_flush()
    assert inbox.names == [name for number in range(5) for name in ("run_step n0", f"run {number}")]
    assert (spooled.queue.backlog(), spooled.queue.losses(), spooled.lost) == ([], [], 0)


def test_a_receiver_that_does_not_take_them_now_gets_them_later(
    exporter: Any, maker: Any, inbox: Inbox, receiver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.replies.extend(NOT_NOW[kind(receiver)])
    expected = len(inbox.replies) + 2
    spooled = exporter()
    with caplog.at_level(logging.INFO, "tracegraph_exporters.spool"):
        spooled.export(maker.run("first", steps=0))
        spooled.export(maker.run("second", steps=0))
        assert spooled.force_flush()

    assert inbox.names == ["first", "second"]
    assert len(inbox.sizes) == expected
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"], "one outage is told of once, and its end"


def test_a_receiver_that_says_when_to_come_back_is_obeyed(
    exporter: Any, maker: Any, inbox: Inbox, receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("tracegraph_exporters.spool.sender.Sender._wait", lambda _, seconds: waits.append(seconds))
    busy = 503 if kind(receiver) == "http" else grpc.StatusCode.RESOURCE_EXHAUSTED
    inbox.replies.extend([Reply(busy, retry_after="7"), Reply(busy, retry_after="100000")])
    spooled = exporter()
    spooled.export(maker.run("run", steps=0))

    assert spooled.force_flush()
    assert waits == [7.0, 300.0]


def test_what_is_refused_for_good_is_counted_and_the_next_request_goes_on(
    exporter: Any, maker: Any, inbox: Inbox, receiver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.replies.extend([NEVER[kind(receiver)]] * 2)
    spooled = exporter()
    spooled.export(maker.run("bad", steps=2))
    spooled.export(maker.run("bad too", steps=0))
    spooled.export(maker.run("good", steps=0))

    assert spooled.force_flush()
    assert inbox.names == ["good"]
    (loss,) = spooled.queue.losses()
    assert (loss.reason, loss.items, spooled.lost) == ("refused", 4, 4)
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    assert "400" in loss.text or "INVALID_ARGUMENT" in loss.text


def test_items_that_a_taken_request_leaves_out_are_counted_and_not_sent_again(exporter: Any, maker: Any, inbox: Inbox) -> None:
    inbox.replies.append(Reply(rejected=2, text="two have no name"))
    spooled = exporter()
    spooled.export(maker.run("run", steps=3))

    assert spooled.force_flush()
    assert len(inbox.sizes) == 1
    assert [(loss.reason, loss.items, loss.text) for loss in spooled.queue.losses()] == [("rejected", 2, "two have no name")]


def test_a_request_that_the_receiver_finds_too_large_is_halved(exporter: Any, maker: Any, inbox: Inbox, receiver: Any) -> None:
    too_large = TOO_LARGE[kind(receiver)]
    # The whole, then its first half, then that one's first half, which is a single span.
    inbox.replies.extend([too_large, too_large, too_large])
    spooled = exporter()
    spooled.export(maker.run("first", steps=3))
    spooled.export(maker.run("second", steps=0))

    assert spooled.force_flush()
    assert inbox.names == ["run_step n1", "run_step n2", "first", "second"]
    assert [(loss.reason, loss.items) for loss in spooled.queue.losses()] == [("too_large", 1)]


def test_no_request_is_larger_than_the_limit(exporter: Any, maker: Any, inbox: Inbox) -> None:
    spooled = exporter(max_request_bytes=5_000)
    for number in range(40):
        maker.end(maker.start(f"span {number}", attributes={"text": "x" * 400}))
    maker.end(maker.start("huge", attributes={"text": "x" * 6_000}))

    assert spooled.export(maker.take()) is SpanExportResult.SUCCESS
    assert spooled.force_flush()
    assert inbox.names == [f"span {number}" for number in range(40)]
    assert len(inbox.sizes) > 3
    assert max(inbox.sizes) <= 5_000
    assert [(loss.reason, loss.items) for loss in spooled.queue.losses()] == [("too_large", 1)]


def test_headers_and_compression_are_those_of_the_variables(
    exporter: Any, maker: Any, inbox: Inbox, receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret,X-Tenant=a%20b")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    spooled = exporter()
    spooled.export(maker.run("run", steps=0))

    assert spooled.force_flush()
    (headers,) = inbox.headers
    assert (headers["api-key"], headers["x-tenant"]) == ("s3cret", "a b")
    if kind(receiver) == "http":  # gRPC's own header is not shown to a method
        assert headers["content-encoding"] == "gzip"
    assert "s3cret" not in spooled.queue.path.read_bytes().decode("latin-1")
    assert "s3cret" not in repr(spooled.destination)


def test_a_collector_that_is_not_there_keeps_nobody_waiting(maker: Any, inbox: Inbox, spool_path: Any, receiver: Any) -> None:
    """Its spans are in the spool, and the exporter of a later process sends them to the collector that came back."""
    endpoint, port = receiver.endpoint("traces"), receiver.port
    receiver.close()
    before = SpoolSpanExporter(endpoint=endpoint, protocol=receiver.protocol, path=spool_path)
    assert before.export(maker.run("run", steps=0)) is SpanExportResult.SUCCESS
    assert not before.force_flush(50)
    before.shutdown(50)
    assert [backlog.items for backlog in SpoolQueue(spool_path).backlog()] == [1]

    again = type(receiver)(inbox, port)
    after = SpoolSpanExporter(endpoint=endpoint, protocol=receiver.protocol, path=spool_path)
    try:
        assert after.force_flush()
        assert inbox.names == ["run"]
    finally:
        after.shutdown()
        again.close()


def test_requests_go_to_the_destination_that_they_were_spooled_for(
    exporter: Any, maker: Any, inbox: Inbox, spool_path: Any
) -> None:
    elsewhere = SpoolSpanExporter(endpoint="http://127.0.0.1:9/v1/traces", protocol="http/protobuf", path=spool_path)
    elsewhere.export(maker.run("not for us", steps=0))
    spooled = exporter()
    spooled.export(maker.run("for us", steps=0))

    assert spooled.force_flush()
    elsewhere.shutdown(50)
    assert inbox.names == ["for us"]
    assert [(waiting.destination, waiting.items) for waiting in spooled.queue.backlog()] == [
        ("traces http://127.0.0.1:9/v1/traces", 1)
    ]


def test_log_records_are_spooled_too(receiver: GrpcReceiver, inbox: Inbox, spool_path: Any) -> None:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    from tracegraph_exporters.spool import SpoolLogExporter

    spooled = SpoolLogExporter(endpoint=receiver.endpoint("logs"), protocol=receiver.protocol, path=spool_path)
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(spooled))
    for number in range(3):
        provider.get_logger("tests").emit(body=f"line {number}")

    assert provider.force_flush()
    assert spooled.force_flush()
    provider.shutdown()
    assert inbox.records == ["line 0", "line 1", "line 2"]


@pytest.mark.parametrize("header", ["secret\n", "secret\u2026"])
@pytest.mark.parametrize("path", ["", "?key=secret"])
def test_a_key_that_cannot_be_sent_is_not_logged_and_costs_no_spans(
    exporter: Any, maker: Any, receiver: Any, caplog: pytest.LogCaptureFixture, header: str, path: str
) -> None:
    spooled = exporter(headers={"api-key": header}, endpoint=receiver.endpoint("traces") + path)
    with caplog.at_level(logging.INFO, "tracegraph_exporters.spool"):
        spooled.export(maker.run("run", steps=0))
        assert not spooled.force_flush(300)
        spooled.shutdown()

    assert [(one.items, spooled.queue.losses()) for one in spooled.queue.backlog()] == [(1, [])]
    assert caplog.records
    assert "secret" not in caplog.text


def test_an_outage_is_told_of_without_the_key_in_the_address(exporter: Any, maker: Any, caplog: pytest.LogCaptureFixture) -> None:
    spooled = exporter(endpoint="http://127.0.0.1:9/v1/traces?key=secret", protocol="http/protobuf")
    spooled.export(maker.run("run", steps=0))
    spooled.shutdown()

    assert "refused" in caplog.text
    assert "secret" not in caplog.text


def test_a_connection_that_cannot_be_made_is_tried_again(
    exporter: Any, maker: Any, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, failures = SpoolSpanExporter._connect, iter([ImportError("half an upgrade")])

    def connect_late(self: SpoolSpanExporter) -> Any:
        for failure in failures:
            raise failure
        return connect(self)

    monkeypatch.setattr(SpoolSpanExporter, "_connect", connect_late)
    spooled = exporter()
    spooled.export(maker.run("run", steps=0))

    assert spooled.force_flush()
    assert inbox.names == ["run"]
