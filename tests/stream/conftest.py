"""Each test of a graph's public face runs in both colours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from opentelemetry.sdk.trace import TracerProvider
from spans import Trace

from tracegraph.telemetry import use_provider


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: Any) -> Colour:
    """The colour of the run under test."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def trace() -> Iterator[Trace]:
    """Spans of this test alone."""
    provider = TracerProvider()
    found = Trace(provider)
    provider.add_span_processor(found)
    use_provider(provider)
    try:
        yield found
    finally:
        use_provider(None)
        provider.shutdown()
