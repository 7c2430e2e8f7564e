"""Programs that are no Python packages: `make test-dashboards` looks for them and says what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dashboards.build import FOLDER


@pytest.fixture(autouse=True, scope="session")
def asked_for() -> None:
    """Ordinary test runs leave these tests out, whatever happens to be installed."""
    if not os.environ.get("TRACEGRAPH_TEST_DASHBOARDS"):
        pytest.skip("`make test-dashboards` runs what needs node, promtool, prometheus or docker-compose")


@pytest.fixture
def npm() -> Path:
    """Where the npm packages are."""
    folder = FOLDER / "npm"
    assert (folder / "node_modules").is_dir(), "make test-dashboards installs them"
    return folder
