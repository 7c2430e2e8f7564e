"""Time limits, and bodies that outlive their runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from time_limits import Limit


@pytest.fixture(params=["step", "run"])
def limit(request: Any) -> Limit:
    """The kind of limit under test."""
    return Limit(request.param)


@pytest.fixture
def may_end() -> Iterator[threading.Event]:
    """Hold back bodies that outlive their run until the test is over."""
    event = threading.Event()
    yield event
    event.set()
