"""What a node may ask for by the names of its parameters (spec 10.5)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional, TypedDict

import pytest
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig
from tracegraph.drivers.body import Body
from tracegraph.errors import NodeError
from tracegraph.func import task
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import Runtime
from tracegraph.types import StreamWriter


class State(TypedDict, total=False):
    n: int


class BaseStore:
    """Stands for a store; graphs hand it on as it is."""


STORE = BaseStore()


def graph_of(body: Any, **options: Any) -> Any:
    """Return a graph of one node."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", body)
    graph.add_edge(START, "node")
    return graph.compile(**options)


# --- which parameters are supplied ------------------------------------------------------------------------------


def bare_config(state: State, config) -> None:  # type: ignore[no-untyped-def]  # a missing annotation is the point
    """Take the config without saying so."""


def config_by_text(state: State, config: RunnableConfig) -> None:
    """Take the config by annotation."""


def optional_config(state: State, config: Optional[RunnableConfig] = None) -> None:  # noqa: UP045  # the old form is the point
    """Take the config if there is one."""


def union_config(state: State, *, config: RunnableConfig | None = None) -> None:
    """Take the config as a keyword."""


def unresolved_config(state: State, config: RunnableConfig, other: Gone = None) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Take the config although another annotation cannot be resolved."""


def bare_writer(state: State, writer) -> None:  # type: ignore[no-untyped-def]  # a missing annotation is the point
    """Take the writer without saying so."""


def any_writer(state: State, writer: Any) -> None:
    """Take the writer as anything."""


def typed_writer(state: State, writer: StreamWriter) -> None:
    """Take the writer by annotation."""


def other_writer(state: State, writer: int = 1) -> None:
    """Have a parameter that happens to be called writer."""


def callable_writer(state: State, writer: Callable[[Any], None]) -> None:
    """Take the writer by what it is."""


def typed_store(state: State, store: BaseStore) -> None:
    """Take the store."""


def other_store(state: State, store: int = 1) -> None:
    """Have a parameter that happens to be called store."""


def previous_and_runtime(state: State, previous: int, runtime: str) -> None:
    """Take them whatever the annotation."""


def typed_error(state: State, error: NodeError) -> None:
    """Take the failure an error handler is for."""


def other_error(state: State, error: Exception | None = None) -> None:
    """Have a parameter that happens to be called error."""


def first_named_config(config: State, runtime: Runtime[Any]) -> None:
    """Have a state with a misleading name."""


def variadic(state: State, *config: Any, **runtime: Any) -> None:
    """Take anything, and be given nothing."""


@pytest.mark.parametrize(
    ("body", "supplied"),
    [
        (bare_config, ("config",)),
        (config_by_text, ("config",)),
        (optional_config, ("config",)),
        (union_config, ("config",)),
        (unresolved_config, ("config",)),
        (bare_writer, ("writer",)),
        (any_writer, ("writer",)),
        (typed_writer, ("writer",)),
        (callable_writer, ("writer",)),
        (other_writer, ()),
        (typed_store, ("store",)),
        (other_store, ()),
        (previous_and_runtime, ("previous", "runtime")),
        (typed_error, ("error",)),
        (other_error, ()),
        (first_named_config, ("runtime",)),
        (variadic, ()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_signature_decides_once(body: Any, supplied: tuple[str, ...]) -> None:
    """By name and annotation; the first parameter is the state, whatever it is called."""
    assert Body.of(body).inject == supplied


def test_a_config_of_another_type_is_not_supplied() -> None:
    """A warning says so, for it is most likely a slip."""

    def wrong(state: State, config: int = 1) -> None:
        """Take no config."""

    with pytest.warns(UserWarning, match="parameter 'config' of 'wrong' is annotated <class 'int'>"):
        assert Body.of(wrong).inject == ()


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        (typed_store, True),
        (lambda state, store: None, True),
        (lambda state, store=None: None, False),
    ],
)
def test_a_store_without_a_default_is_needed(body: Any, needs: bool) -> None:
    """A default, or None among its types, means it can do without."""

    def optional(state: State, store: BaseStore | None) -> None:
        """Take the store if there is one."""

    assert Body.of(body).needs_store is needs
    assert not Body.of(optional).needs_store


# --- what bodies are --------------------------------------------------------------------------------------------


class Adder:
    """A callable object."""

    def __call__(self, state: State, config: RunnableConfig) -> State:
        """Add the config's number."""
        return {"n": state["n"] + config["configurable"]["more"]}


class AsyncAdder:
    """An async callable object."""

    async def __call__(self, state: State) -> State:
        """Add one."""
        return {"n": state["n"] + 1}


class TwoLanes:
    """A Runnable by its looks, with a name."""

    name = "lanes"

    def invoke(self, given: State, config: Any) -> State:
        """Run in sync runs."""
        return {"n": 1}

    async def ainvoke(self, given: State, config: Any) -> State:
        """Run in async runs."""
        return {"n": 2}


class NamedLanes(TwoLanes):
    """One whose name is computed."""

    def get_name(self) -> str:
        """Say it."""
        return "computed"


def test_names_of_bodies() -> None:
    """A callable's own, that of its class, of what a partial wraps; a Runnable's as it says."""

    class Nameless(TwoLanes):
        name = None  # type: ignore[assignment]  # as a Runnable without a name has it

    def plain(state: State, more: int) -> None:
        """Stand for a node."""

    found = [
        Body.of(target).name
        for target in (plain, functools.partial(functools.partial(plain), more=1), Adder(), TwoLanes(), NamedLanes(), Nameless())
    ]

    assert found == ["plain", "plain", "Adder", "lanes", "computed", "Nameless"]
    assert Body.of(plain, name="given").name == "given"


