"""Memory calls in the signals of real runs: a span each below its node, measurements, failures, content if asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from langgraph.store.memory import InMemoryStore
from measured import Measured
from notes_store import NotesStore
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind
from records import Records, belongs_to
from signals import Signals
from small_graphs import THREAD, State, chain
from spans import Trace

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_config, get_store
from tracegraph.graph import START, StateGraph
from tracegraph.stream.wire import to_wire
from tracegraph.telemetry import semconv, use_provider
from tracegraph.telemetry.content import ContentPolicy
from tracegraph.types import Command, interrupt

CANARY = "canary-5d1e"
DURATION = "gen_ai.client.operation.duration"
ANN = ("users", f"ann-{CANARY}")
"""Where programs file by user."""


def remembers(colour: Colour) -> Any:
    """Return a node that writes, finds, reads and deletes."""

    def sync(_: State) -> State:
        store = get_store()
        store.put(ANN, "tea", {"likes": CANARY})
        store.search(ANN[:1], query=f"what of {CANARY}?")
        store.get(ANN, "tea")
        store.delete(ANN, "tea")
        return {"n": 1}

    async def async_(_: State) -> State:
        store = get_store()
        await store.aput(ANN, "tea", {"likes": CANARY})
        await store.asearch(ANN[:1], query=f"what of {CANARY}?")
        await store.aget(ANN, "tea")
        await store.adelete(ANN, "tea")
        return {"n": 1}

    return sync if colour is SYNC else async_


def app(body: Any, store: Any, **options: Any) -> Any:
    """Return a graph of one node with a store."""
    return StateGraph(State).add_node("node", body).add_edge(START, "node").compile(store=store, **options)


def memory_spans(trace: Trace) -> list[Any]:
    return [span for span in trace.ended if "memory" in span.name]


def test_a_span_for_each_call_below_its_node(trace: Trace, colour: Colour) -> None:
    """What was done, with which record of which store; to a store that may be anywhere, the kind is CLIENT."""
    colour.invoke(app(remembers(colour), NotesStore("prefs"), checkpointer=InMemorySaver()), {}, THREAD)

    spans = memory_spans(trace)
    assert [span.name for span in spans] == ["upsert_memory", "search_memory", "search_memory", "delete_memory"]
    assert {trace.ancestors(span)[0] for span in spans} == {"run_step node"}
    assert {span.kind for span in spans} == {SpanKind.CLIENT}
    assert dict(spans[0].attributes) == {
        "gen_ai.operation.name": "upsert_memory",
        "gen_ai.conversation.id": "t",
        "gen_ai.memory.store.id": "prefs",
        "gen_ai.memory.record.id": "tea",
        "gen_ai.memory.record.count": 1,
        "tracegraph.memory.store.name": "NotesStore",
    }
    assert [span.attributes.get(semconv.MEMORY_RECORD_ID) for span in spans] == ["tea", None, "tea", "tea"]
    assert trace.is_complete()
    assert trace.errors == []


def hidden(value: Any, _: Any) -> Any:
    """Redact the canary."""
    return value.replace(CANARY, "***") if isinstance(value, str) else value


class Here(NotesStore):
    is_in_process = True


@pytest.mark.parametrize("store", [InMemoryStore(), Here()], ids=["langgraph", "says so"])
def test_a_store_in_the_process_is_no_client_s(trace: Trace, store: Any, colour: Colour) -> None:
    """LangGraph's InMemoryStore is known; others say so."""
    colour.invoke(app(remembers(colour), store), {})

    spans = memory_spans(trace)
    assert [(span.name, span.attributes[semconv.MEMORY_RECORD_COUNT]) for span in spans] == [
        ("upsert_memory", 1), ("search_memory", 1), ("search_memory", 1), ("delete_memory", 1),
    ]  # fmt: skip
    assert {span.kind for span in spans} == {SpanKind.INTERNAL}
    assert not any(semconv.MEMORY_STORE_ID in span.attributes for span in spans)


def test_memory_of_a_graph_inside_lies_below_its_own_node(trace: Trace, colour: Colour) -> None:
    """And below a tool, where it is told through the tool's own manager."""

    def node(_: State) -> None:
        tool = get_config()["callbacks"].on_tool_start({"name": "recall"}, "x")
        tool.get_child().on_memory_start("search_memory", is_in_process=True).on_memory_end([])
        tool.on_tool_end("y")

    colour.invoke(app(chain(inner=remembers(colour)), NotesStore()), {})
    colour.invoke(app(node, None), {})

    *inside, last = memory_spans(trace)
    assert {trace.ancestors(span)[0] for span in inside} == {"run_step inner"}
    assert trace.ancestors(last)[:2] == ["execute_tool recall", "run_step node"]


