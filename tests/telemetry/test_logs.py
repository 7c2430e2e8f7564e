"""Lifecycle events as log records: what there is of a run, which span each belongs to, and that none carries content."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any, get_args
from uuid import UUID

import pytest
from colours import ASYNC, SYNC, Colour
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from records import Records, belongs_to
from scripted_models import ScriptedModel
from small_graphs import THREAD, SlowSaver, State, chain, parallel, saving, says
from spans import Trace

from tracegraph import events
from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.callbacks.hub import Hub
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.config import get_config
from tracegraph.errors import GraphDrained, GraphRecursionError
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import RunControl, Runtime
from tracegraph.telemetry import correlation, use_logger_provider, use_provider
from tracegraph.telemetry.logs import LogsObserver
from tracegraph.types import Command, RetryPolicy, interrupt

AT_ONCE = RetryPolicy(initial_interval=0.0, jitter=False)
SECRET = "what nobody may read"


def attributes(record: Any, *names: str) -> tuple[Any, ...]:
    return tuple(record.attributes.get(name, record.attributes.get(f"tracegraph.{name}")) for name in names)


def severities(records: Records) -> dict[str, str]:
    return {name: record.severity_text for name, record in zip(records.names, records.all, strict=True)}


def the_run(trace: Trace) -> Any:
    (span,) = (span for span in trace.ended if span.parent is None)
    return span


def the_span(trace: Trace, name: str) -> Any:
    (span,) = (span for span in trace.ended if span.name == name)
    return span


def dump(records: Records) -> str:
    return json.dumps([[r.body, dict(r.attributes), r.event_name] for r in records.all], default=repr)


def test_every_event_is_taken_or_left_on_purpose() -> None:
    """A new kind of event fails this test until somebody decides what its record is."""
    kinds = set(get_args(events.Event))

    assert set(LogsObserver.handlers) | LogsObserver.ignored == kinds
    assert not set(LogsObserver.handlers) & LogsObserver.ignored


def test_records_of_a_whole_run_in_order(records: Records, trace: Trace, colour: Colour) -> None:
    """Start, each checkpoint, end: at the time of the event, on the run's span, with the run's attributes."""
    app = chain(saving() | {"name": "triage"}, a=says("a"), b=says("b"))
    colour.invoke(app, {"xs": []}, THREAD, durability="sync")

    assert records.names == ["run.started", *["checkpoint.saved"] * 4, "run.ended"]
    run = the_run(trace)
    for record in records.all:
        assert belongs_to(record, run)
        assert record.trace_flags == run.context.trace_flags
        assert run.start_time <= record.timestamp <= run.end_time
        assert attributes(record, "gen_ai.workflow.name", "gen_ai.conversation.id", "run.id", "checkpoint.ns") == (
            "triage",
            "t",
            run.attributes["tracegraph.run.id"],
            "",
        )
    assert severities(records) == {"run.started": "INFO", "checkpoint.saved": "DEBUG", "run.ended": "INFO"}
    assert {record.severity_number for record in records.named("checkpoint.saved")} == {SeverityNumber.DEBUG}
    assert attributes(records.one("run.ended"), "run.status") == ("completed",)
    assert attributes(records.one("run.started"), "durability", "run.is_resume") == ("sync", False)
    assert set(records.scopes) == {"tracegraph"}


def test_checkpoints_say_what_they_follow_and_how_much_changed(records: Records, trace: Trace, colour: Colour) -> None:
    """Ids, parent, source, step and a count; never keys' values."""
    colour.invoke(chain(saving(), a=says(SECRET)), {"xs": [SECRET]}, THREAD, durability="sync")

    found = records.named("checkpoint.saved")
    assert [attributes(r, "checkpoint.source", "superstep") for r in found] == [("input", -1), ("loop", 0), ("loop", 1)]
    ids = [record.attributes["tracegraph.checkpoint.id"] for record in found]
    assert [record.attributes.get("tracegraph.checkpoint.parent_id") for record in found] == [None, *ids[:-1]]
    assert all(record.attributes["tracegraph.checkpoint.changed"] >= 1 for record in found)
    assert SECRET not in dump(records)


