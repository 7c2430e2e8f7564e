"""What ``invoke`` returns, by version, stream mode and output keys, and what is printed on the way."""

from __future__ import annotations

import dataclasses
import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from channel_graphs import channel_graph, doubling
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import EmptyInputError, InvalidInputError
from tracegraph.graph import START, StateGraph
from tracegraph.pregel import NodeBuilder
from tracegraph.runtime import Runtime
from tracegraph.types import GraphOutput, Interrupt, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    n: int


def chain(*bodies: Any, **options: Any) -> Any:
    """Return a graph that runs *bodies* as ``s0``, ``s1``, ... in a row."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([(f"s{at}", body) for at, body in enumerate(bodies)])
    graph.add_edge(START, "s0")
    return graph.compile(**options)


def asking(**options: Any) -> Any:
    """Return a saved graph that asks in its first node."""
    return chain(lambda state: {"log": [interrupt("?")]}, checkpointer=InMemorySaver(), **options)


@pytest.fixture
def two_steps() -> Any:
    """A graph of two nodes."""
    return chain(lambda state: {"n": 1}, lambda state: {"log": ["end"]})


def test_version_2_returns_value_and_interrupts_apart(colour: Colour, two_steps: Any) -> None:
    """Nothing is mixed into the values."""
    assert colour.invoke(two_steps, {"log": []}, version="v2") == GraphOutput({"log": ["end"], "n": 1}, ())


def test_version_2_shows_a_pause_in_interrupts(colour: Colour) -> None:
    """The values are the state so far."""
    paused = colour.invoke(asking(), {"log": ["in"]}, THREAD, version="v2")

    assert paused.value == {"log": ["in"]}
    assert [question.value for question in paused.interrupts] == ["?"]


def test_version_1_puts_a_pause_beside_the_values(colour: Colour) -> None:
    """As a list under its key; a graph whose output is one bare value has only that key."""
    ask = NodeBuilder().subscribe_only("a").do(lambda x: interrupt("?")).write_to("b")
    bare = channel_graph({"ask": ask}, checkpointer=InMemorySaver())

    of_dict = colour.invoke(asking(), {"log": ["in"]}, THREAD)
    of_bare = colour.invoke(bare, 1, THREAD)

    assert of_dict["log"] == ["in"]
    assert [question.value for question in of_dict["__interrupt__"]] == ["?"]
    assert of_bare.keys() == {"__interrupt__"}


def test_another_stream_mode_returns_all_its_parts(colour: Colour, two_steps: Any) -> None:
    """One mode as bare payloads, several tagged, version 2 as dicts."""
    assert colour.invoke(two_steps, {"log": []}, stream_mode="updates") == [{"s0": {"n": 1}}, {"s1": {"log": ["end"]}}]
    assert colour.invoke(two_steps, {"log": []}, stream_mode=["updates"])[0] == ("updates", {"s0": {"n": 1}})
    assert colour.invoke(two_steps, {"log": []}, stream_mode="updates", version="v2")[0] == {
        "type": "updates",
        "ns": (),
        "data": {"s0": {"n": 1}},
    }


def test_output_keys_choose_what_is_returned(colour: Colour, two_steps: Any) -> None:
    """A list makes a dict, one name its bare value."""
    assert colour.invoke(two_steps, {"log": []}, output_keys=["n"]) == {"n": 1}
    assert colour.invoke(two_steps, {"log": []}, output_keys="n") == 1


def test_printing_changes_nothing_in_the_result(colour: Colour, two_steps: Any, capsys: Any) -> None:
    """Each part of a printed mode is one line with its mode."""
    result = colour.invoke(two_steps, {"log": []}, print_mode=["updates"])

    assert result == {"log": ["end"], "n": 1}
    assert capsys.readouterr().out.splitlines() == ["[updates] {'s0': {'n': 1}}", "[updates] {'s1': {'log': ['end']}}"]


def test_printing_works_with_version_2(colour: Colour, two_steps: Any, capsys: Any) -> None:
    """The result is the same GraphOutput as without."""
    result = colour.invoke(two_steps, {"log": []}, print_mode="values", version="v2")

    assert result == GraphOutput({"log": ["end"], "n": 1}, ())
    assert capsys.readouterr().out.splitlines()[-1] == "[values] {'log': ['end'], 'n': 1}"


def test_printing_shows_the_namespace_of_inner_runs(colour: Colour, two_steps: Any, capsys: Any) -> None:
    """Only if the stream has them at all."""
    app = chain(two_steps)

    colour.stream(app, {"log": []}, print_mode="updates", subgraphs=True, stream_mode="values")

    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "[updates] s0",
        "[updates] s0",
        "[updates] {'s0'",
    ]


def test_a_printed_pause_is_returned_all_the_same(colour: Colour, capsys: Any) -> None:
    """The last values part carries it in both versions."""
    paused = colour.invoke(asking(), {"log": ["in"]}, THREAD, print_mode="values")
    again = colour.invoke(asking(), {"log": ["in"]}, THREAD, print_mode="values", version="v2")

    assert [question.value for question in paused["__interrupt__"]] == ["?"]
    assert [question.value for question in again.interrupts] == ["?"]
    assert "__interrupt__" not in again.value
    assert capsys.readouterr().out.count("[values]") == 4


def test_debug_prints_updates_and_values(colour: Colour, two_steps: Any, capsys: Any) -> None:
    """For one call, or for every call of a graph made so; a call can turn it off again."""
    noisy = chain(lambda state: {"n": 1}, debug=True)

    colour.stream(two_steps, {"log": []}, debug=True)
    of_call = capsys.readouterr().out
    colour.stream(noisy, {"log": []})
    of_graph = capsys.readouterr().out
    colour.stream(noisy, {"log": []}, debug=False)

    assert ("[updates] {'s0': {'n': 1}}" in of_call, "[values] {'log': ['end'], 'n': 1}" in of_call) == (True, True)
    assert "[updates] {'s0': {'n': 1}}" in of_graph
    assert capsys.readouterr().out == ""


def test_a_run_that_writes_no_output_returns_none(colour: Colour) -> None:
    """Printed or not, in version 2 inside a GraphOutput."""
    app = channel_graph({"double": doubling()}, output_channels="c")

    assert colour.invoke(app, 1) is None
    assert colour.invoke(app, 1, version="v2") == GraphOutput(None)


def test_unknown_names_are_named(colour: Colour, two_steps: Any) -> None:
    """Modes, output keys and versions."""
    with pytest.raises(InvalidInputError, match="stream mode 'tokens' does not exist; there are 'values'"):
        colour.invoke(two_steps, {}, stream_mode="tokens")
    with pytest.raises(InvalidInputError, match="output key 'm' is no channel"):
        colour.stream(two_steps, {}, output_keys=["n", "m"])
    with pytest.raises(InvalidInputError, match="version must be 'v1' or 'v2', not 'v3'"):
        colour.stream(two_steps, {}, version="v3")


def test_a_failure_comes_out_of_the_reader(colour: Colour, two_steps: Any) -> None:
    """Whatever the stream mode."""
    with pytest.raises(EmptyInputError):
        colour.invoke(two_steps, None, stream_mode="updates")


# --- arguments of a call -----------------------------------------------------------------------------------------


@dataclass
class Context:
    """What nodes of a run may know beside the state."""

    user: str
    level: int = 1


def test_a_dict_becomes_the_context_schema(colour: Colour) -> None:
    """An instance stays as it is, and without any the context is None."""
    seen: list[Any] = []

    def look(state: State, runtime: Runtime[Context]) -> None:
        seen.append(runtime.context)

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State, context_schema=Context)
    graph.add_node("look", look)
    graph.add_edge(START, "look")
    app = graph.compile()
    mine = Context("me", 2)

    colour.invoke(app, {"n": 1}, context={"user": "you"})
    colour.invoke(app, {"n": 1}, context=mine)
    colour.invoke(app, {"n": 1})

    assert seen == [Context("you"), mine, None]
    assert seen[1] is mine


def test_an_unknown_context_key_is_the_schemas_error(colour: Colour, two_steps: Any) -> None:
    """Its constructor says so."""
    app = two_steps.copy({"context_schema": Context})

    with pytest.raises(TypeError, match="colour"):
        colour.invoke(app, {"n": 1}, context={"colour": "red"})


def test_an_inner_run_has_the_outer_context_unless_given_its_own(colour: Colour) -> None:
    """Also when a node hands one to the graph it calls."""
    seen: list[Any] = []

    def look(state: State, runtime: Runtime[Any]) -> None:
        seen.append(runtime.context)

    inner = chain(look)

    def outer(state: State, runtime: Runtime[Any]) -> None:
        inner.invoke({"n": 1})
        inner.invoke({"n": 1}, context=dataclasses.replace(runtime.context, level=2))

    colour.invoke(chain(outer), {"n": 1}, context=Context("me"))

    assert seen == [Context("me"), Context("me", 2)]


def test_ids_of_a_server_reach_the_runtime(colour: Colour) -> None:
    """From the config's configurable; without them there is no server."""
    seen: list[Any] = []

    def look(state: State, runtime: Runtime[Any]) -> None:
        seen.append(runtime.server_info)

    app = chain(look)

    colour.invoke(app, {"n": 1}, {"configurable": {"assistant_id": "a", "graph_id": "g", "langgraph_auth_user": "me"}})
    colour.invoke(app, {"n": 1})

    assert (seen[0].assistant_id, seen[0].graph_id, seen[0].user) == ("a", "g", "me")
    assert seen[1] is None


