"""A node or path function that only looks at a long value gets no copy of it; one that may change it does."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest
from colours import Colour
from small_graphs import THREAD, State

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.events import TaskStarted
from tracegraph.graph import END, START, StateGraph
from tracegraph.graph.sparing import spared_keys
from tracegraph.types import Overwrite


def by_name(state: State) -> None:
    state["xs"].append("!")


def by_alias(state: State) -> None:
    other = state
    other["xs"].append("!")


def by_local(state: State) -> None:
    xs = state["xs"]
    xs.append("!")


def by_get(state: State) -> None:
    state.get("xs", []).append("!")


def by_unpacking(state: State) -> None:
    copied = {**state}
    copied["xs"].append("!")


def by_item(state: State) -> None:
    state["xs"][0] = "!"


def by_deletion(state: State) -> None:
    del state["xs"][0]


def by_addition_in_place(state: State) -> None:
    state["xs"] += ["!"]


def by_closure(state: State) -> None:
    def change() -> None:
        state["xs"].append("!")

    change()


def by_comprehension(state: State) -> None:
    [state["xs"].append("!") for _ in range(1)]


def by_helper(state: State) -> None:
    by_name(state)


def by_chosen_function(state: State) -> None:
    change = list[Any].append
    # `len` is called only if n is 0; the other branch gets the list just as well.
    (functools.partial(_call, change) if state["n"] else len)(state["xs"])


def by_chosen_state(state: State) -> None:
    (state or {})["xs"].append("!")


def by_variables(state: State) -> None:
    locals()["state"]["xs"].append("!")


def by_evaluation(state: State) -> None:
    eval("state['xs'].append('!')")  # noqa: S307


def by_pattern(state: State) -> None:
    match state:
        case {"xs": xs}:
            xs.append("!")


def by_look_and_change(state: State) -> None:
    if state["xs"][-1] and len(state["xs"]):
        state["xs"].clear()


def by_frame(state: State) -> None:
    try:
        raise LookupError
    except LookupError as error:
        trace: Any = error.__traceback__
        trace.tb_frame.f_locals["state"]["xs"].append("!")


def by_frame_of_the_caller(state: State) -> None:
    (lambda: sys._getframe(1).f_locals["state"]["xs"].append("!"))()


def _call(change: Callable[..., None], xs: list[Any]) -> None:
    change(xs, "!")


class Changer:
    """A callable object, and an object with a method, that change what they get."""

    def __call__(self, state: State) -> None:
        state["xs"].append("!")

    def method(self, state: State) -> None:
        state["xs"].append("!")


CHANGES: list[Callable[[State], None]] = [
    by_name,
    by_alias,
    by_local,
    by_get,
    by_unpacking,
    by_item,
    by_deletion,
    by_addition_in_place,
    by_closure,
    by_comprehension,
    by_helper,
    by_chosen_function,
    by_chosen_state,
    by_variables,
    by_evaluation,
    by_pattern,
    by_look_and_change,
    by_frame,
    by_frame_of_the_caller,
    Changer(),
    Changer().method,
    functools.partial(by_name),
    lambda state: state["xs"].append("!"),
]


def name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def last_only(state: State) -> dict[str, Any]:
    return {"n": len(state["xs"]) if state["xs"][-1] else 0}


@pytest.mark.parametrize("change", CHANGES, ids=name_of)
def test_whatever_way_a_node_changes_what_it_got_no_sibling_and_no_later_node_sees_it(change: Any, colour: Colour) -> None:
    seen: list[list[Any]] = []
    builder = StateGraph(State)
    builder.add_node("change", change)
    builder.add_node("beside", lambda state: seen.append([*state["xs"]]))
    builder.add_node("after", lambda state: seen.append([*state["xs"]]))
    builder.add_edge(START, "change")
    builder.add_edge(START, "beside")
    builder.add_edge(["change", "beside"], "after")
    given = ["a", "b"]
    result = colour.invoke(builder.compile(checkpointer=InMemorySaver()), {"xs": given, "n": 1}, THREAD)
    assert seen == [["a", "b"], ["a", "b"]]
    assert result["xs"] == given == ["a", "b"]


@pytest.mark.parametrize("change", CHANGES, ids=name_of)
def test_whatever_way_a_path_function_changes_what_it_got_the_state_stays(change: Any, colour: Colour) -> None:
    def path(state: State) -> str:
        change(state)
        return END

    # And as the path function itself: bytecode tells of the function it belongs to.
    for way in (path, change):
        builder = StateGraph(State)
        builder.add_node("grow", lambda _: {"xs": ["c"]})
        builder.add_edge(START, "grow")
        builder.add_conditional_edges("grow", way, {END: END, None: END})
        assert colour.invoke(builder.compile(), {"xs": ["a", "b"], "n": 1})["xs"] == ["a", "b", "c"]


def test_a_value_that_is_only_looked_at_is_handed_over_as_it_is(colour: Colour) -> None:
    builder = StateGraph(State)
    for name, node in (
        ("one", last_only),
        ("two", lambda state: state["xs"][-1] and None),
        ("taker", lambda state: repr(state) and None),
    ):
        builder.add_node(name, node)
        builder.add_edge(START, name)
    given = {
        event.name: event.input["xs"]
        for event in colour.stream(builder.compile(), {"xs": ["a"]}, stream_mode="events")
        if isinstance(event, TaskStarted) and event.name != START
    }
    assert given["one"] is given["two"]
    assert given["taker"] == given["one"]
    assert given["taker"] is not given["one"]


LOOKS: list[Callable[[Any], Any]] = [
    lambda state: state["xs"][-1],
    lambda state: state["xs"][0]["deep"]["er"],
    lambda state: state["xs"][-3:],
    lambda state: state["xs"][:2],
    lambda state: len(state["xs"]),
    lambda state: len(state["xs"]) > 3 and state["xs"][-1] == "state",
    lambda state: state["n"],
    lambda state: "xs",
]


@pytest.mark.parametrize("look", LOOKS)
def test_looks_that_are_known(look: Any) -> None:
    closed_over = "state" in look.__code__.co_cellvars
    assert ("xs" in spared_keys(look, ("xs", "n"))) is not closed_over


@pytest.mark.parametrize("change", CHANGES, ids=name_of)
def test_no_change_is_taken_for_a_look(change: Any) -> None:
    assert "xs" not in spared_keys(change, ("xs", "n"))


@pytest.mark.filterwarnings("ignore::tracegraph.errors.TracegraphWarning")  # the checks see the owner's list change
def test_what_is_iterated_is_not_what_others_add_to_meanwhile(colour: Colour) -> None:
    """The value may have another owner, who gave it: items that come meanwhile are none of the node's."""
    kept = ["a", "b"]

    def repeat(state: State) -> State:
        for x in state["xs"]:
            if len(kept) == 10:  # no assert: pytest writes locals() into those, so the value would be copied
                break
            kept.append(x)
        return {"n": len(kept)}

    builder = StateGraph(State)
    builder.add_node("repeat", repeat)
    builder.add_edge(START, "repeat")
    builder.add_edge("repeat", END)
    assert colour.invoke(builder.compile(), {"xs": Overwrite(kept)})["n"] == 4


def test_a_len_of_ones_own_is_not_the_one_that_only_looks() -> None:
    names: dict[str, Any] = {"len": lambda xs: xs.append("!")}
    exec("def node(state):\n    len(state['xs'])", names)  # noqa: S102
    assert not spared_keys(names["node"], ("xs",))


def test_a_handler_may_change_the_inputs_it_is_told(colour: Colour) -> None:
    class Meddler(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            """Change what is shown."""
            if isinstance(inputs, dict) and kwargs.get("parent_run_id"):
                inputs["xs"].append("!")

    builder = StateGraph(State)
    builder.add_node("look", last_only)
    builder.add_edge(START, "look")
    builder.add_conditional_edges("look", lambda state: END)
    result = colour.invoke(builder.compile(), {"xs": ["a"]}, {"callbacks": [Meddler()]})
    assert result == {"xs": ["a"], "n": 1}