def test_a_save_that_does_io_is_told_on_its_own_span(records: Records, trace: Trace, colour: Colour, tmp_path: Any) -> None:
    """Where there is a span for the save, its record belongs to that, awaited or not."""
    colour.invoke(chain(saving(SlowSaver()), a=says("a")), {"xs": []}, THREAD, durability="async")

    puts = {span.attributes["tracegraph.checkpoint.id"]: span for span in trace.named("checkpoint put")}
    saved = records.named("checkpoint.saved")
    assert len(saved) == len(puts) == 3
    assert all(belongs_to(record, puts[record.attributes["tracegraph.checkpoint.id"]]) for record in saved)


def test_a_save_in_memory_is_told_on_its_superstep(records: Records, trace: Trace, colour: Colour) -> None:
    """The span that the checkpoint's id is an attribute of."""
    colour.invoke(parallel(saving(), a=says("a"), b=says("b")), {"xs": []}, THREAD)

    (superstep,) = trace.named("superstep")
    last = records.named("checkpoint.saved")[-1]
    assert last.attributes["tracegraph.checkpoint.id"] == superstep.attributes["tracegraph.checkpoint.id"]
    assert belongs_to(last, superstep)


def test_a_save_that_fails_is_an_error(records: Records, trace: Trace) -> None:
    """It has a name of its own, so that "saved" always means saved."""

    class Full(InMemorySaver):
        def put(self, *args: Any, **kwargs: Any) -> Any:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        SYNC.invoke(chain(saving(Full()), a=says("a")), {"xs": []}, THREAD, durability="sync")

    failed = records.named("checkpoint.failed")[0]
    assert (failed.severity_text, *attributes(failed, "error.type", "exception.message")) == ("ERROR", "OSError", "disk full")
    assert "checkpoint.saved" not in records.names
    assert severities(records)["run.ended"] == "ERROR"


def test_records_with_sqlite_on_a_file(records: Records, trace: Trace, tmp_path: Any) -> None:
    """A real database's saves, from whatever thread they are made in."""
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.db")) as saver:
        SYNC.invoke(chain({"checkpointer": saver}, a=says("a")), {"xs": []}, THREAD)

    assert sorted(records.names) == sorted(["run.started", *["checkpoint.saved"] * 3, "run.ended"])
    assert {record.trace_id for record in records.all} == trace.trace_ids


def test_a_retry_and_a_final_failure_belong_to_the_task(records: Records, trace: Trace, colour: Colour) -> None:
    """WARN for what is tried again, ERROR for what is not; both with the exception, on the span of the node."""

    def broken(state: State) -> State:
        raise ValueError("no luck")

    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=2, retry_on=ValueError)
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("broken", broken, retry_policy=policy)
    graph.add_edge(START, "broken")
    with pytest.raises(ValueError, match="no luck"):
        colour.invoke(graph.compile(), {"xs": []})

    task = the_span(trace, "run_step broken")
    retry, failed, ended = records.one("task.retry"), records.one("task.failed"), records.one("run.ended")
    assert [r.severity_text for r in (retry, failed, ended)] == ["WARN", "ERROR", "ERROR"]
    assert belongs_to(retry, task)
    assert belongs_to(failed, task)
    assert belongs_to(ended, the_run(trace))
    assert attributes(retry, "attempt.number", "retry.delay_s", "error.type") == (1, 0.0, "ValueError")
    for record in (retry, failed):
        assert attributes(record, "gen_ai.step.name", "task.id") == ("broken", task.attributes["tracegraph.task.id"])
        assert attributes(record, "exception.type", "exception.message") == ("ValueError", "no luck")
        assert 'raise ValueError("no luck")' in record.attributes["exception.stacktrace"]
    assert attributes(ended, "run.status", "error.type") == ("failed", "ValueError")


