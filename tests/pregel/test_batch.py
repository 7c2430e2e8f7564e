"""Many invocations at once."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from channel_graphs import channel_graph, doubling
from colours import Colour

from tracegraph.config import RunnableConfig
from tracegraph.errors import InvalidInputError
from tracegraph.pregel import NodeBuilder

SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nobody's")


def batch(colour: Colour, app: Any, inputs: Any, config: Any = None, **options: Any) -> Any:
    """Run a batch in the given colour."""
    if colour.name == "sync":
        return app.batch(inputs, config, **options)
    return asyncio.run(app.abatch(inputs, config, **options))


def looking_at(what: Any) -> Any:
    """Return a graph whose node's output is what *what* makes of its config."""
    return channel_graph({"look": NodeBuilder().subscribe_only("a").do(what).write_to("b")})


def tags(x: int, config: RunnableConfig) -> list[str]:
    """Return the tags a node sees."""
    return config.get("tags", [])


def test_no_inputs_make_no_outputs(colour: Colour) -> None:
    """Nothing runs."""
    assert batch(colour, channel_graph({"double": doubling()}), []) == []


def test_one_config_is_for_all(colour: Colour) -> None:
    """Each run gets it."""
    assert batch(colour, looking_at(tags), [1, 2], {"tags": ["x"]}) == [["x"], ["x"]]


def test_several_configs_are_one_per_input(colour: Colour) -> None:
    """In the order of the inputs."""
    assert batch(colour, looking_at(tags), [1, 2], [{"tags": ["x"]}, {"tags": ["y"]}]) == [["x"], ["y"]]


def test_a_config_too_few_is_an_error(colour: Colour) -> None:
    """Which input is to go without is not guessed."""
    with pytest.raises(InvalidInputError, match="2 inputs but 1 configs"):
        batch(colour, channel_graph({"double": doubling()}), [1, 2], [{}])


def test_options_go_to_every_run(colour: Colour) -> None:
    """Here the output keys."""
    app = channel_graph({"double": doubling()})

    assert batch(colour, app, [1, 2], output_keys=["b", "total"]) == [{"b": 2, "total": 0}, {"b": 4, "total": 0}]


def test_max_concurrency_limits_the_runs_at_work(colour: Colour) -> None:
    """With one at a time, no two nodes ever meet."""
    lock = threading.Lock()

    def alone(x: int) -> int:
        assert lock.acquire(blocking=False)
        lock.release()
        return x

    app = channel_graph({"alone": NodeBuilder().subscribe_only("a").do(alone).write_to("b")})

    assert batch(colour, app, [1, 2, 3, 4], {"max_concurrency": 1}) == [1, 2, 3, 4]


def test_each_run_sees_the_callers_context() -> None:
    """In threads too, in a copy of it."""

    def look(x: int) -> str:
        found = SEEN.get()
        SEEN.set(f"run {x}'s")
        return found

    SEEN.set("caller's")

    assert looking_at(look).batch([1, 2]) == ["caller's", "caller's"]
    assert SEEN.get() == "caller's"
