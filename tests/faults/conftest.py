"""Spans of one test, its surroundings, and a quick garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from left_behind import Surroundings, watched
from opentelemetry.sdk.trace import TracerProvider
from spans import Trace

from tracegraph.telemetry import use_provider


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: Any) -> Colour:
    """The colour of the run under test."""
    return request.param  # type: ignore[no-any-return]


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


@pytest.fixture
def trace() -> Iterator[Trace]:
    """Spans of this test alone."""
    provider = TracerProvider(shutdown_on_exit=False)
    found = Trace(provider)
    provider.add_span_processor(found)
    use_provider(provider)
    try:
        yield found
    finally:
        use_provider(None)
        provider.shutdown()
