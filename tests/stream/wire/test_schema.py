"""The schema of the wire form is what is committed, and is true of every mode and every kind of event."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from colours import Colour
from json_schema import faults
from scripted_models import ScriptedModel
from small_graphs import THREAD, State, chain, saving

from tracegraph.config import get_config, get_stream_writer
from tracegraph.events import CheckpointTask, Event, TaskPlanned, Wait
from tracegraph.stream.wire import to_wire, wire_schema
from tracegraph.types import Interrupt, StreamMode, TracePolicy, interrupt

COMMITTED = Path(__file__).parents[3] / "docs" / "wire" / "schema-v1.json"
SCHEMA = json.loads(COMMITTED.read_text("utf-8"))


def through_json(part: Any) -> Any:
    return json.loads(json.dumps(to_wire(part), allow_nan=False))


def busy(state: State) -> State:
    """Give every mode something to show."""
    get_stream_writer()({"pages": 1})
    ScriptedModel("Ow", "ls").invoke([])
    call = get_config()["callbacks"].on_tool_start({"name": "look"}, "raw", inputs={"q": 1}, tool_call_id="c1")
    call.on_tool_end("found")
    return {"xs": ["busy"]}


def ask(state: State) -> State:
    return {"xs": [interrupt({"sure": True})]}


def fail(state: State) -> State:
    raise ValueError("boom")


def test_the_committed_schema_is_that_of_the_types() -> None:
    """Else: ``python -m tracegraph.stream.wire > docs/wire/schema-v1.json``."""
    assert wire_schema() == SCHEMA


def test_parts_of_every_mode_are_valid(colour: Colour) -> None:
    """Of a run with messages, tools, a graph inside, a question and a failure."""
    asking, failing = chain(saving(), busy=chain(busy=busy), ask=ask), chain(saving(), fail=fail)
    options: dict[str, Any] = {"stream_mode": get_args(StreamMode), "version": "v2", "subgraphs": True}
    found = colour.stream(asking, {"n": 0}, THREAD, **options)
    found += colour.stream(chain(busy=busy), {"n": 0}, **options)
    with pytest.raises(ValueError, match="boom"):
        colour.each(failing, {"n": 0}, found.append, THREAD, **options)

    wired = [through_json(part) for part in found]
    assert [fault for each in wired for fault in faults(SCHEMA, each)] == []
    assert {each["type"] for each in wired} == set(get_args(StreamMode))
    assert any(each.get("interrupts") for each in wired)


def sample(hint: Any) -> Any:
    """Return a value of the kind that a field is annotated with."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return sample(inner[0])
    if origin is Literal:
        return inner[0]
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(map(sample, inner))
    kind = origin or hint
    if kind in (TaskPlanned, CheckpointTask, Interrupt, Wait):
        return made(kind)
    if kind in SAMPLES:
        return SAMPLES[kind]
    if issubclass(kind, Mapping):
        return {"key": 1}
    return frozenset("a") if kind is frozenset else (sample(inner[0]),)


SAMPLES: dict[Any, Any] = {
    Any: {"any": 1}, str: "text", bool: True, int: 7, float: 0.5, UUID: UUID(int=1), BaseException: ValueError("no"),
}  # fmt: skip


def made(kind: Any) -> Any:
    hints = get_type_hints(kind, localns={"Interrupt": Interrupt, "TracePolicy": TracePolicy})
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return kind(**{name: None if name in ("mapper", "trace_policies") else sample(hints[name]) for name in names})


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_each_kind_of_event_is_valid_and_nothing_of_it_may_be_missing(kind: Any) -> None:
    """By its name, with all its fields; one key less is a fault, so the schema says something."""
    wire = through_json(made(kind))

    assert faults(SCHEMA, wire) == []
    assert wire["data"]["event"] == kind.__name__
    for key in wire["data"]:
        assert faults(SCHEMA, {**wire, "data": {name: value for name, value in wire["data"].items() if name != key}})


@pytest.mark.parametrize(
    "wrong",
    [
        {"v": 2},
        {"type": "tokens"},
        {"ns": "a"},
        {"meta": {}},
        {"type": "messages", "data": [{}, {}]},
        {"type": "tasks", "data": {}},
    ],
)
def test_what_is_no_wire_form_is_not_valid(wrong: dict[str, Any]) -> None:
    """A version, a type, a namespace, data of another kind."""
    right = {"v": 1, "type": "custom", "ns": [], "data": 1, "meta": None}

    assert faults(SCHEMA, right) == []
    assert faults(SCHEMA, right | wrong)
