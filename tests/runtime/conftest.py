"""What node code finds of its run is tried in both colours."""

from __future__ import annotations

import pytest
from colours import ASYNC, SYNC, Colour


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    """The driver under test."""
    chosen: Colour = request.param
    return chosen
