"""The measured graphs do the same work in both libraries, or a ratio of times would mean nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.case import Scenario, load
from benchmarks.scenarios import SCENARIOS

CELLS = [(scenario, colour) for scenario in SCENARIOS for colour in scenario.colours]


@pytest.mark.filterwarnings("ignore:.*v3 streaming protocol on Pregel is experimental")
@pytest.mark.parametrize(("scenario", "colour"), CELLS, ids=[f"{scenario.name} {colour}" for scenario, colour in CELLS])
def test_both_libraries_end_with_the_same_state(scenario: Scenario, colour: str) -> None:
    """Same graph, same input, same final values."""
    outputs = [_run(name, scenario, colour) for name in ("tracegraph", "langgraph")]

    assert outputs[0] == outputs[1]


def _run(library: str, scenario: Scenario, colour: str) -> Any:
    case = scenario.build(load(library), min(scenario.quick_size, 20), colour == "async")
    config = {"recursion_limit": 1000}
    if colour == "sync":
        return case.graph.invoke(case.input, config)
    return asyncio.run(case.graph.ainvoke(case.input, config))
