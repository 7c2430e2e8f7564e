"""The engine fed by hand: the report is the clock, and a decision says all that follows."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypedDict, TypeVar
from uuid import UUID

import pytest

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.drivers.body import Body
from tracegraph.engine.actions import (
    Action,
    CancelTask,
    Decision,
    Finish,
    ResolveCall,
    RunTask,
    SaveCheckpoint,
    SaveWrites,
    TimeOut,
    WakeAt,
)
from tracegraph.engine.engine import Engine
from tracegraph.engine.identity import interrupt_id, task_namespace
from tracegraph.engine.node import Node
from tracegraph.engine.reports import (
    CloseRequested,
    SaveEnded,
    TaskAborted,
    TaskBegan,
    TaskCalled,
    TaskCancelled,
    TaskFailed,
    TaskHandedOver,
    TaskInterrupted,
    TaskSucceeded,
    Woke,
)
from tracegraph.engine.settings import Begin, RunSettings
from tracegraph.engine.task import Task
from tracegraph.errors import EngineBug, GraphDrained, NodeError, NodeTimeoutError, ParentCommand
from tracegraph.events import AttemptEnded, ReportIgnored, RunStarted, SuperstepEnded, TaskEnded, every_kind
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, Interrupt, RetryPolicy

AT_NS = 1_000_000_000_000
RUN_ID = UUID(int=7)
A = TypeVar("A", bound=Action)


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def only(kind: type[A], actions: Iterable[Action]) -> A:
    """Return the one action of that kind."""
    (found,) = [action for action in actions if isinstance(action, kind)]
    return found


def tasks_of(decision: Decision) -> list[Task]:
    """Return the tasks that a decision lets run."""
    return [action.task for action in decision.actions if isinstance(action, RunTask)]


def compiled(*names: str, **options: Any) -> Any:
    """Return a graph that starts the named nodes at once."""
    graph = StateGraph(State)
    for name in names:
        graph.add_node(name, lambda state: None, **options)
        graph.add_edge(START, name)
    return graph.compile()


def engine_for(app: Any, **settings: Any) -> Engine:
    """Return a checked engine for *app* that announces everything."""
    given: dict[str, Any] = {
        "run_id": RUN_ID,
        "recursion_limit": 10,
        "wants": every_kind(),
        "next_version": lambda current: 1 if current is None else current + 1,
        "new_checkpoint_id": lambda parent, step: str(UUID(int=(UUID(parent).int if parent else 0) + 1)),
        "is_checked": True,
        **settings,
    }
    return Engine(app.topology, RunSettings(**given))


def past_start(engine: Engine, begin: Begin | None = None) -> Decision:
    """Start the run, let the start node write its edges, carry out every awaited save, and return the last decision."""
    return settle(engine, engine.start(begin or Begin(input={"log": ["in"]}), AT_NS))


def settle(engine: Engine, decision: Decision) -> Decision:
    """Play the driver for the start node and for saves; return the decision in which something else is to be done."""
    while True:
        todo = [a for a in decision.actions if isinstance(a, SaveCheckpoint | SaveWrites) and a.is_awaited]
        started = [t for t in tasks_of(decision) if t.node.name == START]
        if todo:
            for action in todo:
                decision = engine.receive(SaveEnded(action.order), AT_NS)
        elif started:
            decision = succeed(engine, started[0], returned={"log": ["in"]})
        else:
            return decision


def succeed(engine: Engine, done: Task, returned: Any = None, at_ns: int = AT_NS) -> Decision:
    """Report that a task returned *returned*, written as its node writes it."""
    list(done.node.writer.write(done, returned))
    return engine.receive(TaskSucceeded(done, done.attempt, returned), at_ns)


# --- retries ----------------------------------------------------------------------------------------------------


POLICY = RetryPolicy(initial_interval=5.0, max_attempts=2, jitter=False)


def test_failed_task_is_not_run_again_before_its_timer_fires() -> None:
    """A task with attempts left asks for a timer, and for nothing else."""
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))

    decision = engine.receive(TaskFailed(a, 1, ValueError("boom"), POLICY), AT_NS)

    assert decision.actions == [WakeAt(AT_NS + 5_000_000_000)]
    assert tasks_of(engine.receive(Woke(), AT_NS + 1)) == []
    (again,) = tasks_of(engine.receive(Woke(), AT_NS + 5_000_000_000))
    assert (again, again.attempt, again.writes) == (a, 2, [])


def test_jitter_is_added_to_the_pause() -> None:
    """The driver draws the number, the engine adds it: up to a second on top of the policy's pause."""
    policy = POLICY._replace(jitter=True)
    engine = engine_for(compiled("a", retry_policy=policy))
    (a,) = tasks_of(past_start(engine))

    decision = engine.receive(TaskFailed(a, 1, ValueError(), policy, jitter=0.25), AT_NS)

    assert only(WakeAt, decision.actions).at_ns == AT_NS + 5_250_000_000


