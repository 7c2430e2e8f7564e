"""Each limit is tried in both colours, with a saver in memory and one in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from colours import ASYNC, SYNC, Colour

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite import SqliteSaver


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    """The driver under test."""
    chosen: Colour = request.param
    return chosen


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
    """An empty saver."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as made:
        yield made
