"""What surrounds a test, and a quick garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from left_behind import Surroundings, watched


@pytest.fixture(scope="module", autouse=True)
def quick_collector() -> Iterator[None]:
    """Whatever is there before does not become garbage, and need not be looked at for each test."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def surroundings() -> Iterator[Surroundings]:
    """What is there before the test."""
    with watched() as found:
        yield found
