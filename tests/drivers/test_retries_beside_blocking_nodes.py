"""A retry begins when its delay is over, though every thread is busy with a node that waits for it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from colours import Colour
from small_graphs import PATIENCE_S, State, bounded

from tracegraph.drivers import workers
from tracegraph.graph import START, StateGraph
from tracegraph.types import RetryPolicy


def side_by_side(**nodes: tuple[Any, float]) -> Any:
    """Return a graph of one superstep; each node has the delay of its retries beside it."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, (body, delay_s) in nodes.items():
        graph.add_node(name, body, retry_policy=RetryPolicy(initial_interval=delay_s, jitter=False))
        graph.add_edge(START, name)
    return graph.compile()


class Fails:
    """A node that fails once; the second attempt does what it was given to do."""

    def __init__(self, then: Any) -> None:
        self._then = then
        self._has_failed = False

    def __call__(self, state: State) -> State:
        """Fail, or do it."""
        if not self._has_failed:
            self._has_failed = True
            raise ConnectionError
        return {"xs": [self._then()]}


def test_a_retry_of_one_node_waits_for_that_of_another(colour: Colour) -> None:
    """Whose delay is longer, so that the driving thread is busy with the first when the second is due."""
    is_tried_again = threading.Event()
    app = side_by_side(
        a=(Fails(lambda: is_tried_again.wait(PATIENCE_S)), 0.01),
        b=(Fails(lambda: is_tried_again.set()), 0.3),
    )

    assert bounded(lambda: colour.invoke(app, {"xs": []}))["xs"] == [True, None]


def test_nodes_wait_for_the_retry_of_a_third(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driving thread is busy with the one, a worker with the other's second attempt; threads are slow to begin."""
    is_tried_again = threading.Event()
    submit = workers.submit

    def slowly(job: Any) -> None:
        submit(lambda: (threading.Event().wait(0.05), job())[1])

    monkeypatch.setattr(workers, "submit", slowly)

    def wait() -> bool:
        return is_tried_again.wait(PATIENCE_S)

    app = side_by_side(
        a=(lambda state: {"xs": [wait()]}, 0.0),
        b=(Fails(wait), 0.2),
        c=(Fails(lambda: is_tried_again.set()), 0.5),
    )

    assert bounded(lambda: colour.invoke(app, {"xs": []}))["xs"] == [True, True, None]
