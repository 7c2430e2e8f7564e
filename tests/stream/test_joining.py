"""Mode ``events``, and what a version 2 part says of itself: its number, its event, its span."""

from __future__ import annotations

import copy
import pickle
from typing import Any
from uuid import UUID

import pytest
from colours import Colour
from scripted_models import ScriptedModel
from small_graphs import THREAD, State, chain, parallel, saving, says
from spans import Trace

from tracegraph.config import get_stream_writer
from tracegraph.events import Event, ModelToken, RunEnded, RunStarted, StateUpdated, TaskEnded, TaskStarted
from tracegraph.types import PartMeta, StreamPart

EVERY = ["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug", "tools", "events"]


def speaking(state: State) -> State:
    """Write to the stream, and let a model say two words."""
    get_stream_writer()("custom")
    return {"xs": [ScriptedModel("a", "b").invoke([]).content]}


def test_events_are_the_run_s_own_records(colour: Colour) -> None:
    """From its start to its end; nothing is missing in their numbers, for nobody else has a run here."""
    found = colour.stream(chain(saving(), a=speaking), {"n": 0}, THREAD, stream_mode="events")

    assert isinstance(found[0], RunStarted)
    assert isinstance(found[-1], RunEnded)
    assert {TaskStarted, TaskEnded, StateUpdated, ModelToken} <= set(map(type, found))
    assert [event.seq for event in found] == list(range(found[0].seq, found[0].seq + len(found)))


def test_events_of_a_failed_run_are_all_delivered(colour: Colour) -> None:
    """Before the error is raised."""

    def fail(state: State) -> None:
        raise ValueError("boom")

    found: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        colour.each(chain(a=fail), {"n": 0}, found.append, stream_mode="events")

    assert (type(found[-1]), found[-1].status) == (RunEnded, "failed")


def test_events_of_runs_inside_come_with_subgraphs(colour: Colour) -> None:
    """Between the start and the end of the task that runs them."""
    app = chain(outer=chain(inner=says("x")))

    flat = colour.stream(app, {"n": 0}, stream_mode="events")
    deep = colour.stream(app, {"n": 0}, stream_mode="events", subgraphs=True)

    assert {event.ns for event in flat} == {""}
    inner = [at for at, (ns, _) in enumerate(deep) if ns]
    began = next(at for at, (_, e) in enumerate(deep) if isinstance(e, TaskStarted) and e.name == "outer")
    ended = next(at for at, (_, e) in enumerate(deep) if isinstance(e, TaskEnded) and e.name == "outer")
    assert began < min(inner) < max(inner) < ended


def test_parts_count_from_one_without_a_gap(colour: Colour) -> None:
    """Each subscription for itself; printed parts are not among them."""
    app = parallel(saving(), a=speaking, b=speaking)

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=EVERY, version="v2", subgraphs=True)
    few = colour.stream(app, {"n": 0}, THREAD, stream_mode=["updates"], print_mode="values", version="v2")

    assert [part.meta.seq for part in found] == list(range(1, len(found) + 1))
    assert [part.meta.seq for part in few] == list(range(1, len(few) + 1))
    assert {part["type"] for part in found} == set(EVERY) - {"tools"}


def test_a_part_names_the_event_it_is_made_of(colour: Colour) -> None:
    """So parts of several modes that are made of one event can be put together, and ordered across subscriptions."""
    found = colour.stream(chain(a=speaking), {"n": 0}, stream_mode=EVERY, version="v2")

    events: dict[int, Event] = {part.meta.event_seq: part["data"] for part in found if part["type"] == "events"}
    kinds = {(part["type"], type(events[part.meta.event_seq]).__name__) for part in found}
    assert {
        ("updates", "TaskEnded"), ("tasks", "TaskEnded"), ("tasks", "SuperstepStarted"), ("values", "StateUpdated"),
        ("custom", "CustomEmitted"), ("messages", "ModelToken"),
    } <= kinds  # fmt: skip
    for part in found:
        event = events[part.meta.event_seq]
        assert (part.meta.run_id, part.meta.step) == (str(event.run_id), event.step)
    assert [part.meta.event_seq for part in found] == sorted(part.meta.event_seq for part in found)


def test_a_part_is_a_plain_dict_with_an_attribute(colour: Colour) -> None:
    """It can be compared, copied and pickled, and a run without spans has no ids of spans."""
    (part,) = colour.stream(chain(a=says("x")), {"n": 0}, stream_mode="updates", version="v2")

    assert part == {"type": "updates", "ns": (), "data": {"a": {"xs": ["x"]}}}
    assert isinstance(part, StreamPart)
    assert (part.meta.trace_id, part.meta.span_id) == (None, None)
    assert UUID(part.meta.run_id).version == 4
    for same in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert (same, same.meta, type(same)) == (part, part.meta, StreamPart)


def test_a_part_leads_to_its_span(colour: Colour, trace: Trace) -> None:
    """A task's parts to the task's, a model's to the model's, what is the run's to the run's, also after the end of each."""
    app = chain(outer=chain(inner=speaking))

    found = colour.stream(app, {"n": 0}, stream_mode=EVERY, version="v2", subgraphs=True)

    named = {format(span.context.span_id, "016x"): span.name for span in trace.ended}
    (trace_id,) = trace.trace_ids
    assert {part.meta.trace_id for part in found} == {format(trace_id, "032x")}

    def spans_of(mode: str, depth: int, kind: type | None = None) -> set[str]:
        parts = (part for part in found if part["type"] == mode and len(part["ns"]) == depth)
        return {named[part.meta.span_id] for part in parts if kind is None or isinstance(part["data"], kind)}

    assert spans_of("updates", 0) == {"run_step outer"}
    assert spans_of("updates", 1) == spans_of("custom", 1) == {"run_step inner"}
    assert spans_of("messages", 1) == {"chat scripted"}
    assert spans_of("values", 0) == spans_of("events", 1, RunEnded) == spans_of("events", 0, RunEnded) == {"invoke_workflow"}
    assert trace.is_complete()


def test_readers_of_version_1_do_not_pay_for_it(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is made for them."""

    def made(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("made for nobody")

    monkeypatch.setattr("tracegraph.stream.joining.PartMeta", made)

    found = colour.stream(chain(a=says("x")), {"n": 0}, stream_mode=["updates", "events"])

    assert any(mode == "updates" for mode, _ in found)


def test_meta_can_be_made_by_hand() -> None:
    """For tests of programs that read parts."""
    part = StreamPart({"type": "custom", "ns": (), "data": 1}, PartMeta(1, 2, "r", None, None, 0))

    assert (part["data"], part.meta.seq) == (1, 1)


def test_a_token_of_langchain_s_model_leads_to_the_model_s_span(colour: Colour, trace: Trace) -> None:
    """Which it has like any other model."""
    from langchain_core.language_models import FakeListChatModel

    def node(state: State) -> State:
        return {"xs": [FakeListChatModel(responses=["ab"]).invoke("x").content]}

    found = colour.stream(chain(a=node), {"n": 0}, stream_mode="messages", version="v2")

    (span,) = trace.named("chat")
    assert [part["data"][0].content for part in found] == ["a", "b"]
    assert {part.meta.span_id for part in found} == {format(span.context.span_id, "016x")}
    assert "run_step a" in trace.ancestors(span)