def test_an_interrupt_and_its_answer_are_no_errors(records: Records, trace: Trace, colour: Colour) -> None:
    """Ids and a reason; neither the question nor the answer."""
    app = chain(saving(), ask=lambda state: {"xs": [interrupt(SECRET)]})
    colour.invoke(app, {"xs": []}, THREAD)
    paused = records.one("run.interrupted")

    assert attributes(paused, "interrupt.reason") == ("human_input",)
    (question,) = paused.attributes["tracegraph.interrupt.id"]
    assert belongs_to(paused, the_run(trace))
    assert attributes(records.one("run.ended"), "run.status") == ("interrupted",)

    records.clear()
    colour.invoke(app, Command(resume=SECRET), THREAD)
    resumed = records.one("run.resumed")
    assert resumed.attributes["tracegraph.resumed_from.interrupt.id"] == (question,)
    assert resumed.attributes["tracegraph.resumed_from.checkpoint.id"] == paused.attributes["tracegraph.checkpoint.id"]
    assert records.one("run.started").attributes["tracegraph.run.is_resume"] is True
    assert records.one("run.started").trace_id == resumed.trace_id != paused.trace_id
    assert {record.severity_text for record in records.all} == {"INFO", "DEBUG"}
    assert SECRET not in dump(records)


def test_a_cancelled_sibling_is_told_with_its_reason(records: Records, trace: Trace) -> None:
    """It is no error, and it is the sibling's own span that it belongs to."""
    began = asyncio.Event()

    async def slow(state: State) -> State:
        began.set()
        await asyncio.Event().wait()
        return {}

    async def fails(state: State) -> State:
        await began.wait()
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        ASYNC.invoke(parallel(slow=slow, fails=fails), {"xs": []})

    cancelled = records.one("task.cancelled")
    slow_span = the_span(trace, "run_step slow")
    assert cancelled.severity_text == "INFO"
    assert belongs_to(cancelled, slow_span)
    assert attributes(cancelled, "gen_ai.step.name", "task.status") == ("slow", "cancelled")
    assert cancelled.attributes["tracegraph.task.reason"] == slow_span.attributes["tracegraph.task.reason"]
    assert belongs_to(records.one("task.failed"), the_span(trace, "run_step fails"))


def test_a_reader_that_leaves_ends_the_run_with_a_reason(records: Records, trace: Trace) -> None:
    """INFO, status and reason as on the span."""
    with chain(a=says("a"), b=says("b")).stream({"xs": []}, stream_mode="updates") as parts:
        next(iter(parts))

    ended = records.one("run.ended")
    assert (ended.severity_text, *attributes(ended, "run.status", "run.reason")) == ("INFO", "abandoned", "consumer_closed")


def test_a_drain_is_told(records: Records, trace: Trace, colour: Colour) -> None:
    """Where it stopped, and why."""
    control = RunControl()

    def stops(state: State, runtime: Runtime[Any]) -> State:
        control.request_drain("deploy")
        return {"xs": ["a"]}

    with pytest.raises(GraphDrained):
        colour.invoke(chain(saving(), a=stops, b=says("b")), {"xs": []}, THREAD, control=control)

    drained = records.one("run.drained")
    assert attributes(drained, "run.reason", "run.next_nodes") == ("deploy", ("b",))
    assert drained.severity_text == "INFO"
    assert attributes(records.one("run.ended"), "run.status") == ("drained",)


def test_the_step_limit_is_an_error(records: Records, trace: Trace, colour: Colour) -> None:
    """As it is on the span."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "a")
    with pytest.raises(GraphRecursionError):
        colour.invoke(graph.compile(), {"xs": []}, {"recursion_limit": 3})

    ended = records.one("run.ended")
    assert (ended.severity_text, *attributes(ended, "run.status")) == ("ERROR", "step_limit")


@pytest.mark.filterwarnings("ignore:node 'last' never ran")
def test_what_is_ignored_is_told(records: Records, trace: Trace, colour: Colour) -> None:
    """A key that is no channel, and a join that waits for ever: warnings."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", lambda state: {"xs": ["a"], "typo": SECRET})
    graph.add_node("b", says("b"))
    graph.add_node("last", says("last"))
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: END, ["b", END])
    graph.add_edge(["a", "b"], "last")
    colour.invoke(graph.compile(), {"xs": []})

    ignored, starved = records.one("key.ignored"), records.one("join.starved")
    assert attributes(ignored, "gen_ai.step.name", "key") == ("a", "typo")
    assert attributes(starved, "join.target", "join.waiting_for") == ("last", ("b",))
    assert {ignored.severity_text, starved.severity_text} == {"WARN"}
    assert SECRET not in dump(records)


