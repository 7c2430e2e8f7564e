"""Hand-made events through a SpanObserver: which spans come out, and with what on them."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any, get_args

import pytest
from event_script import ROOT, Script, exceptions
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, StatusCode

from tracegraph import events as e
from tracegraph.errors import GraphInterrupt, GraphRecursionError, ParentCommand
from tracegraph.telemetry import semconv
from tracegraph.telemetry.options import DEFAULT_OPTIONS, TelemetryOptions, use_options
from tracegraph.telemetry.spans import SpanObserver
from tracegraph.types import Command, Interrupt


def test_every_kind_of_event_is_either_handled_or_ignored_on_purpose() -> None:
    """The dispatch table and the list of ignored kinds together are the closed union, without overlap."""
    union = set(get_args(e.Event))

    assert SpanObserver.handlers.keys() | SpanObserver.ignored == union
    assert not SpanObserver.handlers.keys() & SpanObserver.ignored
    assert SpanObserver.wants == e.kinds(*SpanObserver.handlers)


def test_single_task_step_makes_one_span_below_the_run(provider: TracerProvider, recorder: Any) -> None:
    """A linear graph is the run's span and one span a node; the engine decides about superstep spans."""
    s = Script(provider)

    for name in ("a", "b"):
        s.send(s.step(), s.task(name), s.task_ended(name), s.step_ended())
    s.send(s.run_ended())

    assert recorder.edges() == [(None, "invoke_workflow"), ("invoke_workflow", "run_step a"), ("invoke_workflow", "run_step b")]
    assert not recorder.open


def test_run_span_carries_name_thread_and_run_id(provider: TracerProvider, recorder: Any) -> None:
    """The name is in the span's name only if the graph was given one; the thread is the conversation."""
    s = Script(provider, name="triage", workflow_name="triage", thread_id="t-1", durability="sync", tags=["x"])
    s.send(s.run_ended())

    run = recorder.one("invoke_workflow triage")
    assert run.kind is SpanKind.INTERNAL
    assert dict(run.attributes) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "triage",
        "gen_ai.conversation.id": "t-1",
        "tracegraph.run.id": str(ROOT),
        "tracegraph.checkpoint.ns": "",
        "tracegraph.durability": "sync",
        "tracegraph.run.tags": ("x",),
        "tracegraph.run.status": "completed",
    }
    assert run.instrumentation_scope.name == "tracegraph"
    assert run.instrumentation_scope.schema_url == semconv.SCHEMA_URL
    assert run.status.status_code is StatusCode.UNSET


def test_graph_without_a_name_has_no_workflow_name(provider: TracerProvider, recorder: Any) -> None:
    """A default class name is no workflow name: it would put every graph of the world under one name."""
    s = Script(provider)
    s.send(s.run_ended())

    assert semconv.WORKFLOW_NAME not in recorder.one("invoke_workflow").attributes


def test_task_span_carries_identity_position_and_time_in_the_queue(provider: TracerProvider, recorder: Any) -> None:
    """What is known at the start is passed at the start, where samplers see it."""
    s = Script(provider, thread_id="t-1")
    task = s.task("grade", step=3)
    end = s.task_ended("grade")
    s.send(s.step(3), task, end, s.run_ended())

    span = recorder.one("run_step grade")
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "run_step",
        "gen_ai.step.name": "grade",
        "gen_ai.conversation.id": "t-1",
        "tracegraph.task.id": "id-grade",
        "tracegraph.task.path": "~__pregel_pull, grade",
        "tracegraph.task.trigger": ("branch:to:grade",),
        "tracegraph.task.queued_ms": 2.5,
        "tracegraph.task.status": "completed",
        "tracegraph.superstep": 3,
        "tracegraph.checkpoint.ns": "",
    }
    assert (span.start_time, span.end_time) == (task.at_ns, end.at_ns)
    assert span.status.status_code is StatusCode.UNSET


def test_superstep_with_a_span_is_the_parent_of_its_tasks(provider: TracerProvider, recorder: Any) -> None:
    """A fan-out hangs below its superstep, which says how long its commit took."""
    s = Script(provider)
    s.send(s.step(2, tasks=2, has_span=True), s.task("a"), s.task("b"), s.task_ended("a"), s.task_ended("b"), s.step_ended(2))
    s.send(s.run_ended())

    assert recorder.edges() == [
        (None, "invoke_workflow"), ("invoke_workflow", "superstep"), ("superstep", "run_step a"), ("superstep", "run_step b"),
    ]  # fmt: skip
    step = recorder.one("superstep").attributes
    assert (step["tracegraph.superstep"], step["tracegraph.superstep.tasks"]) == (2, 2)
    assert step["tracegraph.superstep.commit_ms"] == 1.0
    assert (step["tracegraph.checkpoint.parent_id"], step["tracegraph.checkpoint.id"]) == ("cp-0", "cp-1")


