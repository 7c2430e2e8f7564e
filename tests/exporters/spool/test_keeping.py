"""What waits in the spool outlives its process, shares a file with others, and has a limit."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from scripted_receiver import HttpReceiver, Inbox

from tracegraph_exporters.spool import SpoolError, SpoolQueue, SpoolSpanExporter
from tracegraph_exporters.spool.packing import Packed

NOWHERE = "http://127.0.0.1:9/v1/traces"

PROGRAM = """
import os, sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from tracegraph_exporters.spool import SpoolSpanExporter

endpoint, path, name, count, ending = sys.argv[1:]
provider = TracerProvider(shutdown_on_exit=False)
exporter = SpoolSpanExporter(endpoint=endpoint, protocol="http/protobuf", path=path)
provider.add_span_processor(SimpleSpanProcessor(exporter))
tracer = provider.get_tracer("program")
for number in range(int(count)):
    tracer.start_span(f"{name} {number}").end()
    if ending == "killed" and number == int(count) - 1:
        os.kill(os.getpid(), 9)
print(exporter.force_flush())
provider.shutdown()
"""


def program(*arguments: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def receiver(inbox: Inbox) -> Any:
    made = HttpReceiver(inbox)
    yield made
    made.close()


def test_a_killed_process_loses_nothing_that_was_exported(spool_path: Path, receiver: HttpReceiver, inbox: Inbox) -> None:
    endpoint, port = receiver.endpoint("traces"), receiver.port
    receiver.close()
    killed = program(endpoint, spool_path, "span", 20, "killed")
    assert killed.wait(30) == -signal.SIGKILL

    again = HttpReceiver(inbox, port)
    after = SpoolSpanExporter(endpoint=endpoint, protocol="http/protobuf", path=spool_path)
    try:
        # Its lease does not last longer than the process.
        assert after.force_flush()
        assert inbox.names == [f"span {number}" for number in range(20)]
    finally:
        after.shutdown()
        again.close()
    killed.communicate()


def test_processes_that_share_a_spool_lose_nothing_and_send_nothing_twice(
    spool_path: Path, receiver: HttpReceiver, inbox: Inbox
) -> None:
    names = ["a", "b", "c"]
    running = [program(receiver.endpoint("traces"), spool_path, name, 60, "ends") for name in names]
    assert [process.communicate(timeout=50)[0].strip() for process in running] == ["True"] * 3

    for name in names:
        assert [found for found in inbox.names if found.startswith(name)] == [f"{name} {number}" for number in range(60)]
    assert len({span_id for span_id, _ in inbox.spans}) == len(inbox.spans) == 180
    assert SpoolQueue(spool_path).backlog() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_sends_its_own(spool_path: Path, receiver: HttpReceiver, inbox: Inbox, maker: Any) -> None:
    spooled = SpoolSpanExporter(endpoint=receiver.endpoint("traces"), protocol="http/protobuf", path=spool_path)
    spooled.export(maker.run("before", steps=0))
    assert spooled.force_flush()
    child = os.fork()
    if child == 0:
        is_sent = False
        try:
            spooled.export(maker.run("child", steps=0))
            is_sent = spooled.force_flush()
        finally:
            os._exit(0 if is_sent else 1)
    spooled.export(maker.run("parent", steps=0))
    assert os.waitpid(child, 0)[1] == 0
    assert spooled.force_flush()
    spooled.shutdown()

    assert sorted(inbox.names) == ["before", "child", "parent"]


def test_the_oldest_make_room_and_are_counted(spool_path: Path, maker: Any) -> None:
    spooled = SpoolSpanExporter(endpoint=NOWHERE, protocol="http/protobuf", path=spool_path, max_bytes=3_000)
    for number in range(10):
        maker.end(maker.start(f"span {number}", attributes={"text": "x" * 500}))
        assert spooled.export(maker.take()) is SpanExportResult.SUCCESS
    spooled.shutdown(50)

    queue = SpoolQueue(spool_path)
    (waiting,) = queue.backlog()
    (loss,) = queue.losses()
    assert waiting.bytes <= 3_000
    assert (loss.reason, loss.items + waiting.items, spooled.lost) == ("spool_full", 10, loss.items)
    newest = sqlite3.connect(spool_path).execute("SELECT body FROM requests ORDER BY id DESC LIMIT 1").fetchone()[0]
    assert b"span 9" in newest


def test_a_full_disk_is_counted_and_told_once(spool_path: Path, maker: Any, caplog: pytest.LogCaptureFixture) -> None:
    spooled = SpoolSpanExporter(endpoint=NOWHERE, protocol="http/protobuf", path=spool_path)
    spooled.export(maker.run("before", steps=0))
    pages = spooled.queue._open().execute("PRAGMA page_count").fetchone()[0]
    spooled.queue._open().execute(f"PRAGMA max_page_count = {pages}")
    for number in range(3):
        maker.end(maker.start(f"span {number}", attributes={"text": "x" * 50_000}))
        assert spooled.export(maker.take()) is SpanExportResult.FAILURE
    assert len([record for record in caplog.records if "cannot be written" in record.message]) == 1

    spooled.queue._open().execute("PRAGMA max_page_count = 1000000")
    assert spooled.export(maker.run("after", steps=0)) is SpanExportResult.SUCCESS
    spooled.shutdown(50)
    assert [(loss.reason, loss.items) for loss in SpoolQueue(spool_path).losses()] == [("unwritten", 3)]
    assert [backlog.items for backlog in SpoolQueue(spool_path).backlog()] == [2]


def test_one_sender_a_destination(spool_path: Path) -> None:
    """Another process, or exporter, has to wait until the first one is done, dead, or has been silent for a minute."""
    first, second = SpoolQueue(spool_path), SpoolQueue(spool_path)

    assert first.take_lease("d", "one")
    assert not second.take_lease("d", "two")
    assert second.take_lease("elsewhere", "two")
    first.give_back_lease("d", "one")
    assert second.take_lease("d", "two")

    connection = sqlite3.connect(spool_path)
    connection.execute("UPDATE senders SET seen_ns = seen_ns - 61000000000 WHERE destination = 'd'")
    connection.commit()
    assert first.take_lease("d", "one"), "it has been silent"
    connection.execute("UPDATE senders SET pid = 4194305 WHERE destination = 'd'")
    connection.commit()
    assert second.take_lease("d", "two"), "that process is dead"
    for opened in (first, second, connection):
        opened.close()


def test_what_is_being_sent_does_not_make_room(spool_path: Path) -> None:
    """It may have arrived, and would be counted as lost."""
    queue = SpoolQueue(spool_path, max_bytes=10)
    queue.put("d", [Packed(b"12345", 1)])
    queue.take_lease("d", "token")
    assert queue.first("d", "token") is not None
    queue.put("d", [Packed(b"67890", 1)])

    assert queue.put("d", [Packed(b"abcde", 1)]) == {"d": 1}
    assert [row[0] for row in sqlite3.connect(spool_path).execute("SELECT body FROM requests ORDER BY id")] == [
        b"12345",
        b"abcde",
    ]
    queue.close()


def test_a_file_that_is_no_spool_is_left_alone(spool_path: Path, maker: Any) -> None:
    spool_path.write_bytes(b"precious notes, not a database at all" * 100)
    spooled = SpoolSpanExporter(endpoint=NOWHERE, protocol="http/protobuf", path=spool_path)

    assert spooled.export(maker.run("run", steps=0)) is SpanExportResult.FAILURE
    spooled.shutdown(50)
    assert spool_path.read_bytes().startswith(b"precious notes")
    with pytest.raises(SpoolError, match="is no spool"):
        SpoolQueue(spool_path).backlog()


def test_the_file_is_private_and_shrinks_when_it_is_empty(
    spool_path: Path, receiver: HttpReceiver, maker: Any, inbox: Inbox
) -> None:
    endpoint, port = receiver.endpoint("traces"), receiver.port
    receiver.close()
    spooled = SpoolSpanExporter(endpoint=endpoint, protocol="http/protobuf", path=spool_path)
    for number in range(200):
        maker.end(maker.start(f"span {number}", attributes={"text": "x" * 20_000}))
    spooled.export(maker.take())
    spooled.shutdown(50)
    assert spool_path.stat().st_mode & 0o777 == 0o600
    full = spool_path.stat().st_size

    again = HttpReceiver(inbox, port)
    after = SpoolSpanExporter(endpoint=endpoint, protocol="http/protobuf", path=spool_path)
    assert after.force_flush()
    after.shutdown()
    again.close()
    assert len(inbox.spans) == 200
    assert spool_path.stat().st_size < full / 10


def test_batches_of_the_sdk_are_spooled(spool_path: Path, receiver: HttpReceiver, inbox: Inbox) -> None:
    """As an application without tracegraph uses it."""
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider(shutdown_on_exit=False)
    spooled = SpoolSpanExporter(endpoint=receiver.endpoint("traces"), protocol="http/protobuf", path=spool_path)
    provider.add_span_processor(BatchSpanProcessor(spooled))
    for number in range(50):
        provider.get_tracer("tests").start_span(f"span {number}").end()

    provider.shutdown()
    assert inbox.names == [f"span {number}" for number in range(50)]


def test_what_makes_room_for_another_signal_is_the_loss_of_its_own_exporter(maker: Any, tmp_path: Path) -> None:
    path, told = tmp_path / "spool.db", []
    first, second = (
        SpoolSpanExporter(
            endpoint=f"http://127.0.0.1:9/{name}",
            protocol="http/protobuf",
            path=path,
            max_bytes=1,
            on_loss=lambda reason, items, name=name: told.append((name, reason, items)),  # type: ignore[misc]
        )
        for name in ("first", "second")
    )
    first.queue.put(first.destination.key, [Packed(b"12345", 7)])
    second.export(maker.run("run", steps=0))
    first.shutdown(0)
    second.shutdown(0)

    assert told == [("first", "spool_full", 7)]
    assert (first.lost, second.lost) == (7, 0)


def test_who_has_lost_the_lease_sends_nothing(spool_path: Path) -> None:
    queue = SpoolQueue(spool_path)
    queue.put("d", [Packed(b"12345", 1)])
    assert queue.take_lease("d", "stopped")
    queue.give_back_lease("d", "stopped")
    assert queue.take_lease("d", "other")

    assert queue.first("d", "stopped") is None
    assert queue.first("d", "other") is not None
    queue.close()
