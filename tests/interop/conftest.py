"""Fixtures of the imports from LangGraph."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph_databases import Database


@pytest.fixture
def source_path(tmp_path: Path) -> Path:
    """A SQLite file in a folder of its own, so that nothing else is in it."""
    folder = tmp_path / "source"
    folder.mkdir()
    return folder / "langgraph.db"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty database for LangGraph's saver, set up."""
    name = "source_path" if request.param == "sqlite" else "postgres_url"
    made = Database(str(request.getfixturevalue(name)))
    with made.saver() as saver:
        saver.setup()
    return made