def test_trace_beyond_its_budget_has_no_more_superstep_spans(provider: TracerProvider, recorder: Any) -> None:
    """Supersteps give way first, since the tasks' spans say the step too; the root says how many did."""
    use_options(TelemetryOptions(span_budget=20))
    try:
        s = Script(provider)
    finally:
        use_options(DEFAULT_OPTIONS)
    for number in range(1, 13):
        s.send(s.step(number, has_span=True), s.task("a", step=number), s.task_ended("a"), s.step_ended(number))
    s.send(s.run_ended())

    parents = [recorder.parent_of(span).name for span in recorder.named("run_step a")]
    assert parents == ["superstep"] * 9 + ["trace part"] * 3
    assert [span.attributes["tracegraph.superstep"] for span in recorder.named("run_step a")] == list(range(1, 13))
    assert recorder.one("invoke_workflow").attributes["tracegraph.supersteps.collapsed"] == 3


def test_hidden_task_has_no_span(provider: TracerProvider, recorder: Any) -> None:
    """The start node is announced like any other task, but is nobody's step."""
    s = Script(provider)
    s.send(s.task("__start__", is_hidden=True), s.task_ended("__start__", is_hidden=True), s.run_ended())

    assert recorder.edges() == [(None, "invoke_workflow")]


def test_task_made_by_a_send_links_to_the_task_that_sent_it(provider: TracerProvider, recorder: Any) -> None:
    """The producer ran in the superstep before; its span has ended, the link still finds it."""
    s = Script(provider)
    s.send(s.step(1), s.task("plan"), s.task_ended("plan"), s.step_ended(1), s.step(2))
    s.send(
        s.task("work", path=("__pregel_push", 0, False), triggers=("__pregel_push",), producer_id="id-plan"), s.task_ended("work")
    )
    s.send(s.run_ended())

    work, plan = recorder.one("run_step work"), recorder.one("run_step plan")
    assert [(link.context.span_id, dict(link.attributes)) for link in work.links] == [
        (plan.context.span_id, {"tracegraph.link": "producer"})
    ]
    assert work.attributes["tracegraph.task.path"] == "~__pregel_push, 0000000000, 0000000000"


def test_producer_of_an_earlier_run_is_named_but_not_linked(provider: TracerProvider, recorder: Any) -> None:
    """After a resume the sender's span is in another trace; a guessed link would be worse than none."""
    s = Script(provider)
    s.send(s.step(), s.task("work", producer_id="gone"), s.task_ended("work"), s.run_ended())

    work = recorder.one("run_step work")
    assert work.attributes["tracegraph.task.producer_id"] == "gone"
    assert not work.links


def test_retried_task_has_a_span_per_attempt_and_is_no_error_itself(provider: TracerProvider, recorder: Any) -> None:
    """A failed attempt is ERROR with its exception; the step that succeeded in the end is not."""
    s = Script(provider)
    s.send(s.step(), s.task(has_attempts=True), s.attempt(1), s.attempt_ended(1, ConnectionError("down"), will_retry=True))
    s.send(s.attempt(2), s.attempt_ended(2), s.task_ended(), s.run_ended())

    first, second = recorder.named("attempt")
    assert [a.attributes["tracegraph.attempt.number"] for a in (first, second)] == [1, 2]
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "down")
    assert first.attributes["error.type"] == "ConnectionError"
    assert exceptions(first) == ["ConnectionError"]
    assert second.status.status_code is StatusCode.UNSET
    step = recorder.one("run_step a")
    assert recorder.parent_of(first) is recorder.parent_of(second) is step
    assert step.status.status_code is StatusCode.UNSET
    assert not exceptions(step)
    assert step.attributes["tracegraph.task.attempts"] == 2
    (retry,) = step.events
    assert (retry.name, dict(retry.attributes)) == (
        "tracegraph.task.retry",
        {"tracegraph.attempt.number": 1, "tracegraph.retry.delay_s": 0.5, "error.type": "ConnectionError"},
    )


