"""Durability "exit": everything is stored at the end, however the run ends."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from by_hand import AT_NS, engine_for, only, started, succeed, tasks_of

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.engine.actions import Finish, SaveCheckpoint, SaveWrites
from tracegraph.engine.reports import SaveEnded, TaskFailed, TaskInterrupted
from tracegraph.engine.settings import Begin
from tracegraph.errors import UnknownInterruptError
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, Interrupt, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def at_once(saver: Any = None, **nodes: Any) -> Any:
    """Return a graph that starts all *nodes* at once."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile(checkpointer=saver)


def test_a_pause_stores_the_checkpoint_and_then_its_writes() -> None:
    """The question and what siblings finished with; a finished run has no writes to store."""
    engine = engine_for(at_once(ask=lambda state: None, work=lambda state: None), durability="exit")
    ask, work = tasks_of(started(engine, {"log": ["in"]}))
    succeed(engine, work, {"log": ["work"]})

    actions = engine.receive(TaskInterrupted(ask, 1, (Interrupt("?", "id"),)), AT_NS).actions

    assert [type(action) for action in actions] == [SaveCheckpoint, SaveWrites, SaveWrites, Finish]
    assert {action.task_id for action in actions if isinstance(action, SaveWrites)} == {ask.id, work.id}
    assert only(SaveCheckpoint, actions).checkpoint["id"] == next(a.checkpoint_id for a in actions if isinstance(a, SaveWrites))


def test_a_run_that_gets_no_further_stores_its_writes_only() -> None:
    """Its checkpoint is the one it went on from."""
    saver = InMemorySaver()
    app = at_once(saver, ask=lambda state: {"log": [interrupt("?")]})
    app.invoke({"log": []}, THREAD, durability="exit")
    saved = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    engine = engine_for(app, durability="exit", next_version=lambda current: saver.get_next_version(current, None))
    (ask,) = tasks_of(engine.start(Begin(saved=saved), AT_NS))

    actions = engine.receive(TaskFailed(ask, 1, ValueError("boom")), AT_NS).actions

    assert [type(action) for action in actions] == [SaveWrites, Finish]
    assert saved is not None
    assert only(SaveWrites, actions).checkpoint_id == saved.checkpoint["id"]


def test_a_save_at_the_end_that_fails_fails_the_run_after_all() -> None:
    """The run had ended; the later end, with the saver's error, counts."""
    engine = engine_for(at_once(a=lambda state: None), durability="exit")
    (a,) = tasks_of(started(engine, {"log": []}))
    saved = only(SaveCheckpoint, succeed(engine, a).actions)

    late = engine.receive(SaveEnded(saved.order, OSError("disk full")), AT_NS)

    finish = only(Finish, late.actions)
    assert (finish.status, str(finish.error)) == ("failed", "disk full")


@pytest.mark.parametrize("is_failing", [True, False])
def test_a_stopped_run_goes_on_where_it_was(is_failing: bool) -> None:
    """After a failure or a question: what had finished is not run again."""
    ran: list[str] = []
    is_broken = is_failing

    def ask(state: State) -> Any:
        if is_broken:
            raise ValueError("later")
        return {"log": [interrupt("?") if not is_failing else "yes"]}

    def work(state: State) -> Any:
        ran.append("work")
        return {"log": ["work"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("work", work), ("ask", ask)])
    graph.add_edge(START, "work")
    app = graph.compile(checkpointer=InMemorySaver())
    if is_failing:
        with pytest.raises(ValueError, match="later"):
            app.invoke({"log": []}, THREAD, durability="exit")
    else:
        app.invoke({"log": []}, THREAD, durability="exit")
    is_broken = False

    done = app.invoke(None if is_failing else Command(resume="yes"), THREAD, durability="exit")

    assert done == {"log": ["work", "yes"]}
    assert ran == ["work"]
    assert len(list(app.get_state_history(THREAD))) == 2


def test_the_second_of_two_questions_survives_an_exit() -> None:
    """The first answer is stored beside it."""
    app = at_once(InMemorySaver(), ask=lambda state: {"log": [interrupt("a?"), interrupt("b?")]})
    app.invoke({"log": []}, THREAD, durability="exit")
    paused = app.invoke(Command(resume="A"), THREAD, durability="exit")
    stale = {str(UUID(int=1)).replace("-", ""): "stale"}

    with pytest.raises(UnknownInterruptError, match="nobody asks"):
        app.invoke(Command(resume=stale), THREAD, durability="exit")

    assert [question.value for question in paused["__interrupt__"]] == ["b?"]
    assert app.invoke(Command(resume="B"), THREAD, durability="exit") == {"log": ["A", "B"]}
