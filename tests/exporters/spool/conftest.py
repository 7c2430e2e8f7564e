"""A receiver that answers as told, and exporters with a spool of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_receiver import GrpcReceiver, HttpReceiver, Inbox

from tracegraph_exporters.spool import SpoolSpanExporter


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture(params=[HttpReceiver, GrpcReceiver], ids=["http", "grpc"])
def receiver(request: pytest.FixtureRequest, inbox: Inbox) -> Iterator[Any]:
    made = request.param(inbox)
    yield made
    made.close()


@pytest.fixture
def spool_path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


@pytest.fixture
def exporter(spool_path: Path, receiver: Any) -> Iterator[Callable[..., SpoolSpanExporter]]:
    """Return what makes exporters to the receiver, which end with the test."""
    made = []

    def make(**options: Any) -> SpoolSpanExporter:
        values = {"endpoint": receiver.endpoint("traces"), "protocol": receiver.protocol, "path": spool_path} | options
        made.append(SpoolSpanExporter(**values))
        return made[-1]

    yield make
    for one in made:
        one.shutdown(100)
