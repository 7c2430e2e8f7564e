"""Each run of a graph with nested fields is tested in both colours."""

from __future__ import annotations

from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: Any) -> Colour:
    """The colour of the run under test."""
    found: Colour = request.param
    return found