def test_an_error_handler_is_told_on_the_failed_task(records: Records, trace: Trace, colour: Colour) -> None:
    """Who takes over from whom, and from which error."""

    def broken(state: State) -> State:
        raise ValueError("no luck")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("broken", broken, error_handler=says("instead"))
    graph.add_edge(START, "broken")
    assert colour.invoke(graph.compile(), {"xs": []})["xs"] == ["instead"]

    handled = records.one("task.error_handled")
    assert belongs_to(handled, the_span(trace, "run_step broken"))
    assert attributes(handled, "task.error_handler", "error.type") == ("__error_handler__broken", "ValueError")


def test_a_failing_handler_is_told_and_named_at_the_end(records: Records, trace: Trace) -> None:
    """The run goes on, and its last record says whose story has gaps."""

    class Broken:
        wants = events.kinds(events.TaskStarted)

        def observe(self, event: events.Event) -> None:
            raise RuntimeError("observer broke")

    logger = records.provider.get_logger("tracegraph")
    started = events.RunStarted(UUID(int=1), "", -1, 5, None, None, "g", {}, None, (), {}, None, False, None)
    hub = Hub([Broken(), LogsObserver(logger, None, None)])
    hub.publish(started)
    hub.publish(events.TaskStarted(UUID(int=1), "", 1, 6, "t", "a", ("a",), (), {}, 6, None, None, False, (), None, False))
    hub.publish(events.RunEnded(UUID(int=1), "", 1, 7, "g", "completed", None, None, (), None))

    assert records.names == ["run.started", "observer.failed", "run.ended"]
    assert attributes(records.one("observer.failed"), "observer.name", "observer.event") == ("Broken", "TaskStarted")
    assert records.one("observer.failed").severity_text == "WARN"
    assert records.one("run.ended").attributes["tracegraph.observers.failed"] == ("Broken",)


def test_a_nested_run_has_records_of_its_own(records: Records, trace: Trace, colour: Colour) -> None:
    """Each pair on the span of its own run, with its own id and namespace."""
    inner = chain({"name": "inner"}, leaf=says("leaf"))
    outer = chain({"name": "outer"}, sub=inner)
    colour.invoke(outer, {"xs": []})

    assert records.names == ["run.started", "run.started", "run.ended", "run.ended"]
    for name in ("inner", "outer"):
        span = the_span(trace, f"invoke_workflow {name}")
        own = [record for record in records.all if belongs_to(record, span)]
        assert [record.event_name for record in own] == ["tracegraph.run.started", "tracegraph.run.ended"]
        assert {record.attributes["tracegraph.run.id"] for record in own} == {span.attributes["tracegraph.run.id"]}
        assert {record.attributes["tracegraph.checkpoint.ns"] for record in own} == {span.attributes["tracegraph.checkpoint.ns"]}


def test_a_failing_call_is_told_on_its_span(records: Records, trace: Trace, colour: Colour) -> None:
    """WARN, with what the request's span says of it, and no message."""

    def node(state: State) -> State:
        (run,) = get_config()["callbacks"].on_chat_model_start({"name": "gpt"}, [[SECRET]], invocation_params={"model": "m-1"})
        run.on_llm_error(TimeoutError("provider is away"))
        ScriptedModel(SECRET).invoke([SECRET])
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    failed = records.one("gen_ai.client.operation.exception")
    (chat,) = (span for span in trace.named("chat") if span.attributes.get("error.type"))
    assert belongs_to(failed, chat)
    assert (failed.severity_text, failed.severity_number) == ("WARN", SeverityNumber.WARN)
    assert failed.attributes["gen_ai.operation.name"] == "chat"
    assert failed.attributes.get("gen_ai.request.model") == chat.attributes.get("gen_ai.request.model")
    assert attributes(failed, "error.type", "exception.message") == ("TimeoutError", "provider is away")
    assert SECRET not in dump(records)