def test_recovered_task_is_no_failure() -> None:
    """The first attempt ends with its error and will be retried; the task itself ends completed."""
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))
    failed = engine.receive(TaskFailed(a, 1, ValueError("boom"), POLICY), AT_NS)
    engine.receive(Woke(), AT_NS + 6_000_000_000)

    done = succeed(engine, a)

    (attempt,) = [event for event in failed.events if isinstance(event, AttemptEnded)]
    assert (attempt.will_retry, attempt.delay_s, str(attempt.error)) == (True, 5.0, "boom")
    (ended,) = [event for event in done.events if isinstance(event, TaskEnded)]
    assert (ended.status, ended.attempts, ended.error) == ("completed", 2, None)
    assert only(Finish, done.actions).status == "completed"


def test_last_attempt_fails_the_run() -> None:
    """With no attempt left the error ends the run; the superstep stops without changing a channel."""
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))
    engine.receive(TaskFailed(a, 1, ValueError("one"), POLICY), AT_NS)
    engine.receive(Woke(), AT_NS + 6_000_000_000)

    decision = engine.receive(TaskFailed(a, 2, ValueError("two"), POLICY), AT_NS)

    finish = only(Finish, decision.actions)
    assert (finish.status, str(finish.error)) == ("failed", "two")
    assert engine.store.values["log"] == ["in"]


def test_a_report_of_an_earlier_attempt_is_ignored() -> None:
    """What a timed-out attempt says later changes nothing, and an event says that it was said."""
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))
    engine.receive(TaskFailed(a, 1, ValueError(), POLICY), AT_NS)
    engine.receive(Woke(), AT_NS + 6_000_000_000)

    late = engine.receive(TaskSucceeded(a, 1), AT_NS)

    assert late.actions == []
    assert [type(event) for event in late.events] == [ReportIgnored]


# --- siblings ---------------------------------------------------------------------------------------------------


def test_a_fatal_failure_stops_the_siblings_and_waits_for_them() -> None:
    """Running siblings are told to stop; the run ends only when all have come to rest."""
    engine = engine_for(compiled("a", "b"))
    a, b = tasks_of(past_start(engine))

    decision = engine.receive(TaskFailed(a, 1, ValueError("boom")), AT_NS)

    assert [action.task for action in decision.actions if isinstance(action, CancelTask)] == [b]
    assert not any(isinstance(action, Finish) for action in decision.actions)
    assert only(Finish, engine.receive(TaskCancelled(b, 1), AT_NS).actions).status == "failed"


def test_of_two_failures_the_first_in_task_order_is_raised() -> None:
    """Not the first to arrive: two runs of the same graph fail alike."""
    engine = engine_for(compiled("a", "b"))
    a, b = tasks_of(past_start(engine))
    engine.receive(TaskFailed(b, 1, ValueError("of b")), AT_NS)

    finish = only(Finish, engine.receive(TaskFailed(a, 1, ValueError("of a")), AT_NS).actions)

    assert [str(error) for error in finish.errors] == ["of a", "of b"]
    assert str(finish.error) == "of a"


def test_a_queued_sibling_of_a_failure_never_runs() -> None:
    """Under max_concurrency what waits for its turn is dropped."""
    engine = engine_for(compiled("a", "b"), max_concurrency=1)
    (a,) = tasks_of(past_start(engine))

    decision = engine.receive(TaskFailed(a, 1, ValueError("boom")), AT_NS)

    assert tasks_of(decision) == []
    assert only(Finish, decision.actions).status == "failed"


def test_a_sibling_waiting_for_its_retry_is_dropped() -> None:
    """Nobody waits five seconds for a step that has failed already."""
    engine = engine_for(compiled("a", "b", retry_policy=POLICY))
    a, b = tasks_of(past_start(engine))
    engine.receive(TaskFailed(a, 1, ValueError("will retry"), POLICY), AT_NS)

    decision = engine.receive(TaskFailed(b, 1, RuntimeError("final")), AT_NS)

    assert str(only(Finish, decision.actions).error) == "final"