def test_final_failure_is_recorded_once_on_the_task_and_once_on_the_run(provider: TracerProvider, recorder: Any) -> None:
    """The last attempt is marked too, but its exception stands on the step's span only."""
    error = ConnectionError("down")
    s = Script(provider)
    s.send(s.step(), s.task(has_attempts=True), s.attempt(1), s.attempt_ended(1, error), s.task_ended("a", "failed", error))
    s.send(s.step_ended(status="stopped"), s.run_ended(ROOT, "failed", error))

    for name in ("run_step a", "invoke_workflow"):
        span = recorder.one(name)
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "down")
        assert span.attributes["error.type"] == "ConnectionError"
        assert exceptions(span) == ["ConnectionError"]
    attempt = recorder.one("attempt")
    assert attempt.status.status_code is StatusCode.ERROR
    assert not exceptions(attempt)


def test_error_handled_by_the_graph_leaves_the_run_without_an_error(provider: TracerProvider, recorder: Any) -> None:
    """The node failed for good; the run went on, and says so."""
    error = ValueError("bad")
    s = Script(provider)
    s.send(s.step(), s.task(), e.ErrorHandled(ROOT, "", 1, next(s.clock), "id-a", "a", "rescue", error))
    s.send(s.task_ended("a", "failed", error), s.run_ended())

    assert recorder.one("run_step a").attributes["tracegraph.task.error_handler"] == "rescue"
    assert recorder.one("run_step a").status.status_code is StatusCode.ERROR
    assert recorder.one("invoke_workflow").status.status_code is StatusCode.UNSET


def test_interrupt_is_no_error_and_leaves_an_event_on_the_run(provider: TracerProvider, recorder: Any) -> None:
    """A pause for a person: status Unset, no exception, the ids of the questions but not their text."""
    question = Interrupt("secret question", "int-1")
    s = Script(provider)
    s.send(s.step(), s.task(), s.task_ended("a", "interrupted", GraphInterrupt([question])))
    s.send(e.Interrupted(ROOT, "", 1, next(s.clock), "pending", (question,), "cp-9"), s.run_ended(ROOT, "interrupted"))

    assert all(span.status.status_code is StatusCode.UNSET for span in recorder.finished)
    assert recorder.one("run_step a").attributes["tracegraph.task.status"] == "interrupted"
    run = recorder.one("invoke_workflow")
    assert run.attributes["tracegraph.run.status"] == "interrupted"
    (paused,) = run.events
    assert (paused.name, dict(paused.attributes)) == (
        "tracegraph.run.interrupted",
        {
            "tracegraph.interrupt.reason": "human_input",
            "tracegraph.interrupt.id": ("int-1",),
            "tracegraph.superstep": 1,
            "tracegraph.checkpoint.id": "cp-9",
        },
    )
    assert "secret" not in str([(dict(sp.attributes), [dict(ev.attributes) for ev in sp.events]) for sp in recorder.finished])


def test_resumed_run_links_to_what_it_resumes(provider: TracerProvider, recorder: Any) -> None:
    """Links come from stored traceparents; one that cannot be read is left out."""
    s = Script(provider, is_resume=True, checkpoint_id="cp-9")
    step = "00-000000000000000000000000000000aa-00000000000000bb-01"
    root = "00-000000000000000000000000000000aa-00000000000000cc-01"
    s.send(e.Resumed(ROOT, "", 1, next(s.clock), "cp-9", ("int-1",), (step, root, "broken")), s.run_ended())

    run = recorder.one("invoke_workflow")
    assert [(link.context.trace_id, link.context.span_id) for link in run.links] == [(0xAA, 0xBB), (0xAA, 0xCC)]
    assert all(link.attributes["tracegraph.link"] == "resumed" for link in run.links)
    assert run.attributes["tracegraph.resumed_from.checkpoint.id"] == "cp-9"
    assert run.attributes["tracegraph.resumed_from.interrupt.id"] == ("int-1",)