def test_a_failure_is_an_error_of_the_call_and_passes(trace: Trace, records: Records, colour: Colour) -> None:
    """On the span and as a record with what was asked; the node may handle it."""
    store = NotesStore("prefs")
    store.broken = ConnectionError("gone")

    def sync(_: State) -> None:
        with pytest.raises(ConnectionError, match="gone"):
            get_store().put(ANN, "tea", {"likes": CANARY})

    async def async_(_: State) -> None:
        with pytest.raises(ConnectionError, match="gone"):
            await get_store().aput(ANN, "tea", {"likes": CANARY})

    colour.invoke(app(sync if colour is SYNC else async_, store), {})

    (span,) = memory_spans(trace)
    assert trace.errors == ["upsert_memory"]
    assert (span.attributes[semconv.ERROR_TYPE], span.status.description) == ("ConnectionError", "gone")
    assert semconv.MEMORY_RECORD_COUNT not in span.attributes
    record = records.one(semconv.OPERATION_EXCEPTION_EVENT)
    assert belongs_to(record, span)
    assert record.body == "NotesStore failed"
    assert record.attributes["gen_ai.operation.name"] == "upsert_memory"
    assert record.attributes["gen_ai.memory.record.id"] == "tea"
    assert CANARY not in repr([dict(record.attributes), dict(span.attributes), span.events])


def test_control_flow_through_the_store_is_no_error(trace: Trace, records: Records, colour: Colour) -> None:
    """A store that asks a person, say: the run pauses, and goes on with a call that succeeds."""

    class Asking(NotesStore):
        def batch(self, ops: Any) -> list[Any]:
            assert interrupt("may I?") == "you may"
            return super().batch(ops)

    def sync(_: State) -> None:
        get_store().put(ANN, "tea", {})

    async def async_(_: State) -> None:
        await get_store().aput(ANN, "tea", {})

    graph = app(sync if colour is SYNC else async_, Asking(), checkpointer=InMemorySaver())
    colour.invoke(graph, {}, THREAD)
    colour.invoke(graph, Command(resume="you may"), THREAD)

    assert [span.attributes.get(semconv.CALL_STATUS) for span in memory_spans(trace)] == ["interrupted", None]
    assert trace.errors == []
    assert records.named(semconv.OPERATION_EXCEPTION_EVENT) == []


def test_a_cancelled_call_is_no_error(trace: Trace, records: Records) -> None:
    """Its span ends, once."""

    class Stuck(NotesStore):
        async def aput(self, *_: Any) -> None:
            entered.set()
            await asyncio.Event().wait()

    async def node(_: State) -> None:
        await get_store().aput(ANN, "tea", {})

    async def run() -> None:
        running = asyncio.ensure_future(app(node, Stuck()).ainvoke({}))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    entered = asyncio.Event()
    asyncio.run(run())

    assert [span.name for span in memory_spans(trace)] == ["upsert_memory"]
    assert trace.is_complete()
    assert trace.errors == []
    assert records.named(semconv.OPERATION_EXCEPTION_EVENT) == []


def test_each_call_is_measured_by_what_it_does_and_where(measured: Measured, colour: Colour) -> None:
    """Never by record, store or namespace, of which there may be any number."""
    colour.invoke(app(remembers(colour), NotesStore("prefs"), name="agent"), {})

    where = {"gen_ai.workflow.name": "agent", "gen_ai.step.name": "node"}
    points = {point.attributes["gen_ai.operation.name"]: point for point in measured.all() if point.name == DURATION}
    assert {name: point.count for name, point in points.items()} == {
        "upsert_memory": 1, "search_memory": 2, "delete_memory": 1,
    }  # fmt: skip
    assert all(point.attributes == {**where, "gen_ai.operation.name": name} for name, point in points.items())


def test_by_default_no_signal_says_what_is_remembered_of_whom(colour: Colour) -> None:
    """Neither content, nor query, nor the namespace, which may be a user's."""
    signals = Signals()
    with signals.recorded():
        colour.invoke(app(remembers(colour), InMemoryStore()), {})

    assert len([span for span in signals.spans if "memory" in span.name]) == 4
    assert CANARY not in signals.everything()


