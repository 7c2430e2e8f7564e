"""The order of parts, what is printed, what a reader is given in version 2, and how a stream ends (spec 8.2, 8.11, 8.13)."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any, TypedDict

import pytest
from colours import Colour
from pydantic import BaseModel
from small_graphs import THREAD, State, chain, parallel, saving, says, wait_for

from tracegraph.config import get_stream_writer
from tracegraph.errors import InvalidInputError
from tracegraph.graph import START, StateGraph
from tracegraph.types import GraphOutput, interrupt

MODES = ["values", "updates", "custom", "tasks", "checkpoints"]


def label(mode: str, part: Any) -> str:
    """Return a part in a word or two."""
    match mode:
        case "tasks":
            return f"{'start' if 'input' in part else 'end'} {part['name']}"
        case "updates":
            return f"update {next(iter(part))}"
        case "checkpoints":
            return f"checkpoint {part['metadata']['step']}"
        case "custom":
            return f"custom {part}"
        case _:
            return "values"


def test_parts_of_a_superstep_come_in_a_fixed_order(colour: Colour) -> None:
    """Checkpoint, starts, what nodes write, each task's update and end as it finishes, values."""
    b_is_done = threading.Event()

    def a(state: State) -> State:
        get_stream_writer()("a")
        wait_for(b_is_done)
        return {"xs": ["a"]}

    def b(state: State) -> State:
        return {"xs": ["b"]}

    log: list[str] = []

    def consume(found: Any) -> None:
        log.append(label(*found))
        if log[-1] == "end b":
            b_is_done.set()

    colour.each(parallel(saving(), a=a, b=b), {"n": 0}, consume, THREAD, stream_mode=MODES)

    log.remove("custom a")  # written while both run
    assert log == [
        "checkpoint -1", "values", "checkpoint 0", "start a", "start b", "update b", "end b", "update a", "end a",
        "values", "checkpoint 1",
    ]  # fmt: skip


def test_at_a_pause_the_question_comes_before_the_task_s_end(colour: Colour) -> None:
    """Updates, values with the question, the end."""
    app = chain(saving(), ask=lambda state: {"xs": [interrupt("?")]})

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=MODES)

    assert [label(*part) for part in found[-4:]] == ["start ask", "update __interrupt__", "values", "end ask"]
    assert "__interrupt__" in found[-2][1]


def test_a_graph_inside_is_shown_between_its_task_s_start_and_update(colour: Colour) -> None:
    """All of it."""
    app = chain(saving(), outer=chain(inner=says("x")))

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=MODES, subgraphs=True)

    names = [f"{len(ns)} {label(mode, part)}" for ns, mode, part in found]
    assert names.index("0 start outer") < names.index("1 checkpoint -1")
    assert max(at for at, name in enumerate(names) if name.startswith("1")) + 1 == names.index("0 update outer")


def test_custom_parts_of_a_graph_inside_need_subgraphs(colour: Colour) -> None:
    """Without, its writer reaches nobody."""

    def write(state: State) -> None:
        get_stream_writer()("inner")

    app = chain(outer=chain(inner=write))

    assert colour.stream(app, {"n": 0}, stream_mode="custom") == []
    assert [(len(ns), part) for ns, part in colour.stream(app, {"n": 0}, stream_mode="custom", subgraphs=True)] == [(1, "inner")]


@pytest.mark.parametrize("modes", [("tasks", "values"), ["tasks", "values"], {"tasks": 1, "values": 2}.keys()])
def test_any_sequence_of_modes_works_like_a_list(colour: Colour, modes: Any) -> None:
    """Each part says its mode."""
    found = colour.stream(chain(a=says("x")), {"n": 0}, stream_mode=modes)

    assert {mode for mode, _ in found} == {"tasks", "values"}