def test_max_concurrency_is_the_engines_business() -> None:
    """At most so many tasks are handed out; each report frees a slot."""
    engine = engine_for(compiled("a", "b", "c"), max_concurrency=2)
    first = tasks_of(past_start(engine))

    (third,) = tasks_of(succeed(engine, first[0]))

    assert [t.name for t in first] == ["a", "b"]
    assert third.name == "c"


# --- interrupts -------------------------------------------------------------------------------------------------


def test_an_interrupt_ends_the_run_after_its_siblings() -> None:
    """The sibling runs on and its output shows; the checkpoint stays where it is."""
    engine = engine_for(compiled("ask", "work"))
    ask, work = tasks_of(past_start(engine))
    question = Interrupt("sure?", "id-1")
    waiting = engine.receive(TaskInterrupted(ask, 1, (question,)), AT_NS)

    finish = only(Finish, succeed(engine, work, {"log": ["work"]}).actions)

    assert not any(isinstance(action, Finish | CancelTask) for action in waiting.actions)
    assert (finish.status, finish.interrupts) == ("interrupted", (question,))
    assert finish.output == {"log": ["in", "work"]}
    assert engine.store.values["log"] == ["in"]


def test_an_answer_reaches_the_task_that_asked() -> None:
    """On resume the finished sibling is handed back, and only the asker runs again, with its answer, stored first."""
    app, saver = compiled("ask", "work"), InMemorySaver()
    address = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    first = engine_for(app, durability="sync", next_version=lambda current: saver.get_next_version(current, None))
    ask, work = tasks_of(store(first, first.start(Begin(input={"log": ["in"]}), AT_NS), saver, address))
    question = interrupt_id(task_namespace("", "ask", ask.id), 0)
    store(first, first.receive(TaskInterrupted(ask, 1, (Interrupt("sure?", question),)), AT_NS), saver, address)
    store(first, succeed(first, work, {"log": ["work"]}), saver, address)

    again = engine_for(app, durability="sync", next_version=lambda current: saver.get_next_version(current, None))
    begin = Begin(command=Command(resume="yes"), saved=saver.get_tuple(address), answers={question: "yes"})
    decision = again.start(begin, AT_NS)

    (asker,) = tasks_of(decision)
    assert (asker.id, asker.answers) == (ask.id, ("yes",))
    assert only(SaveWrites, decision.actions).task_id == ask.id
    assert [e.status for e in decision.events if isinstance(e, TaskEnded)] == ["cached"]


def store(engine: Engine, decision: Decision, saver: InMemorySaver, address: dict[str, Any]) -> Decision:
    """Carry out the saves of a decision on a real saver, play the start node, and return what is left to do."""
    while True:
        saves = [a for a in decision.actions if isinstance(a, SaveCheckpoint | SaveWrites)]
        started = [t for t in tasks_of(decision) if t.node.name == START]
        for action in saves:
            if isinstance(action, SaveCheckpoint):
                config = {"configurable": {**address["configurable"], "checkpoint_id": action.parent_id}}
                saver.put(config, action.checkpoint, action.metadata, action.new_versions)
            else:
                config = {"configurable": {**address["configurable"], "checkpoint_id": action.checkpoint_id}}
                saver.put_writes(config, action.writes, action.task_id, action.task_path)
            decision = engine.receive(SaveEnded(action.order), AT_NS)
        if not saves and not started:
            return decision
        if not saves:
            decision = succeed(engine, started[0], {"log": ["in"]})


# --- durability -------------------------------------------------------------------------------------------------


def test_under_sync_writes_are_stored_before_the_checkpoint_that_supersedes_them() -> None:
    """The last task's in the same order as the checkpoint, before it; the next step is planned when both are stored."""
    engine = engine_for(compiled("a"), durability="sync", does_io=True)
    (a,) = tasks_of(past_start(engine))

    applied = succeed(engine, a)
    half = engine.receive(SaveEnded(only(SaveWrites, applied.actions).order), AT_NS)
    finished = engine.receive(SaveEnded(only(SaveCheckpoint, applied.actions).order), AT_NS)

    assert [type(action) for action in applied.actions] == [SaveWrites, SaveCheckpoint]
    assert half.actions == []
    assert only(Finish, finished.actions).status == "completed"


