"""Picks how hard hypothesis looks, by ``HYPOTHESIS_PROFILE``: ``ci``, ``shrink`` (a small failing example), ``soak`` (long)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
# A recipe is a large draw, and cheap next to its runs.
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
# Making a failing recipe small takes minutes, longer than the suite's time limits: that is for who looks into it, with
# `HYPOTHESIS_PROFILE=shrink pytest -o faulthandler_timeout=0 tests/properties -k ...`.
FIND = [Phase.explicit, Phase.generate]
settings.register_profile("ci", COMMON, max_examples=60, derandomize=True, phases=FIND, report_multiple_bugs=False)
settings.register_profile("shrink", COMMON, max_examples=60, derandomize=True)
settings.register_profile("soak", COMMON, max_examples=2000, phases=FIND, report_multiple_bugs=False)
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give those who look longer the time for it."""
    for item in items:
        if PROFILE != "ci" and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(3600))
