"""A span processor of the application that fails where the run's root span starts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from small_graphs import bounded, chain, says

from tracegraph.telemetry import use_provider


class Broken(SpanProcessor):
    """Refuses every span."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Fail."""
        raise RuntimeError("processor broke")


@pytest.fixture
def broken_provider() -> Iterator[None]:
    """All spans go to a provider whose processor fails."""
    provider = TracerProvider()
    provider.add_span_processor(Broken())
    use_provider(provider)
    try:
        yield
    finally:
        use_provider(None)
        provider.shutdown()


@pytest.mark.parametrize("colour", [SYNC, ASYNC], ids=lambda colour: colour.name)
def test_a_run_whose_root_span_cannot_start_goes_on(
    broken_provider: None, colour: Colour, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, and the result is what it would have been."""
    with caplog.at_level(logging.ERROR, "tracegraph"):
        found = bounded(lambda: colour.invoke(chain(a=says("a")), {"xs": []}))

    assert found == {"xs": ["a"]}
    assert [record.getMessage() for record in caplog.records if record.name.startswith("tracegraph")] == [
        "the run's telemetry could not be started; the run goes on without"
    ]
