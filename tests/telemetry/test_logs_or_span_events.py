"""Which points in time are log records, which are span events, and which are both: one switch, in code or as a variable."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from colours import SYNC, Colour
from records import Records
from small_graphs import THREAD, State, chain, saving, says
from spans import Trace

from tracegraph.config import get_config
from tracegraph.errors import InvalidInputError
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import mirroring
from tracegraph.telemetry.mirroring import use_events
from tracegraph.types import RetryPolicy, interrupt

SPAN_EVENTS = ["tracegraph.stream.first_chunk", "exception", "tracegraph.task.retry", "tracegraph.run.interrupted"]
RECORDS = ["task.retry", "run.interrupted"]


@pytest.fixture(autouse=True)
def _chosen_for_one_test() -> Iterator[None]:
    yield
    use_events(None)


def eventful(colour: Colour) -> None:
    """Run through a first chunk, a retry and a pause."""
    tries: list[int] = []

    def node(state: State) -> State:
        tries.append(1)
        if len(tries) == 1:
            (run,) = get_config()["callbacks"].on_chat_model_start({"name": "m"}, [["hi"]])
            run.on_llm_new_token("a")
            run.on_llm_end(None)
            raise ConnectionError("try again")
        return {"xs": [interrupt("?")]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", node, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "a")
    colour.invoke(graph.compile(**saving()), {"xs": []}, THREAD)


def span_events(trace: Trace) -> list[str]:
    found = [event for span in trace.ended for event in span.events]
    return [event.name for event in sorted(found, key=lambda event: event.timestamp)]


def told(records: Records) -> list[str]:
    return [name for name in records.names if name in RECORDS]


def test_both_by_default(records: Records, trace: Trace, colour: Colour) -> None:
    """Records first, and the short list that trace-only backends can show."""
    eventful(colour)

    assert sorted(span_events(trace)) == sorted(SPAN_EVENTS)
    assert told(records) == RECORDS


@pytest.mark.exceptions_in_logs("events are asked for in logs alone")
def test_logs_leave_the_spans_without_events(
    records: Records, trace: Trace, colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is read when it matters, so a process that is configured late is too."""
    monkeypatch.setenv("TRACEGRAPH_EVENTS", "logs")
    eventful(colour)

    assert span_events(trace) == []
    assert told(records) == RECORDS


def test_logs_without_a_logger_provider_lose_nothing(trace: Trace, colour: Colour) -> None:
    """Where nobody takes records, span events are all there is."""
    use_events("logs")
    eventful(colour)

    assert sorted(span_events(trace)) == sorted(SPAN_EVENTS)


def test_spans_make_no_records(records: Records, trace: Trace, colour: Colour) -> None:
    """Not one, of whatever kind."""
    use_events("spans")
    eventful(colour)

    assert sorted(span_events(trace)) == sorted(SPAN_EVENTS)
    assert records.names == []


@pytest.mark.exceptions_in_logs("events are asked for in logs alone")
def test_the_standard_variable_moves_exceptions_alone(
    records: Records, trace: Trace, colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``logs`` takes exceptions off the spans, ``logs/dup`` is what there is anyway."""
    monkeypatch.setenv("OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN", "logs")
    eventful(colour)

    assert sorted(span_events(trace)) == sorted(set(SPAN_EVENTS) - {"exception"})
    assert records.one("task.retry").attributes["exception.message"] == "try again"

    trace.ended.clear()
    monkeypatch.setenv("OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN", "logs/dup")
    eventful(colour)
    assert sorted(span_events(trace)) == sorted(SPAN_EVENTS)


def test_an_unknown_word_is_refused_in_code_and_complained_of_once_in_the_environment(
    records: Records, trace: Trace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A typo in a variable must not take a run down."""
    with pytest.raises(InvalidInputError, match="events is 'both'; known: logs, dup, spans"):
        use_events("both")  # type: ignore[arg-type]

    monkeypatch.setenv("TRACEGRAPH_EVENTS", "both")
    monkeypatch.setattr(mirroring._Choice, "refused", None)
    with caplog.at_level(logging.WARNING, "tracegraph.telemetry"):
        for _ in range(2):
            SYNC.invoke(chain(a=says("a")), {"xs": []})
    assert [record.getMessage() for record in caplog.records] == [
        "TRACEGRAPH_EVENTS is 'both'; known: logs, dup, spans. It is taken as dup"
    ]
    assert records.names == ["run.started", "run.ended"] * 2
