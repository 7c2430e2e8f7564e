"""``tracegraph spool``: what waits for a collector, and what it will never get."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Command
from scripted_receiver import HttpReceiver, Inbox

from tracegraph_exporters.spool import SpoolQueue
from tracegraph_exporters.spool.packing import Packed


@pytest.fixture
def queue(tmp_path: Path) -> SpoolQueue:
    return SpoolQueue(tmp_path / "home" / "spool.db")


def test_before_the_first_batch_there_is_nothing_to_show(command: Command, tmp_path: Path) -> None:
    assert command("spool", "--json").data == {"waiting": [], "lost": []}
    done = command("spool")
    assert (done.code, done.out) == (0, "")
    assert "no spool in" in done.err
    assert not (tmp_path / "home").exists()


def test_what_waits_and_what_was_lost(command: Command, queue: SpoolQueue) -> None:
    queue.put("traces http://c:4318/v1/traces", [Packed(b"12345", 3), Packed(b"678", 2)])
    queue.count_loss("traces http://c:4318/v1/traces", "refused", 7, "HTTP 400 Bad Request")
    queue.close()
    done = command("spool")

    headings, line = done.out.splitlines()
    assert headings.split() == ["destination", "requests", "items", "bytes", "oldest"]
    assert re.fullmatch(r"traces http://c:4318/v1/traces +2 +5 +8 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)
    assert re.search(r"traces http://c:4318/v1/traces lost 7 items \(refused, last .*\): HTTP 400 Bad Request", done.err)
    data = command("spool", "--json").data
    assert [(one["items"], one["bytes"]) for one in data["waiting"]] == [(5, 8)]
    assert [(one["reason"], one["items"]) for one in data["lost"]] == [("refused", 7)]


def test_what_waits_can_be_sent(command: Command, queue: SpoolQueue) -> None:
    """To where the variables say; the exit code tells whether all of it arrived."""
    inbox = Inbox()
    receiver = HttpReceiver(inbox)
    endpoint = receiver.endpoint("traces")
    queue.put(f"traces {endpoint}", [Packed(b"", 1)])
    queue.close()
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint.removesuffix("/v1/traces"),
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    }

    sent = command("spool", "--send", "20", env=variables)
    assert (sent.code, len(inbox.sizes)) == (0, 1)
    assert "nothing waits" in sent.err

    receiver.close()
    queue.put(f"traces {endpoint}", [Packed(b"", 1)])
    queue.close()
    assert command("spool", "--send", "0.2", env=variables).code == 1


def test_a_file_that_is_no_spool_is_said(command: Command, queue: SpoolQueue) -> None:
    queue.path.parent.mkdir()
    queue.path.write_bytes(b"not a database" * 100)
    done = command("spool")

    assert done.code == 2
    assert "is no spool" in done.err
