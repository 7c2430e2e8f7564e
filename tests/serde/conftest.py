"""Makes ``stored_types`` importable: what is stored names modules, so these need a name of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracegraph.checkpoint.serde import allowlist
from tracegraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def not_strict_and_not_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test starts in the default mode, in which nothing has been warned of."""
    for name in ("TRACEGRAPH_STRICT_MSGPACK", "LANGGRAPH_STRICT_MSGPACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(allowlist, "_warned", set())


@pytest.fixture
def events() -> Iterator[list[SerdeEvent]]:
    seen: list[SerdeEvent] = []
    stop = register_serde_event_listener(seen.append)
    yield seen
    stop()