@pytest.mark.parametrize("names", ["s1", ["s1"], "*"])
def test_breakpoints_of_a_call_override_the_graphs(colour: Colour, names: Any) -> None:
    """One name, several, or all."""
    app = chain(
        lambda state: {"log": ["s0"]},
        lambda state: {"log": ["s1"]},
        checkpointer=InMemorySaver(),
        interrupt_before=["s0"],
    )

    first = colour.invoke(app, {"log": ["in"]}, THREAD, interrupt_after=["s0"], interrupt_before=names)

    assert first == ({"log": ["in"]} if names == "*" else {"log": ["in", "s0"]})


def test_a_graph_that_uses_its_parents_saver_cannot_be_invoked_itself(colour: Colour) -> None:
    """``checkpointer=True`` means nothing at the root."""
    with pytest.raises(InvalidInputError, match="checkpointer=True means"):
        colour.invoke(chain(lambda state: None, checkpointer=True), {"n": 1})


def test_a_graph_without_a_saver_inside_one_with_is_not_saved(colour: Colour) -> None:
    """``checkpointer=False``: when the outer run goes on after a failure, the inner graph starts over."""
    ran: list[str] = []
    is_broken = True

    def second(state: State) -> None:
        if is_broken:
            raise ValueError("later")

    inner = chain(lambda state: ran.append("first"), second, checkpointer=False)
    app = chain(inner, checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="later"):
        colour.invoke(app, {"log": []}, THREAD)
    is_broken = False

    colour.invoke(app, None, THREAD)

    assert ran == ["first", "first"]


class Counting(State, total=False):
    """State of an inner graph that counts its runs for itself."""

    runs: int


def test_with_its_own_state_an_inner_graph_remembers_between_calls(colour: Colour) -> None:
    """``checkpointer=True``: its thread is the outer one, its state its own and not filed under one call."""

    def count(state: Counting) -> Counting:
        runs = state.get("runs", 0) + 1
        return {"runs": runs, "n": runs}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Counting)
    graph.add_node("count", count)
    graph.add_edge(START, "count")
    app = chain(graph.compile(checkpointer=True), checkpointer=InMemorySaver())

    assert [colour.invoke(app, {"n": 0}, THREAD)["n"] for _ in range(3)] == [1, 2, 3]


def test_interrupts_print_as_they_are() -> None:
    """Value and id; the schema of the answer is left out."""
    assert repr(Interrupt("?", "id", response_schema=int)) == "Interrupt(value='?', id='id')"