@pytest.mark.parametrize("where", ["stream_mode", "print_mode"])
def test_an_unknown_mode_is_an_error_that_lists_the_others(colour: Colour, where: str) -> None:
    """At the call."""
    with pytest.raises(InvalidInputError, match="'token' does not exist; there are .*'messages', 'tasks'"):
        colour.stream(chain(a=says("x")), {"n": 0}, **{where: "token"})


def test_output_keys_cut_values_and_updates_only(colour: Colour) -> None:
    """Tasks and checkpoints are about the whole state."""
    app = chain(saving(), a=lambda state: {"n": 1, "xs": ["x"]})

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=MODES, output_keys="n")

    assert [part for mode, part in found if mode == "values"] == [0, 1]
    assert [part for mode, part in found if mode == "updates"] == [{"a": 1}]
    assert [part["result"] for mode, part in found if mode == "tasks" and "result" in part] == [{"n": 1, "xs": ["x"]}]
    assert [part for mode, part in found if mode == "checkpoints"][-1]["values"] == {"n": 1, "xs": ["x"]}
    with pytest.raises(InvalidInputError, match="no channel"):
        colour.stream(app, {"n": 0}, THREAD, stream_mode="tasks", output_keys="no")


def test_what_is_printed_is_not_yielded(colour: Colour, capsys: pytest.CaptureFixture[str]) -> None:
    """Unless it was asked for as well; every mode can be printed."""
    app = chain(saving(), outer=chain(a=says("x")))

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode="updates", print_mode=["tasks", "debug", "events"], subgraphs=True)

    printed = capsys.readouterr().out.splitlines()
    assert [part for _, part in found] == [{"a": {"xs": ["x"]}}, {"outer": {"xs": ["x"], "n": 0}}]
    assert {line.partition("]")[0] for line in printed} == {"[tasks", "[debug", "[events"}
    assert any(line.startswith("[tasks] outer:") for line in printed)


def test_debug_prints_updates_and_values(colour: Colour, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the call or of the graph, whatever mode is read."""
    found = colour.stream(chain(a=says("x")), {"n": 0}, stream_mode="tasks", debug=True)

    assert [line.partition("]")[0] for line in capsys.readouterr().out.splitlines()] == ["[values", "[updates", "[values"]
    assert len(found) == 2


# --- version 2 --------------------------------------------------------------------------------------------------


class Model(BaseModel):
    n: int
    text: str = ""


@dataclasses.dataclass
class Data:
    n: int
    text: str = ""


class Out(BaseModel):
    n: int


@pytest.mark.parametrize("schema", [Model, Data])
def test_version_2_gives_instances_of_the_schema(colour: Colour, schema: Any) -> None:
    """As values, in checkpoints, and as the result of invoke; version 1 gives dicts."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    graph.add_node("a", lambda state: {"n": state.n + 1})
    graph.add_edge(START, "a")
    app = graph.compile(**saving())

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=["values", "checkpoints", "debug"], version="v2")

    assert [part["data"] for part in found if part["type"] == "values"] == [schema(n=0), schema(n=1)]
    assert [part["data"]["values"] for part in found if part["type"] == "checkpoints"] == [{}, schema(n=0), schema(n=1)]
    wrapped = [part["data"] for part in found if part["type"] == "debug" and part["data"]["type"] == "checkpoint"]
    assert [part["payload"]["values"] for part in wrapped] == [{}, schema(n=0), schema(n=1)]
    assert colour.invoke(app, {"n": 5}, {"configurable": {"thread_id": "u"}}, version="v2") == GraphOutput(schema(n=6))
    assert colour.stream(app, {"n": 0}, {"configurable": {"thread_id": "v"}}, stream_mode="values")[-1]["n"] == 1


def test_values_are_of_the_output_schema_and_a_subgraph_s_are_not(colour: Colour) -> None:
    """Its own schema is not known to who reads it."""
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(Model)
    inner.add_node("leaf", lambda state: {"n": 7})
    inner.add_edge(START, "leaf")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Model, output_schema=Out)
    graph.add_node("outer", inner.compile())
    graph.add_edge(START, "outer")

    found = colour.stream(graph.compile(), {"n": 0}, stream_mode="values", subgraphs=True, version="v2")

    assert [part["data"] for part in found if not part["ns"]] == [Out(n=0), Out(n=7)]
    assert all(isinstance(part["data"], dict) for part in found if part["ns"])


