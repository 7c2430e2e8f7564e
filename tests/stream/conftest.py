"""Each test of a graph's public face runs in both colours."""

from __future__ import annotations

from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: Any) -> Colour:
    """The colour of the run under test."""
    return request.param  # type: ignore[no-any-return]
