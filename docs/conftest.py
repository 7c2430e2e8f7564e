"""Gives pages the database server that their examples speak of."""

from __future__ import annotations

import pytest

PAGES = ("checkpoints.md",)


@pytest.fixture(autouse=True)
def checkpoint_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variable with the URL of an empty database, as the service that the page describes would have it."""
    if request.path.name in PAGES:
        monkeypatch.setenv("CHECKPOINT_DATABASE", request.getfixturevalue("postgres_url"))