def test_under_sync_a_step_is_applied_only_when_the_writes_of_earlier_tasks_are_stored() -> None:
    """They may be under way in another thread, and the checkpoint must not overtake them."""
    engine = engine_for(compiled("a", "b"), durability="sync", does_io=True)
    a, b = tasks_of(past_start(engine))

    first, second = succeed(engine, a), succeed(engine, b)
    applied = engine.receive(SaveEnded(only(SaveWrites, first.actions).order), AT_NS)

    assert [type(action) for action in second.actions] == [SaveWrites]
    assert applied.actions == []
    applied = engine.receive(SaveEnded(only(SaveWrites, second.actions).order), AT_NS)
    assert [type(action) for action in applied.actions] == [SaveCheckpoint]


def test_under_async_nothing_waits_for_saves() -> None:
    """Order numbers say in which order the driver stores what it is given."""
    engine = engine_for(compiled("a"), durability="async", does_io=True)
    (a,) = tasks_of(past_start(engine))

    decision = succeed(engine, a)

    kinds = [type(action) for action in decision.actions]
    assert kinds == [SaveWrites, SaveCheckpoint, Finish]
    saves = [a for a in decision.actions if isinstance(a, SaveWrites | SaveCheckpoint)]
    assert saves[0].order < saves[1].order


def test_under_exit_one_checkpoint_is_stored_at_the_end() -> None:
    """Its parent is what the run began with, its id that of the last superstep."""
    engine = engine_for(compiled("a"), durability="exit")
    (a,) = tasks_of(past_start(engine))

    decision = succeed(engine, a, {"log": ["a"]})

    saved = only(SaveCheckpoint, decision.actions)
    assert (saved.parent_id, saved.metadata["step"]) == (None, 1)
    assert saved.checkpoint["channel_values"]["log"] == ["in", "a"]


def test_a_save_that_fails_ends_the_run_with_its_error() -> None:
    """A run whose state cannot be stored must not go on as if it were."""
    engine = engine_for(compiled("a"), durability="async")
    first = engine.start(Begin(input={"log": ["in"]}), AT_NS)

    decision = engine.receive(SaveEnded(only(SaveCheckpoint, first.actions).order, OSError("disk full")), AT_NS)

    finish = only(Finish, decision.actions)
    assert (finish.status, str(finish.error)) == ("failed", "disk full")


# --- calls ------------------------------------------------------------------------------------------------------


@task
def helper(x: int) -> int:
    """Stand for a called function."""
    return x


def called(caller: Task, index: int, *args: Any) -> TaskCalled:
    """Return the report of a call."""
    node = Node(name="helper", triggers=("__pregel_push",), reads=(), body=Body.of(len), writer=caller.node.writer)
    return TaskCalled(caller, caller.attempt, index, node, (len, args, {}))


def test_a_superstep_waits_for_called_tasks() -> None:
    """Awaited or not: the caller's return alone does not end the step."""
    engine = engine_for(compiled("a"))
    (a,) = tasks_of(past_start(engine))
    (child,) = tasks_of(engine.receive(called(a, 0, "x"), AT_NS))

    returned = succeed(engine, a)
    finished = engine.receive(TaskSucceeded(child, 1, 42), AT_NS)

    assert not any(isinstance(action, Finish) for action in returned.actions)
    assert [type(action) for action in finished.actions] == [ResolveCall, Finish]
    assert child.result == 42


def test_a_waiting_caller_holds_no_slot() -> None:
    """With max_concurrency=1 a called task runs while its caller waits for it."""
    engine = engine_for(compiled("a"), max_concurrency=1)
    (a,) = tasks_of(past_start(engine))

    decision = engine.receive(called(a, 0), AT_NS)

    assert [t.name for t in tasks_of(decision)] == ["helper"]


def test_a_retried_caller_finds_the_children_that_finished() -> None:
    """Call numbers start anew with each attempt, so the same call has the same id; one that had not finished runs again."""
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))
    (first,) = tasks_of(engine.receive(called(a, 0), AT_NS))
    (second,) = tasks_of(engine.receive(called(a, 1), AT_NS))
    engine.receive(TaskSucceeded(first, 1, "kept"), AT_NS)
    failed = engine.receive(TaskFailed(a, 1, ValueError(), POLICY), AT_NS)
    engine.receive(TaskCancelled(second, 1), AT_NS)
    engine.receive(Woke(), AT_NS + 6_000_000_000)

    kept, renewed = engine.receive(report := called(a, 0), AT_NS), engine.receive(called(a, 1), AT_NS)

    assert only(CancelTask, failed.actions).task is second
    assert only(ResolveCall, kept.actions).task is report.child is first
    assert [t.id for t in tasks_of(renewed)] == [second.id]


