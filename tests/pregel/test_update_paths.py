"""Path functions of conditional edges that an update follows: user code outside a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from colours import Colour
from updates import THREAD, Counted, State, X, asks, branching, chain_without_saver, enclosing, update

from tracegraph.config import RunnableConfig, get_config
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import Runtime


def test_a_path_function_finds_what_it_finds_in_a_run(colour: Colour) -> None:
    """The config of the node's task, the store, managed values, the state with the update applied."""
    seen: list[Any] = []

    def path(state: Counted, config: RunnableConfig, runtime: Runtime[Any]) -> str:
        node = config.get("metadata", {})["langgraph_node"]
        seen.append((state, node, runtime.store, get_config() is config))
        return "b"

    app = branching(path, store="a store")
    update(colour, app, X, "a")

    assert app.get_state(THREAD).next == ("b",)
    assert seen == [({"log": ["x"], "left": 2}, "a", "a store", True)]
    with pytest.raises(RuntimeError, match="outside a run"):
        get_config()


def test_a_path_function_may_call_a_graph(colour: Colour) -> None:
    """It runs, and is not saved with the thread."""
    helper = chain_without_saver()
    app = branching(lambda state: "b" if helper.invoke({"log": []})["log"] == ["h"] else END)
    made = update(colour, app, X, "a")

    assert app.get_state(THREAD).next == ("b",)
    assert [saved.config for saved in app.checkpointer.list({"configurable": {"thread_id": "t"}})] == [made]


def test_an_async_path_function_needs_the_async_method(colour: Colour) -> None:
    """The sync one names it, and has written nothing."""

    async def path(state: State) -> str:
        await asyncio.sleep(0)
        return "b" if get_config() else END

    app = branching(path)
    if colour.name == "async":
        update(colour, app, X, "a")
        assert app.get_state(THREAD).next == ("b",)
    else:
        with pytest.raises(TypeError, match=r"path function 'path' is async: use aupdate_state\(\)"):
            update(colour, app, X, "a")
        assert app.get_state(THREAD).created_at is None


def test_a_path_function_that_turns_out_async_is_told_apart(colour: Colour) -> None:
    """What a lambda returns is known only when it is called."""

    async def later() -> str:
        return "b"

    app = branching(lambda state: later())
    if colour.name == "async":
        update(colour, app, X, "a")
        assert app.get_state(THREAD).next == ("b",)
    else:
        with pytest.raises(TypeError, match="is async"):
            update(colour, app, X, "a")


def test_a_path_function_that_returns_something_else_to_wait_for_is_async_too(colour: Colour) -> None:
    """A coroutine is not the only thing that can be awaited."""

    class Soon:
        """Awaitable, and nothing else."""

        def __await__(self) -> Any:
            yield from ()
            return "b"

    app = branching(lambda state: Soon())
    if colour.name == "async":
        update(colour, app, X, "a")
        assert app.get_state(THREAD).next == ("b",)
    else:
        with pytest.raises(TypeError, match="is async"):
            update(colour, app, X, "a")


def test_a_path_function_of_a_subgraph_has_the_store_of_the_graph_around_it(colour: Colour) -> None:
    """As in a run."""
    seen: list[Any] = []

    def path(state: State, runtime: Runtime[Any]) -> str:
        seen.append(runtime.store)
        return END

    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("ask", asks)
    inner.add_edge(START, "ask")
    inner.add_conditional_edges("ask", path, [END])
    app = enclosing(inner.compile(), store="a store")
    colour.invoke(app, {"log": []}, THREAD)
    (task,) = app.get_state(THREAD).tasks

    update(colour, app, X, "ask", config={"configurable": {"thread_id": "t", "checkpoint_ns": f"inner:{task.id}"}})

    assert seen == ["a store"]


def test_an_error_of_a_path_function_comes_out(colour: Colour) -> None:
    """And nothing is written."""
    app = branching(lambda state: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        update(colour, app, X, "a")

    assert app.get_state(THREAD).created_at is None


def test_a_path_function_may_be_a_runnable(colour: Colour) -> None:
    """It gets the config as its second argument."""

    class Router:
        """The duck type of a Runnable."""

        def invoke(self, state: Any, config: Any = None) -> str:
            return "b" if config["metadata"]["langgraph_node"] == "a" else END

        async def ainvoke(self, state: Any, config: Any = None) -> str:
            return self.invoke(state, config)

    app = branching(Router())
    update(colour, app, X, "a")

    assert app.get_state(THREAD).next == ("b",)
