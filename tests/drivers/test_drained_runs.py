"""A run that was drained says so, to its caller, to its handlers and in its events."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from recording import recording
from small_graphs import THREAD, Listening, State, bounded, chain, saving, says

from tracegraph.errors import GraphDrained
from tracegraph.events import RunEnded
from tracegraph.runtime import RunControl


@pytest.mark.parametrize("is_nested", [False, True], ids=["own nodes", "child's nodes"])
def test_a_drained_run_ends_drained_and_without_a_result(colour: Colour, is_nested: bool) -> None:
    """The status is its own, and handlers hear of an error, whether the drain came between nodes of it or of a child."""
    control = RunControl()

    def draining(state: State) -> Any:
        control.request_drain("deploy")
        return {"xs": ["x"]}

    inner = {"x": draining, "y": says("y")}
    app = chain(saving(), child=chain(**inner), z=says("z")) if is_nested else chain(saving(), **inner)
    listening = Listening()

    with recording() as recorder, pytest.raises(GraphDrained, match="deploy"):
        bounded(lambda: colour.invoke(app, {"xs": []}, {**THREAD, "callbacks": [listening]}, control=control))

    assert listening.ends[-1] == ("GraphDrained", "LangGraph")
    ends = [event for event in recorder.events if isinstance(event, RunEnded)]
    assert {event.status for event in ends} == {"drained"}
    assert len(ends) == 1 + is_nested
    assert bounded(lambda: colour.invoke(app, None, THREAD)) == {"xs": ["x", "y", "z"] if is_nested else ["x", "y"]}