def test_values_that_make_no_instance_are_shown_as_they_are(colour: Colour) -> None:
    """The reader is not the one to learn of it; nor are some of the keys an instance."""

    class Loose(TypedDict, total=False):
        n: Any

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Loose, output_schema=Out)
    graph.add_node("a", lambda state: {"n": 1})
    graph.add_edge(START, "a")
    app = graph.compile()

    found = colour.stream(app, {"n": "text"}, stream_mode="values", version="v2")
    cut = colour.stream(app, {"n": 0}, stream_mode="values", version="v2", output_keys=["n"])
    bare = colour.stream(app, {"n": 0}, stream_mode="values", version="v2", output_keys="n")

    assert [part["data"] for part in found] == [{"n": "text"}, Out(n=1)]
    assert [part["data"] for part in cut] == [{"n": 0}, {"n": 1}]
    assert [part["data"] for part in bare] == [0, 1]


def test_questions_stand_beside_the_values(colour: Colour) -> None:
    """In a key of their own, so the values stay an instance."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Model)
    graph.add_node("ask", lambda state: {"n": interrupt("?")})
    graph.add_edge(START, "ask")

    found = colour.stream(graph.compile(**saving()), {"n": 0}, THREAD, stream_mode="values", version="v2")

    assert [(part["data"], [q.value for q in part["interrupts"]]) for part in found] == [(Model(n=0), []), (Model(n=0), ["?"])]


def test_invoke_gives_all_parts_of_another_mode(colour: Colour) -> None:
    """As a list, in either version."""
    app = chain(a=says("x"))

    assert [part["name"] for part in colour.invoke(app, {"n": 0}, stream_mode="tasks")] == ["a", "a"]
    assert [part.meta.seq for part in colour.invoke(app, {"n": 0}, stream_mode="tasks", version="v2")] == [1, 2]


# --- a stream in a node, and its end ----------------------------------------------------------------------------


def test_each_reader_of_nested_streams_has_its_own_parts(colour: Colour) -> None:
    """In its own modes, from its own graph's point of view, numbered for itself."""
    inner, seen = chain(leaf=says("x")), []

    def node(state: State) -> None:
        seen.extend(inner.stream({"n": 0}, stream_mode=["tasks", "debug"], version="v2"))

    async def anode(state: State) -> None:
        seen.extend([part async for part in inner.astream({"n": 0}, stream_mode=["tasks", "debug"], version="v2")])

    app = chain(outer=node if colour.name == "sync" else anode)
    found = colour.stream(app, {"n": 0}, stream_mode="tasks", version="v2", subgraphs=True)

    assert [(part["type"], part["ns"]) for part in seen] == [("tasks", ()), ("debug", ())] * 2
    assert [part.meta.seq for part in seen] == [1, 2, 3, 4]
    assert [(len(part["ns"]), part["data"]["name"]) for part in found] == [(0, "outer"), (1, "leaf"), (1, "leaf"), (0, "outer")]
    assert [part.meta.seq for part in found] == [1, 2, 3, 4]
    assert {part.meta.event_seq for part in seen} == {part.meta.event_seq for part in found if part["ns"]}


def test_closing_a_stream_cancels_what_sleeps() -> None:
    """And no part comes after it."""
    cancelled: list[str] = []

    async def sleep(state: State) -> None:
        get_stream_writer()("asleep")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("sleep")
            raise

    async def run() -> list[Any]:
        parts = chain(a=says("x"), sleep=sleep).astream({"n": 0}, stream_mode=["custom", "events"])
        async for mode, _ in parts:
            if mode == "custom":
                await parts.aclose()
        return [part async for part in parts]

    assert asyncio.run(run()) == []
    assert cancelled == ["sleep"]
