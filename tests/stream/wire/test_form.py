"""What values, messages and events look like as JSON."""

from __future__ import annotations

import json
from collections import UserDict, deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any
from uuid import UUID

import pytest
from colours import Colour
from langchain_core import messages as theirs
from pydantic import BaseModel
from small_graphs import THREAD, chain, saving, says

from tracegraph import messages as ours
from tracegraph.errors import InvalidInputError
from tracegraph.events import ObserverFailed, SuperstepStarted, TaskStarted
from tracegraph.graph import START, StateGraph
from tracegraph.messages import add_messages, convert_to_messages
from tracegraph.stream.wire import to_wire
from tracegraph.types import PartMeta, StreamPart

ENVELOPE = {"v": 1, "type": "custom", "ns": []}
RUN = UUID(int=1)


def custom(data: Any) -> Any:
    """Return what arrives of *data*."""
    wire = to_wire({"type": "custom", "ns": (), "data": data})
    arrived = json.loads(json.dumps(wire, allow_nan=False))
    assert arrived == {**ENVELOPE, "data": arrived["data"], "meta": None}
    return arrived["data"]


def test_a_part_has_its_keys_in_one_order(colour: Colour) -> None:
    """Version, type, namespace, data, questions if it is a state, and what it belongs to."""
    app = chain(saving(), a=says("x"))

    values, updates = colour.stream(app, {"n": 0}, THREAD, stream_mode=["values", "updates"], version="v2")[:2]

    assert list(to_wire(values)) == ["v", "type", "ns", "data", "interrupts", "meta"]
    assert list(to_wire(updates)) == ["v", "type", "ns", "data", "meta"]
    assert to_wire(updates)["meta"] == {
        "seq": 2,
        "event_seq": updates.meta.event_seq,
        "run_id": updates.meta.run_id,
        "trace_id": updates.meta.trace_id,
        "span_id": updates.meta.span_id,
        "step": 1,
    }


def test_a_namespace_is_an_array() -> None:
    """Of a part, and of an event by itself, whose own is a text."""
    part = StreamPart({"type": "custom", "ns": ("a:1", "b:2"), "data": 1}, PartMeta(3, 9, "r", None, None, 0))
    started = SuperstepStarted(RUN, "a:1|b:2", 1, 5, (), False, None)

    assert to_wire(part)["ns"] == to_wire(started)["ns"] == ["a:1", "b:2"]


def test_an_event_has_its_name_and_its_fields() -> None:
    """Ids as text, times in nanoseconds, a task's input as data."""
    started = TaskStarted(
        RUN, "", 1, 123, "t1", "a", ("__pregel_pull", "a"), ("n",), {"n": RUN}, 122, None, None, False, [], None, False
    )
    wire = to_wire(started)

    assert (wire["type"], wire["meta"]) == ("events", None)
    assert list(wire["data"])[:6] == ["event", "run_id", "ns", "step", "at_ns", "seq"]
    assert wire["data"] == {
        "event": "TaskStarted",
        "run_id": str(RUN),
        "ns": "",
        "step": 1,
        "at_ns": 123,
        "seq": 0,
        "task_id": "t1",
        "name": "a",
        "path": ["__pregel_pull", "a"],
        "triggers": ["n"],
        "input": {"n": str(RUN)},
        "planned_at_ns": 122,
        "producer_id": None,
        "caller_id": None,
        "is_hidden": False,
        "tags": [],
        "metadata": None,
        "has_attempts": False,
    }


def test_an_observer_s_failure_names_both_events() -> None:
    """Its own, and the one that the observer did not take."""
    data = to_wire(ObserverFailed(RUN, "", 0, 1, "Mine", KeyError("k"), "TaskEnded"))["data"]

    assert (data["event"], data["observed"], data["error"]) == (
        "ObserverFailed",
        "TaskEnded",
        {"type": "KeyError", "message": "'k'"},
    )