def test_traceparent_names_tasks_and_the_root(provider: TracerProvider, recorder: Any) -> None:
    """What is stored beside an interrupt, also when the task's span has just ended."""
    s = Script(provider)
    s.send(s.step(), s.task())
    assert s.observer is not None
    while_open = s.observer.traceparent("id-a")
    s.send(s.task_ended("a", "interrupted"))

    assert s.observer.traceparent("id-a") == while_open
    assert s.observer.traceparent("nobody") is None
    root = s.observer.traceparent()
    s.send(s.run_ended())
    task, run = recorder.one("run_step a").context, recorder.one("invoke_workflow").context
    assert (
        while_open == f"00-{task.trace_id:032x}-{task.span_id:016x}-03"
        or while_open == f"00-{task.trace_id:032x}-{task.span_id:016x}-01"
    )
    assert root is not None and f"{run.span_id:016x}" in root


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("cancelled", CancelledError()),
        ("abandoned", GeneratorExit()),
        ("handed_over", ParentCommand(Command(goto="x", graph=Command.PARENT))),
        ("interrupted", GraphInterrupt()),
        ("drained", None),
    ],
)
def test_control_flow_is_never_an_error(
    provider: TracerProvider, recorder: Any, status: Any, error: BaseException | None
) -> None:
    """Stopping, leaving, pausing and jumping are told by the status attribute and the reason."""
    s = Script(provider)
    s.send(s.step(), s.task(), s.task_ended("a", "cancelled", error, reason="sibling_error"))
    s.send(s.run_ended(ROOT, status, error, reason="consumer_closed"))

    assert all(span.status.status_code is StatusCode.UNSET and not span.events for span in recorder.finished)
    assert recorder.one("run_step a").attributes["tracegraph.task.reason"] == "sibling_error"
    run = recorder.one("invoke_workflow").attributes
    assert (run["tracegraph.run.status"], run["tracegraph.run.reason"]) == (status, "consumer_closed")


def test_users_own_error_of_a_familiar_name_is_an_error(provider: TracerProvider, recorder: Any) -> None:
    """The type decides, not the name."""
    fake = type("GraphInterrupt", (Exception,), {})("mine")
    s = Script(provider)
    s.send(s.step(), s.task(), s.task_ended("a", "failed", fake), s.run_ended(ROOT, "failed", fake))

    assert recorder.one("run_step a").status.status_code is StatusCode.ERROR


def test_step_limit_is_an_error_of_the_run(provider: TracerProvider, recorder: Any) -> None:
    """The recursion error leaves the run, so the run has failed, although no task has."""
    s = Script(provider)
    s.send(s.step(), s.task(), s.task_ended(), s.run_ended(ROOT, "step_limit", GraphRecursionError("too many", limit=1)))

    run = recorder.one("invoke_workflow")
    assert run.status.status_code is StatusCode.ERROR
    assert run.attributes["tracegraph.run.status"] == "step_limit"
    assert recorder.one("run_step a").status.status_code is StatusCode.UNSET


def test_huge_error_message_is_cut(provider: TracerProvider, recorder: Any) -> None:
    """Backends drop spans with fat values; what matters stands at both ends. Bytes count, not characters."""
    s = Script(provider)
    s.send(s.step(), s.task(), s.task_ended("a", "failed", ValueError("é" * 100_000 + "end")), s.run_ended())

    span = recorder.one("run_step a")
    assert span.status.description.endswith("é... (cut here)")
    assert len(span.status.description.encode()) <= 1000
    stack = span.events[0].attributes["exception.stacktrace"]
    assert stack.startswith("ValueError: é")
    assert stack.endswith("éend\n")
    assert len(stack.encode()) <= 4000


def test_awaited_save_is_below_the_superstep_and_a_background_one_below_the_run(provider: TracerProvider, recorder: Any) -> None:
    """Who waits for the saver shows in the tree; an in-memory saver does no I/O and has no span."""

    def put(checkpoint_id: str, *, does_io: bool, is_awaited: bool) -> e.CheckpointStarted:
        return e.CheckpointStarted(ROOT, "", 1, next(s.clock), checkpoint_id, None, "loop", ("a", "b"), does_io, is_awaited)

    s = Script(provider)
    s.send(s.step(1, has_span=True), put("awaited", does_io=True, is_awaited=True), put("back", does_io=True, is_awaited=False))
    s.send(put("memory", does_io=False, is_awaited=True))
    s.send(e.CheckpointSaved(ROOT, "", 1, next(s.clock), "awaited", None, "loop", (), None), s.step_ended())
    s.send(e.CheckpointSaved(ROOT, "", 1, next(s.clock), "back", None, "loop", (), OSError("disk full")), s.run_ended())

    awaited, back = recorder.named("checkpoint put")
    assert recorder.parent_of(awaited) is recorder.one("superstep")
    assert recorder.parent_of(back) is recorder.one("invoke_workflow")
    assert awaited.attributes["tracegraph.checkpoint.changed"] == 2
    assert awaited.status.status_code is StatusCode.UNSET
    assert (back.status.status_code, exceptions(back)) == (StatusCode.ERROR, ["OSError"])


