"""What most tests of runs take: the colour they run in, and the spans they make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from colours import ASYNC, SYNC, Colour
from opentelemetry.sdk.trace import TracerProvider
from spans import Trace

from tracegraph.telemetry import use_provider
from tracegraph.telemetry.losses import forget_losses

__all__ = ["colour", "no_losses_before", "trace"]


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    """The driver under test."""
    chosen: Colour = request.param
    return chosen


@pytest.fixture(autouse=True)
def no_losses_before() -> None:
    """Forget what telemetry other tests lost: a process tells of it in every later measurement."""
    forget_losses()


@pytest.fixture
def trace() -> Iterator[Trace]:
    """Spans of this test alone: started, ended, and the tree they make."""
    provider = TracerProvider(shutdown_on_exit=False)
    found = Trace(provider)
    provider.add_span_processor(found)
    use_provider(provider)
    try:
        yield found
    finally:
        use_provider(None)
        provider.shutdown()
