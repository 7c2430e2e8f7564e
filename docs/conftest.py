"""Gives pages what their examples speak of: a database server, and a scripted model that need not be watched."""

from __future__ import annotations

import pytest

PAGES = ("checkpoints.md",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say of the page about content that its spans have some."""
    for item in items:
        if item.path.name == "content.md":
            item.add_marker(pytest.mark.content_on_spans("the page shows how content is asked for"))


@pytest.fixture(autouse=True)
def checkpoint_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variable with the URL of an empty database, as the service that the page describes would have it."""
    if request.path.name in PAGES:
        monkeypatch.setenv("CHECKPOINT_DATABASE", request.getfixturevalue("postgres_url"))


@pytest.fixture(autouse=True)
def fast_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model of `examples/briefing.py` say its words at once."""
    monkeypatch.setenv("PACE_S", "0")