@pytest.mark.parametrize("family", [ours, theirs], ids=["ours", "LangChain's"])
def test_messages_of_both_families_have_one_form(family: Any) -> None:
    """Type, content and id always, of the rest what is not empty."""
    call = {"name": "look", "args": {"q": 1}, "id": "c1", "type": "tool_call"}
    found = custom(
        [
            family.HumanMessage("hi", id="1"),
            family.AIMessage("", id="2", tool_calls=[call]),
            family.ToolMessage("seen", id="3", tool_call_id="c1", artifact={1}),
            family.AIMessageChunk("Ow", id="4"),
            family.SystemMessage([{"type": "text", "text": "be"}], name="n"),
        ]
    )

    assert found == [
        {"type": "human", "content": "hi", "id": "1"},
        {"type": "ai", "content": "", "id": "2", "tool_calls": [call]},
        {"type": "tool", "content": "seen", "id": "3", "tool_call_id": "c1", "artifact": [1], "status": "success"},
        {"type": "AIMessageChunk", "content": "Ow", "id": "4"},
        {"type": "system", "content": [{"type": "text", "text": "be"}], "id": None, "name": "n"},
    ]
    assert list(found[0]) == ["type", "content", "id"]


def test_messages_can_be_read_back() -> None:
    """By what takes messages as dicts."""
    said = [
        ours.HumanMessage("hi", id="1"),
        ours.AIMessage("ho", id="2", usage_metadata={"input_tokens": 1}),
        ours.RemoveMessage("3"),
    ]

    assert convert_to_messages(custom(said)) == said


class Talk(BaseModel):
    messages: Annotated[list[Any], add_messages] = []
    n: int = 0


@dataclass
class Notes:
    messages: Annotated[list[Any], add_messages]
    n: int = 0


@pytest.mark.parametrize("schema", [Talk, Notes])
def test_messages_in_a_typed_state_are_messages(colour: Colour, schema: Any) -> None:
    """Version 2 yields instances of the schema, which a wire does not have."""
    app = StateGraph(schema).add_node("a", lambda state: {"n": 1}).add_edge(START, "a").compile()
    given = {"messages": [ours.HumanMessage("hi", id="1")]}

    *_, last = colour.stream(app, given, stream_mode="values", version="v2")

    assert isinstance(last["data"], schema)
    assert to_wire(last)["data"] == {"messages": [{"type": "human", "content": "hi", "id": "1"}], "n": 1}


class Mute:
    """Neither prints nor shows itself, nor has what it says it has."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no attribute")


class Trap(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")


@dataclass
class Half:
    a: int
    b: int


def test_whatever_a_node_sends_arrives_somehow() -> None:
    """Nothing raises; what stands beside an odd value is not hurt."""
    half = Half(1, 2)
    del half.b
    odd = {
        "mute": Mute(), "trap": Trap(a=1), "half": half, "nan": float("nan"), "bytes": b"\x00\xff", "set": {"b", "a"},
        "big": 10**5000,
        "surrogate": "\ud800", "error": ValueError("two\nlines"), "class": int, 1: "a key", RUN: RUN,
        "user": UserDict(a=[ours.HumanMessage("hi")]), "proxy": MappingProxyType({"a": "b"}), "queue": deque([1]),
        "mixed": {1, "1"}, ("a", 1): None,
    }  # fmt: skip

    found = custom(odd)

    assert found.pop("big") == hex(10**5000)
    assert found.pop("trap")
    assert sorted(map(repr, found.pop("mixed"))) == ["'1'", "1"]
    assert found == {
        "mute": "<unprintable Mute>",
        "half": {"a": 1, "b": None},
        "nan": "nan",
        "bytes": "AP8=",
        "set": ["a", "b"],
        "surrogate": "\ud800",
        "error": {"type": "ValueError", "message": "two\nlines"},
        "class": "<class 'int'>",
        "1": "a key",
        str(RUN): str(RUN),
        "a,1": None,
        "user": {"a": [{"type": "human", "content": "hi", "id": None}]},
        "proxy": {"a": "b"},
        "queue": [1],
    }


def test_what_holds_itself_arrives_once() -> None:
    """And what is nested without measure arrives too."""
    ring: list[Any] = [1]
    ring.append(ring)
    deep: Any = []
    for _ in range(5000):
        deep = [deep]

    assert custom(ring) == [1, "[1, [...]]"]
    assert custom({"deep": deep, "beside": 1})["beside"] == 1


@pytest.mark.parametrize("part", ["text", ("updates", {}), {"type": "custom"}, {"type": "own", "ns": (), "data": 1}, None])
def test_what_is_no_part_is_refused(part: Any) -> None:
    """With what to do: parts of version 1 do not say where they are from."""
    with pytest.raises(InvalidInputError, match="version='v2'"):
        to_wire(part)
