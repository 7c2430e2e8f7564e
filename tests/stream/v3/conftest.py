"""The spans of a test's runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from spans import Trace

from tracegraph.telemetry import use_provider


@pytest.fixture
def trace() -> Iterator[Trace]:
    """Spans of this test alone: started, ended, and the tree they make."""
    provider = TracerProvider()
    found = Trace(provider)
    provider.add_span_processor(found)
    use_provider(provider)
    try:
        yield found
    finally:
        use_provider(None)
        provider.shutdown()
