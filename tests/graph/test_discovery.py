"""Which compiled graph a node runs."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, TypedDict

import pytest

from tracegraph.graph import START, StateGraph
from tracegraph.graph.discovery import find_subgraph


class State(TypedDict):
    x: int


def compiled(**options: Any) -> Any:
    return StateGraph(State).add_node("n", lambda state: None).add_edge(START, "n").compile(**options)


GRAPH = compiled()
WITHOUT_SAVER = compiled(checkpointer=False)
SHELF = SimpleNamespace(graph=GRAPH, deep=SimpleNamespace(graph=GRAPH))


class Helper:
    graph = GRAPH

    def __init__(self) -> None:
        self.own = GRAPH

    def __call__(self, state: Any) -> Any:
        return self.own.invoke(state)

    def of_class(self, state: Any) -> Any:
        return self.graph.invoke(state)

    def captured(self, state: Any) -> Any:
        return [self.own.invoke(item) for item in state]

    def nested(self, state: Any) -> Any:
        def inner(item: Any) -> Any:
            return self.own.invoke(item)

        return inner(state)

    @property
    def explosive(self) -> Any:
        raise AssertionError("looking must run nothing")

    def through_a_property(self, state: Any) -> Any:
        return self.explosive.graph.invoke(state)


class Steps:
    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)

    def invoke(self, given: Any, config: Any = None) -> None: ...


class Lambda:
    def __init__(self, func: Any = None) -> None:
        if func is not None:
            self.func = func

    def invoke(self, given: Any, config: Any = None) -> None: ...


def by_global(state: Any) -> Any:
    return GRAPH.invoke(state)


async def in_async_code(state: Any) -> Any:
    return await GRAPH.ainvoke(state)


def by_attribute(state: Any) -> Any:
    return SHELF.deep.graph.invoke(state)


def by_method(state: Any, call: Any = None) -> Any:
    call = SHELF.graph.invoke
    return call(state)


def nested_function(state: Any) -> Any:
    def inner() -> Any:
        return GRAPH.invoke(state)

    return inner()


def by_closure() -> Any:
    graph = GRAPH
    return lambda state: graph.invoke(state)


def decorated() -> Any:
    @functools.wraps(by_global)
    def wrapper(*args: Any) -> Any:
        return by_global(*args)

    return wrapper


FOUND: dict[str, Any] = {
    "the graph itself": GRAPH,
    "a step of a sequence": Steps(lambda state: state, Steps(GRAPH)),
    "a global": by_global,
    "async code": in_async_code,
    "an attribute of a global": by_attribute,
    "a method of an attribute": by_method,
    "a nested function": nested_function,
    "a closure": by_closure(),
    "a decorated function": decorated(),
    "a partial": functools.partial(by_global),
    "a Runnable around a function": Lambda(by_global),
    "self of a callable object": Helper(),
    "self of a method": Helper().captured,
    "an attribute of the class": Helper().of_class,
    "self in a nested function": Helper().nested,
    "a partial of a method": functools.partial(Helper().captured),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_graph_is_found_in(name: str) -> None:
    """Spec 3.7, and through `self` as well."""
    assert find_subgraph(FOUND[name]) is GRAPH


def without(state: Any) -> Any:
    return WITHOUT_SAVER.invoke(state)


def unbound() -> Any:
    def uses(state: Any) -> Any:
        return later.invoke(state)

    if uses is None:
        later = GRAPH
    return uses


def missing(state: Any) -> Any:
    return SHELF.nothing.graph.invoke(undefined_name)  # type: ignore[name-defined]  # noqa: F821


def same_name_elsewhere(state: Any) -> Any:
    own = state
    return own.graph


NOT_FOUND: dict[str, Any] = {
    "a graph that keeps no checkpoints": WITHOUT_SAVER,
    "a function that uses one": without,
    "a variable not assigned yet": unbound(),
    "names that do not exist": missing,
    "a local variable": same_name_elsewhere,
    "a property": Helper().through_a_property,
    "an opaque Runnable": Lambda(),
    "a builtin": max,
    "a class": Helper,
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_no_graph_is_found_in(name: str) -> None:
    """With checkpointer=False it has no state to show; and looking runs no code of the user's."""
    assert find_subgraph(NOT_FOUND[name]) is None


def test_the_first_graph_found_counts() -> None:
    """One per node, in the order in which the code names them."""
    other = compiled()

    def both(state: Any) -> Any:
        return (other.invoke(state), GRAPH.invoke(state))

    assert find_subgraph(both) is other