def test_lanes_of_bodies() -> None:
    """Async ones can only be awaited; a Runnable has both lanes."""

    async def awaited(state: State) -> None:
        """Stand for a node."""

    for target in (awaited, functools.partial(awaited), AsyncAdder()):
        assert (Body.of(target).is_async, Body.of(target).has_sync) == (True, False)
    for target in (Adder(), TwoLanes(), len):
        assert (Body.of(target).is_async, Body.of(target).has_sync) == (False, True)


def test_what_cannot_be_called_is_no_body() -> None:
    """The error lists what can be."""
    with pytest.raises(TypeError, match="a node is a function, .* not 3"):
        Body.of(3)


def test_a_callable_without_a_signature_takes_the_state_alone() -> None:
    """Some builtins have none."""

    class Opaque:
        """Refuses to be looked at."""

        __signature__ = "none"

        def __call__(self, state: State) -> None:
            """Stand for a node."""

    assert Body.of(Opaque()).inject == ()
    assert Body.of(max).inject == ()


# --- in runs ----------------------------------------------------------------------------------------------------


def test_callable_objects_are_nodes(colour: Colour) -> None:
    """With parameters like functions; a partial's keywords are its own."""

    def add(state: State, more: int, config: RunnableConfig) -> State:
        return {"n": state["n"] + more + config["configurable"]["more"]}

    config = {"configurable": {"more": 10}}

    assert colour.invoke(graph_of(Adder()), {"n": 1}, config) == {"n": 11}
    assert colour.invoke(graph_of(functools.partial(add, more=5)), {"n": 1}, config) == {"n": 16}


def test_a_runnable_uses_the_lane_of_the_run(colour: Colour) -> None:
    """It gets the config as its second argument."""
    assert colour.invoke(graph_of(TwoLanes()), {"n": 0}) == {"n": 1 if colour.name == "sync" else 2}


def test_everything_a_node_may_ask_for(colour: Colour) -> None:
    """Config, writer, store, previous and runtime in one node."""
    seen: dict[str, Any] = {}

    def asks(
        state: State, config: RunnableConfig, writer: StreamWriter, store: BaseStore, previous: Any, runtime: Runtime[Any]
    ) -> None:
        writer("chunk")
        seen.update(config=config["configurable"]["who"], store=store, previous=previous, runtime=runtime)

    app = graph_of(asks, store=STORE)

    chunks = colour.stream(app, {"n": 0}, {"configurable": {"who": "me"}}, stream_mode="custom")

    assert chunks == ["chunk"]
    assert (seen["config"], seen["store"], seen["previous"]) == ("me", STORE, None)
    assert seen["runtime"].store is STORE
    assert seen["runtime"].execution_info.node_attempt == 1


def test_a_missing_store_fails_the_node_that_needs_it(colour: Colour) -> None:
    """It says which one, and how to give it one; a node that can do without gets None."""
    seen: list[Any] = []

    def optional(state: State, store: BaseStore | None = None) -> None:
        seen.append(store)

    colour.invoke(graph_of(optional), {"n": 0})

    with pytest.raises(ValueError, match=r"node 'node' takes a store, but the graph has none: compile\(store=\.\.\.\)"):
        colour.invoke(graph_of(typed_store), {"n": 0})
    assert seen == [None]


def test_a_path_function_may_ask_too(colour: Colour) -> None:
    """Like nodes, by name and annotation; a Runnable gets the config."""

    def route(state: State, config: RunnableConfig) -> str:
        return str(config["configurable"]["to"])

    class Routes:
        """A Runnable that routes."""

        def invoke(self, given: State, config: Any) -> str:
            """Route in sync runs."""
            return str(config["configurable"]["to"])

        async def ainvoke(self, given: State, config: Any) -> str:
            """Route in async runs."""
            return str(config["configurable"]["to"])

    for path in (route, Routes()):
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        graph.add_node("a", lambda state: {"n": state["n"] + 1})
        graph.add_node("b", lambda state: {"n": 100})
        graph.add_edge(START, "a")
        graph.add_conditional_edges("a", path, ["b", END])  # type: ignore[arg-type]  # a Runnable by its looks

        assert colour.invoke(graph.compile(), {"n": 0}, {"configurable": {"to": "b"}}) == {"n": 100}
        assert colour.invoke(graph.compile(), {"n": 0}, {"configurable": {"to": END}}) == {"n": 1}


def test_a_called_task_may_ask_too(colour: Colour) -> None:
    """All its parameters are looked at, for it has no state; an argument of that name wins."""

    @task
    def look(config: RunnableConfig) -> Any:
        return config["configurable"]["who"]

    def call(state: State) -> State:
        return {"n": look().result(10) + look(config={"configurable": {"who": 5}}).result(10)}

    assert colour.invoke(graph_of(call, checkpointer=None), {"n": 0}, {"configurable": {"who": 1}}) == {"n": 6}


def test_the_error_is_for_error_handlers(colour: Colour) -> None:
    """Elsewhere it is None."""
    seen: list[Any] = []

    def fine(state: State, error: NodeError | None = None) -> None:
        seen.append(error)

    colour.invoke(graph_of(fine, checkpointer=InMemorySaver()), {"n": 0}, {"configurable": {"thread_id": "t"}})

    assert seen == [None]