def test_a_secret_is_no_record_id_either() -> None:
    """Keys are told, but not those that redactors know for what they are."""
    signals = Signals()
    with signals.recorded():
        SYNC.invoke(app(lambda _: get_store().put(ANN, "Bearer abcdefghijklmnop0123456789", {}), InMemoryStore()), {})

    assert "abcdefghijklmnop" not in signals.everything()
    assert "gen_ai.memory.record.id" in signals.span("upsert_memory")


@pytest.mark.content_on_spans("content is asked for")
def test_content_is_recorded_where_it_is_asked_for(colour: Colour) -> None:
    """What is written, what is searched for and what is found, with the namespace; redacted."""
    policy = ContentPolicy(capture="SPAN_AND_EVENT", redactors=(hidden,))
    signals = Signals()
    with signals.recorded(policy):
        colour.invoke(app(remembers(colour), InMemoryStore()), {})

    record = {"id": "tea", "content": {"likes": "***"}, "metadata": {"namespace": ["users", "ann-***"]}}
    assert signals.json("upsert_memory", "gen_ai.memory.records") == [record]
    search, get = [dict(span.attributes or {}) for span in signals.spans if span.name == "search_memory"]
    assert search["gen_ai.memory.query.text"] == "what of ***?"
    assert search["gen_ai.memory.records"] == get["gen_ai.memory.records"]
    assert "gen_ai.memory.records" not in signals.span("delete_memory")
    details = signals.log("tracegraph.operation.details", gen_ai__operation__name="upsert_memory")
    assert details["gen_ai.memory.records"] == [record]
    assert CANARY not in signals.everything()


@pytest.mark.content_on_spans("content is asked for")
def test_what_is_remembered_is_cut_to_the_budget() -> None:
    """A long record makes no fat span."""
    signals = Signals()
    with signals.recorded(ContentPolicy(capture="SPAN_ONLY", budget_bytes=300)):
        SYNC.invoke(app(lambda _: get_store().put(ANN, "tea", {"likes": "x" * 5000}), InMemoryStore()), {})

    assert len(signals.span("upsert_memory")["gen_ai.memory.records"]) <= 300
    assert signals.span("upsert_memory")["tracegraph.truncated"] == ("gen_ai.memory.records",)


@pytest.mark.content_on_spans("content is asked for")
def test_content_of_a_run_without_spans_goes_to_log_events() -> None:
    """Sampling is not what decides about content."""
    signals = Signals(ALWAYS_OFF)
    with signals.recorded("EVENT_ONLY"):
        SYNC.invoke(app(remembers(SYNC), InMemoryStore()), {})

    search = signals.log("tracegraph.operation.details", gen_ai__memory__query__text=f"what of {CANARY}?")
    assert search["gen_ai.memory.records"][0]["id"] == "tea"


def test_a_run_that_nobody_observes_hands_on_the_store_itself(provider: TracerProvider, colour: Colour) -> None:
    """Nothing is around it without a provider, nor when the run is sampled out."""
    store, found = NotesStore(), []
    graph = app(lambda _: found.append(get_store()), store)

    colour.invoke(graph, {})
    use_provider(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    try:
        colour.invoke(graph, {})
    finally:
        use_provider(None)

    assert found[0] is store
    assert found[1] is store


def test_mode_events_shows_memory_calls_and_the_flat_stream_does_not(colour: Colour) -> None:
    """LangChain's events have no such kind, and programs hand all of them to their users."""
    graph = app(remembers(colour), InMemoryStore())
    parts = colour.stream(graph, {}, stream_mode="events", version="v2")

    sent = [to_wire(part)["data"] for part in parts]
    memory = [data for data in sent if data["event"].startswith("Memory")]
    assert [data["event"] for data in memory] == ["MemoryStarted", "MemoryEnded"] * 4
    assert memory[0]["operation"] == "upsert_memory"
    assert memory[0]["records"] == [{"namespace": [*ANN], "key": "tea", "value": {"likes": CANARY}}]
    assert CANARY in str(memory[3]["records"])

    async def flat() -> list[str]:
        return [event["event"] async for event in graph.astream_events({}, version="v2")]

    if colour is ASYNC:
        assert not any("memory" in event for event in asyncio.run(flat()))