def test_a_task_that_waits_for_its_retry_holds_no_place() -> None:
    engine = engine_for(compiled("a", "b", retry_policy=POLICY), max_concurrency=1)
    (first,) = tasks_of(past_start(engine))

    decision = engine.receive(TaskFailed(first, 1, ValueError(), POLICY), AT_NS)

    assert [task.name for task in tasks_of(decision)] == ["b"]


def test_a_retry_waits_for_what_the_attempt_before_it_called() -> None:
    """A thread cannot be stopped, and what it does is done: its result counts for the next attempt."""
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))
    (child,) = tasks_of(engine.receive(called(a, 0), AT_NS))
    engine.receive(TaskFailed(a, 1, ValueError(), POLICY), AT_NS)

    early = engine.receive(Woke(), AT_NS + 6_000_000_000)
    ended = engine.receive(TaskSucceeded(child, 1, "done"), AT_NS + 7_000_000_000)
    woken = engine.receive(Woke(), only(WakeAt, ended.actions).at_ns)
    engine.receive(report := called(a, 0), AT_NS)

    assert (tasks_of(early), tasks_of(woken)) == ([], [a])
    assert (report.child, child.status) == (child, "completed")


def test_what_a_failed_attempt_called_is_not_retried() -> None:
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))
    (child,) = tasks_of(engine.receive(called(a, 0), AT_NS))
    engine.receive(TaskFailed(a, 1, ValueError(), POLICY), AT_NS)
    engine.receive(TaskFailed(child, 1, ValueError(), POLICY), AT_NS)

    assert child.status == "failed"


def test_a_call_of_an_attempt_that_is_over_is_refused() -> None:
    """Its future is cancelled at once, so nobody waits for ever."""
    engine = engine_for(compiled("a", retry_policy=POLICY))
    (a,) = tasks_of(past_start(engine))
    engine.receive(TaskFailed(a, 1, ValueError(), POLICY), AT_NS)

    decision = engine.receive(TaskCalled(a, 1, 0, called(a, 0).node, (len, (), {})), AT_NS)

    assert only(ResolveCall, decision.actions).task.status == "cancelled"


def test_a_failing_child_fails_nobody_by_itself() -> None:
    """Its error goes to the future; whether the caller fails is the caller's decision."""
    engine = engine_for(compiled("a"))
    (a,) = tasks_of(past_start(engine))
    (child,) = tasks_of(engine.receive(called(a, 0), AT_NS))

    decision = engine.receive(TaskFailed(child, 1, ValueError("boom")), AT_NS)

    assert [type(action) for action in decision.actions] == [ResolveCall]
    assert only(Finish, succeed(engine, a).actions).status == "completed"


# --- handlers, hand-over, limits, closing -----------------------------------------------------------------------


def test_an_error_handler_runs_in_the_same_superstep() -> None:
    """The failed task's input goes to its handler; the failure is not fatal."""
    graph = StateGraph(State)
    graph.add_node("a", lambda state: None, error_handler=lambda state, error: None)
    graph.add_edge(START, "a")
    engine = engine_for(graph.compile())
    (a,) = tasks_of(past_start(engine))

    (handler,) = tasks_of(engine.receive(TaskFailed(a, 1, ValueError("boom")), AT_NS))

    assert isinstance(handler.handles, NodeError)
    assert (handler.handles.node, str(handler.handles.error), handler.step) == ("a", "boom", a.step)
    assert only(Finish, succeed(engine, handler, {"log": ["saved"]}).actions).output == {"log": ["in", "saved"]}


def test_a_command_for_the_parent_ends_the_run_without_failure() -> None:
    """Nothing of this graph's superstep is applied; the command goes up."""
    engine = engine_for(compiled("a"))
    (a,) = tasks_of(past_start(engine))
    handed = ParentCommand(Command(graph=Command.PARENT, goto="x"))

    finish = only(Finish, engine.receive(TaskHandedOver(a, 1, handed), AT_NS).actions)

    assert (finish.status, finish.error) == ("handed_over", handed)


