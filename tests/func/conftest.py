"""The three ways in which an entrypoint runs."""

from __future__ import annotations

from typing import Any

import pytest
from functions import Way


@pytest.fixture(params=["sync function", "sync function, async run", "async function"])
def way(request: Any) -> Way:
    """Return one of the ways."""
    return Way(request.param)
