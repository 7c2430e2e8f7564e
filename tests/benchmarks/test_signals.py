"""The benchmark of signals measures what it says: in each mode these signals, and no others."""

from __future__ import annotations

import pytest

from benchmarks.signal_cases import SHAPES, Shape
from benchmarks.signal_providers import MODES, Providers
from benchmarks.signals import run_case


@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("mode", MODES)
def test_modes_make_their_signals(mode: str, shape: Shape, colour: str) -> None:
    """Counted by the exporters, which throw them away."""
    with Providers() as providers, shape.opened(is_async=colour == "async", is_quick=True) as case:
        providers.use(mode)
        run_case(case, colour, 2)
        providers.flush()
        spans, points, records = providers.exported

    _, has_metrics, has_logs = MODES[mode]
    assert bool(spans) == mode.startswith("traced")
    assert bool(points) == has_metrics
    assert bool(records) == has_logs