def test_an_attempt_out_of_time_is_abandoned_and_its_late_report_ignored() -> None:
    """The driver is told which attempt to give up, with the error to report."""

    async def slow(state: State) -> None:
        """Stand for a slow node."""

    graph = StateGraph(State)
    graph.add_node("a", slow, timeout=2.0)
    graph.add_edge(START, "a")
    engine = engine_for(graph.compile())
    (a,) = tasks_of(past_start(engine))

    decision = engine.receive(TaskBegan(a, 1), AT_NS)
    early = engine.receive(Woke(), AT_NS + 1_000_000_000)
    due = engine.receive(Woke(), AT_NS + 2_500_000_000)

    assert only(WakeAt, decision.actions).at_ns == AT_NS + 2_000_000_000
    assert early.actions == [WakeAt(AT_NS + 2_000_000_000)]
    order = only(TimeOut, due.actions)
    assert isinstance(order.error, NodeTimeoutError)
    assert (order.task, order.attempt, order.error.elapsed) == (a, 1, 2.5)


def test_drain_lets_the_step_finish_and_stops_before_the_next() -> None:
    """The tasks that would have run next are named by the error's event, and the thread can go on."""
    graph = StateGraph(State)
    for name in ("a", "b"):
        graph.add_node(name, lambda state: None)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    engine = engine_for(graph.compile())
    (a,) = tasks_of(past_start(engine))
    engine.drain("deploy")

    finish = only(Finish, succeed(engine, a).actions)

    assert finish.status == "drained"
    assert isinstance(finish.error, GraphDrained)


def test_closing_ends_every_open_task_at_once() -> None:
    """One decision stops the bodies, announces their ends and finishes the run; later reports change nothing."""
    engine = engine_for(compiled("a", "b"))
    a, b = tasks_of(past_start(engine))
    succeed(engine, a)

    decision = engine.receive(CloseRequested("abandoned", "consumer_closed"), AT_NS)

    assert only(CancelTask, decision.actions).task is b
    assert only(Finish, decision.actions).status == "abandoned"
    assert [(e.task_id, e.status, e.reason) for e in decision.events if isinstance(e, TaskEnded)] == [
        (b.id, "abandoned", "consumer_closed")
    ]
    assert [e.status for e in decision.events if isinstance(e, SuperstepEnded)] == ["stopped"]
    assert engine.receive(TaskSucceeded(b, 1), AT_NS).actions == []


def test_a_base_exception_takes_the_run_down_and_records_nothing() -> None:
    """No ERROR write: the task is as if it had never run."""
    engine = engine_for(compiled("a"), durability="async")
    (a,) = tasks_of(past_start(engine))

    decision = engine.receive(TaskAborted(a, 1, KeyboardInterrupt()), AT_NS)

    assert [type(action) for action in decision.actions] == [Finish]
    assert only(Finish, decision.actions).status == "cancelled"


def test_nothing_is_announced_that_nobody_wants() -> None:
    """Events are built only for listeners."""
    engine = engine_for(compiled("a"), wants=RunStarted.bit)
    decision = past_start(engine)
    (a,) = tasks_of(decision)

    assert only(RunTask, decision.actions).started == ()
    assert succeed(engine, a).events == []


def test_a_broken_invariant_names_the_last_reports() -> None:
    """Our own faults come out loud, with what led to them."""
    engine = engine_for(compiled("a", "b"))
    a, _ = tasks_of(past_start(engine))
    engine.running = 5

    with pytest.raises(EngineBug, match="tasks are at work") as failure:
        succeed(engine, a)

    assert "TaskSucceeded" in str(failure.value)


def test_an_engine_starts_once() -> None:
    """A run is one use of an engine."""
    engine = engine_for(compiled("a"))
    past_start(engine)

    with pytest.raises(EngineBug, match="only once"):
        engine.start(Begin(input={}), AT_NS)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_writes_are_merged_in_task_order(order: Sequence[int]) -> None:
    """Whatever order reports come in, a reducer that does not commute gives one value."""
    engine = engine_for(compiled("a", "b", "c"))
    tasks = tasks_of(past_start(engine))

    decisions = [succeed(engine, tasks[position], {"log": [tasks[position].name]}) for position in order]

    assert only(Finish, decisions[-1].actions).output == {"log": ["in", "a", "b", "c"]}