def test_state_updates_are_told_to_those_who_ask(
    records: Records, trace: Trace, colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many keys changed and which; no values."""
    colour.invoke(chain(a=says(SECRET)), {"xs": []})
    assert "state.updated" not in records.names

    monkeypatch.setenv("TRACEGRAPH_LOG_STATE_UPDATES", "true")
    colour.invoke(chain(a=says(SECRET)), {"xs": []})
    updated = records.named("state.updated")
    assert updated
    assert attributes(updated[-1], "state.changed_key.count", "state.changed_keys", "superstep") == (1, ("xs",), 1)
    assert SECRET not in dump(records)


def test_without_traces_records_belong_to_the_span_around_the_run(records: Records, colour: Colour) -> None:
    """Where tracegraph makes no spans, the application's own are there."""
    provider = TracerProvider(shutdown_on_exit=False)
    use_provider(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    tracer = provider.get_tracer("app")
    try:
        with tracer.start_as_current_span("request") as request:
            colour.invoke(chain(saving(), a=says("a")), {"xs": []}, THREAD)
    finally:
        use_provider(None)

    assert records.names[0] == "run.started"
    assert {record.trace_id for record in records.all} == {request.get_span_context().trace_id}


def test_records_without_any_traces(records: Records, colour: Colour) -> None:
    """Logs alone: every record is there, and names no span."""
    colour.invoke(chain(saving(), a=says("a")), {"xs": []}, THREAD)

    assert records.names[0] == "run.started"
    assert records.names[-1] == "run.ended"
    assert {record.trace_id for record in records.all} == {0}
    assert {record.attributes["gen_ai.conversation.id"] for record in records.all} == {"t"}


def test_concurrent_runs_keep_their_records_apart(records: Records, trace: Trace) -> None:
    """Runs of one graph in many threads at once: each record names the trace of its own run."""
    barrier = threading.Barrier(4)

    def meet(state: State) -> State:
        barrier.wait(10)
        return {}

    app = chain(saving(), a=meet)
    threads = [threading.Thread(target=app.invoke, args=({"xs": []}, {"configurable": {"thread_id": f"t{i}"}})) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    of_run = {span.attributes["tracegraph.run.id"]: span for span in trace.named("invoke_workflow")}
    assert len(of_run) == 4
    assert len(records.named("run.ended")) == 4
    for record in records.all:
        span = of_run[record.attributes["tracegraph.run.id"]]
        assert record.trace_id == span.context.trace_id
        assert record.attributes["gen_ai.conversation.id"] == span.attributes["gen_ai.conversation.id"]


class Refusing:
    """A logger provider of the application whose loggers, or records, are refused."""

    def __init__(self, where: str) -> None:
        self.where = where

    def get_logger(self, *args: Any, **kwargs: Any) -> Any:
        if self.where == "logger":
            raise RuntimeError("logger refused")
        return self

    def emit(self, record: Any) -> None:
        raise RuntimeError("record refused")


@pytest.mark.parametrize("where", ["logger", "record"])
def test_a_broken_provider_breaks_no_run(where: str, colour: Colour, trace: Trace, caplog: pytest.LogCaptureFixture) -> None:
    """The run has its result and its spans; the failure is logged once."""
    correlation._reported.discard("runs make no log records")
    use_logger_provider(Refusing(where))  # type: ignore[arg-type]
    try:
        with caplog.at_level(logging.ERROR, "tracegraph"):
            found = colour.invoke(chain(saving(), a=says("a")), {"xs": []}, THREAD)
    finally:
        use_logger_provider(None)

    assert found["xs"] == ["a"]
    assert len(trace.named("run_step a")) == 1
    assert len([record for record in caplog.records if record.name.startswith("tracegraph")]) == 1


def test_a_handler_of_the_user_hears_no_more_for_it(records: Records, colour: Colour) -> None:
    """Records are made beside the callbacks, and change nothing that those get."""

    class Heard(BaseCallbackHandler):
        def __init__(self) -> None:
            self.names: list[str] = []

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self.names.append(kwargs["name"])

    heard = Heard()
    colour.invoke(chain({"name": "g"}, a=says("a")), {"xs": []}, {"callbacks": [heard]})

    assert heard.names == ["g", "a"]
    assert records.names == ["run.started", "run.ended"]
