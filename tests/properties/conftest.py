"""Picks how hard hypothesis looks: ``HYPOTHESIS_PROFILE=soak`` for long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large]  # a recipe is a large draw, and cheap next to its runs
settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, suppress_health_check=SLOW_TO_DRAW)
settings.register_profile("soak", max_examples=2000, deadline=None, suppress_health_check=SLOW_TO_DRAW)
# A mutant only has to be noticed: no time is spent on a smaller example of it.
FIND_ONLY = {"phases": [Phase.generate], "report_multiple_bugs": False}
settings.register_profile("mutants", settings.get_profile("ci"), **FIND_ONLY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a failing property the time it takes to find a small example of itself."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(3600 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 300))