def test_superstep_lasts_until_the_save_that_it_waits_for(provider: TracerProvider, recorder: Any) -> None:
    """Its end is announced when its writes are applied, before the save; its span, and its commit, take the save in."""
    s = Script(provider)
    s.send(s.step(1, has_span=True), s.task(), s.task_ended())
    s.send(e.CheckpointStarted(ROOT, "", 1, next(s.clock), "cp-1", None, "loop", ("a",), True, True), s.step_ended())
    assert "superstep" in recorder.open.values()
    s.send(e.CheckpointSaved(ROOT, "", 1, next(s.clock), "cp-1", None, "loop", (), None), s.run_ended())

    superstep, save = recorder.one("superstep"), recorder.one("checkpoint put")
    assert superstep.end_time == save.end_time
    assert superstep.attributes["tracegraph.superstep.status"] == "completed"
    assert superstep.attributes["tracegraph.superstep.commit_ms"] == 3.0
    assert not recorder.open


def test_superstep_whose_save_nobody_sees_the_end_of_ends_with_the_run(provider: TracerProvider, recorder: Any) -> None:
    """Nothing stays open, and what was applied was applied."""
    s = Script(provider)
    s.send(s.step(1, has_span=True), s.task(), s.task_ended())
    s.send(e.CheckpointStarted(ROOT, "", 1, next(s.clock), "cp-1", None, "loop", ("a",), True, True), s.step_ended())
    s.send(s.run_ended(ROOT, "failed", KeyboardInterrupt()))

    assert not recorder.open
    assert recorder.one("superstep").attributes["tracegraph.superstep.status"] == "completed"
    assert recorder.one("checkpoint put").attributes["tracegraph.checkpoint.status"] == "unknown"


def test_cache_hit_is_a_step_of_no_length(provider: TracerProvider, recorder: Any) -> None:
    """A served task does not vanish from the trace, whether or not it was announced as started."""
    s = Script(provider)
    s.send(s.step(), s.task_ended("silent", "cached"))
    s.send(e.CacheLooked(ROOT, "", 1, next(s.clock), "id-loud", "loud", True), s.task("loud"), s.task_ended("loud", "cached"))
    s.send(
        s.task("cold"), e.CacheLooked(ROOT, "", 1, next(s.clock), "id-cold", "cold", False), s.task_ended("cold"), s.run_ended()
    )

    silent = recorder.one("run_step silent")
    assert silent.start_time == silent.end_time
    assert [recorder.one(f"run_step {n}").attributes["tracegraph.cache.hit"] for n in ("silent", "loud", "cold")] == [
        True,
        True,
        False,
    ]


def test_functional_call_is_below_its_caller(provider: TracerProvider, recorder: Any) -> None:
    """A task() call lies inside the task that made it, not beside it."""
    s = Script(provider)
    s.send(s.step(), s.task("main"), s.task("sub", caller_id="id-main"), s.task_ended("sub"), s.task_ended("main"), s.run_ended())

    assert recorder.parent_of(recorder.one("run_step sub")) is recorder.one("run_step main")


def test_drain_and_starved_join_are_events_of_the_run(provider: TracerProvider, recorder: Any) -> None:
    """Both are rare and explain why a run ended where it did."""
    s = Script(provider)
    s.send(e.Drained(ROOT, "", 1, next(s.clock), "shutdown", ("b",)))
    s.send(e.JoinStarved(ROOT, "", 1, next(s.clock), "join:a+b:c", "c", ("b",)))
    s.send(e.ObserverFailed(ROOT, "", 1, next(s.clock), "MyHandler", ValueError(), "TaskStarted"), s.run_ended(ROOT, "drained"))

    run = recorder.one("invoke_workflow")
    assert [event.name for event in run.events] == ["tracegraph.run.drained", "tracegraph.join.starved"]
    assert run.events[1].attributes["tracegraph.join.waiting_for"] == ("b",)
    assert run.attributes["tracegraph.run.reason"] == "shutdown"
    assert run.attributes["tracegraph.observers.failed"] == ("MyHandler",)
