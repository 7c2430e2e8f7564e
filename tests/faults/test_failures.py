"""Failures of a superstep: which one is raised, where the others are, what is written on them, and what is none."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from colours import Colour
from event_log import Recorder, assert_well_nested
from left_behind import Surroundings, recorded
from small_graphs import PATIENCE_S, THREAD, State, chain, parallel, saving, says
from spans import Trace

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import NodeError, failures_of
from tracegraph.events import ErrorHandled, RunEnded, TaskEnded
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, RetryPolicy

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, retry_on=Exception)


class Together:
    """Nodes that all fail, none before the last of them has begun."""

    def __init__(self, colour: Colour, **errors: BaseException) -> None:
        self._colour = colour
        self.have_begun = threading.Event()
        self._barrier = threading.Barrier(len(errors), self.have_begun.set, PATIENCE_S)
        self._missing = len(errors)
        self.nodes = {name: self._failing(error) for name, error in errors.items()}

    def _failing(self, error: BaseException) -> Any:
        def node(state: State) -> Any:
            self._barrier.wait()
            raise error

        async def anode(state: State) -> Any:
            self._missing -= 1
            with suppress(asyncio.CancelledError):
                if self._missing:  # the last one fails, which has the others cancelled
                    await asyncio.Event().wait()
            raise error  # of its own, whether it was cancelled or not

        return node if self._colour.name == "sync" else anode


def caught(colour: Colour, app: Any, config: Any = None, **options: Any) -> Any:
    """Return what a run raises."""
    with pytest.raises(Exception) as info:
        colour.invoke(app, {"xs": []}, config, **options)
    return info.value


# --- which failures the caller sees ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["abc", "cba"])
def test_all_failures_come_with_the_first_in_task_order(colour: Colour, order: str) -> None:
    """The one raised is the node's own, of its own type; the others are on it, and told in its notes."""
    errors = {"a": ValueError("one"), "b": KeyError("two"), "c": OSError("three")}
    app = parallel(**Together(colour, **{name: errors[name] for name in order}).nodes)

    raised = caught(colour, app)

    assert raised is errors["a"]
    assert failures_of(raised) == (errors["a"], errors["b"], errors["c"])
    assert [note for note in raised.__notes__ if "another task" in note] == [
        "another task of the same step failed too: KeyError: 'two'",
        "another task of the same step failed too: OSError: three",
    ]
    for name, error in errors.items():
        assert f"while running node {name!r} (step 1, task " in error.__notes__[0]


def test_failures_inside_come_along(colour: Colour) -> None:
    """Those of a nested run's superstep are on what it raised, which may be any of the outer superstep's."""
    inner = {"x": ValueError("inner one"), "y": ValueError("inner two")}
    together = Together(colour, **inner)
    outer = KeyError("outer")

    def a(state: State) -> Any:
        assert together.have_begun.wait(PATIENCE_S)
        raise outer

    async def aa(state: State) -> Any:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        raise outer

    first: Any = a if colour.name == "sync" else aa

    raised = caught(colour, parallel(a=first, b=parallel(**together.nodes)))

    assert failures_of(raised) == (outer, inner["x"], inner["y"])
    assert failures_of(inner["x"]) == (inner["x"], inner["y"])


def test_a_failure_alone_is_alone(colour: Colour) -> None:
    """Also on an exception that was raised before, when another task failed beside it."""
    old, other = ValueError("again and again"), KeyError("once")
    caught(colour, parallel(**Together(colour, a=old, b=other).nodes))
    assert failures_of(old) == (old, other)

    raised = caught(colour, parallel(**Together(colour, a=old).nodes))

    assert raised is old
    assert failures_of(old) == (old,)


def test_observers_see_all_failures_when_the_run_ends(colour: Colour, surroundings: Surroundings) -> None:
    """The caller is not the only one who wants to know."""
    errors = {"a": ValueError("one"), "b": KeyError("two")}
    seen: list[Any] = []

    class Watching(Recorder):
        def observe(self, event: Any) -> None:
            if isinstance(event, RunEnded):
                seen.append(failures_of(event.error or ValueError()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracegraph.pregel.launch.Hub", lambda observers=(): surroundings.hub([*observers, Watching()]))
        caught(colour, parallel(**Together(colour, **errors).nodes))

    assert seen == [(errors["a"], errors["b"])]


@dataclass(frozen=True)
class Frozen(Exception):
    """An exception that refuses new attributes."""

    word: str


class Mute(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Littered(Exception):
    """An exception with notes that are none."""

    __notes__ = "a text"  # type: ignore[assignment]  # the point


@pytest.mark.parametrize("kind", [Frozen, Mute, Littered])
@pytest.mark.parametrize("is_retried", [False, True], ids=["", "retried"])
def test_any_exception_comes_out_as_it_is(colour: Colour, kind: Any, is_retried: bool, trace: Trace) -> None:
    """Whatever its class makes of notes, attributes and its text: the run ends with it, and so do the spans."""
    errors = {"a": kind("one"), "b": kind("two")}
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in Together(colour, **errors).nodes.items():
        graph.add_node(name, body, retry_policy=AT_ONCE._replace(max_attempts=1) if is_retried else None)
        graph.add_edge(START, name)

    raised = caught(colour, graph.compile(**saving()), THREAD)

    assert raised is errors["a"]
    assert [id(error) for error in failures_of(raised)] == [id(error) for error in errors.values()]
    if kind is not Littered:
        assert "while running node 'a' (step 1, task " in raised.__notes__[0]
    assert trace.is_complete()


def test_a_reducer_may_raise_an_exception_that_refuses_notes(colour: Colour) -> None:
    """It is user code as well."""
    app = chain(a=lambda state: {"xs": Refused()})

    assert caught(colour, app) == Frozen("reducer")


class Refused:
    """What cannot be added to a list, for a reason of its own."""

    def __radd__(self, other: Any) -> Any:
        raise Frozen("reducer")


# --- fail fast ------------------------------------------------------------------------------------------------


def test_siblings_that_can_be_stopped_are_and_finished_ones_are_kept(colour: Colour, surroundings: Surroundings) -> None:
    """What has not begun never begins; a plain function cannot be stopped, and what it returns is kept as well."""
    ran: list[str] = []
    has_failed, is_running = threading.Event(), threading.Event()
    is_broken = True

    def bad(state: State) -> Any:
        ran.append("bad")
        assert is_running.wait(PATIENCE_S)
        if is_broken:
            raise ValueError("boom")
        return {"xs": ["bad"]}

    async def abad(state: State) -> Any:
        await asyncio.to_thread(is_running.wait, PATIENCE_S)
        return bad(state)

    def beside(state: State) -> Any:
        ran.append("beside")
        is_running.set()
        assert has_failed.wait(PATIENCE_S)
        return {"xs": ["beside"]}

    async def abeside(state: State) -> Any:
        ran.append("beside")
        is_running.set()
        if is_broken:
            await asyncio.Event().wait()
        return {"xs": ["beside"]}

    class Watching(Recorder):
        def observe(self, event: Any) -> None:
            if isinstance(event, TaskEnded) and event.status == "failed":
                has_failed.set()

    nodes: Any = {"bad": bad, "beside": beside} if colour.name == "sync" else {"bad": abad, "beside": abeside}
    app = parallel(saving(), **nodes, later=says("later"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracegraph.pregel.launch.Hub", lambda observers=(): surroundings.hub([*observers, Watching()]))
        raised = caught(colour, app, {**THREAD, "max_concurrency": 2})

    assert str(raised) == "boom"
    assert sorted(ran) == ["bad", "beside"]
    assert sorted(app.get_state(THREAD).next) == (["bad", "later"] if colour.name == "sync" else ["bad", "beside", "later"])
    is_broken = False
    assert sorted(colour.invoke(app, None, THREAD)["xs"]) == ["bad", "beside", "later"]
    assert ran.count("beside") == (1 if colour.name == "sync" else 2)


# --- error handlers -------------------------------------------------------------------------------------------


def test_a_handler_that_came_too_late_runs_once_when_the_run_is_resumed(colour: Colour, surroundings: Surroundings) -> None:
    """Its node failed while the run was ending: on resume the node does not run again, its handler does."""
    ran: list[str] = []
    has_failed, is_running = threading.Event(), threading.Event()
    is_broken = True

    def late(state: State) -> Any:
        ran.append("late")
        is_running.set()
        assert has_failed.wait(PATIENCE_S)
        raise ValueError("late")

    async def alate(state: State) -> Any:
        ran.append("late")
        is_running.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("late")

    def rescue(state: State, error: NodeError) -> Any:
        ran.append(f"rescue {error.node}")
        return {"xs": ["rescued"]}

    def bad(state: State) -> Any:
        ran.append("bad")
        if is_broken:
            assert is_running.wait(PATIENCE_S)
            raise KeyError("bad")
        return {"xs": ["bad"]}

    async def abad(state: State) -> Any:
        if is_broken:
            await asyncio.to_thread(is_running.wait, PATIENCE_S)
        return bad(state)

    class Watching(Recorder):
        def observe(self, event: Any) -> None:
            if isinstance(event, TaskEnded) and event.name == "bad":
                has_failed.set()

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("bad", bad if colour.name == "sync" else abad)
    graph.add_node("late", late if colour.name == "sync" else alate, error_handler=rescue)
    graph.add_edge(START, "bad")
    graph.add_edge(START, "late")
    app = graph.compile(checkpointer=InMemorySaver())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracegraph.pregel.launch.Hub", lambda observers=(): surroundings.hub([*observers, Watching()]))
        assert repr(caught(colour, app, THREAD)) == "KeyError('bad')"
    assert sorted(ran) == ["bad", "late"]

    is_broken = False
    assert sorted(colour.invoke(app, None, THREAD)["xs"]) == ["bad", "rescued"]
    assert sorted(ran) == ["bad", "bad", "late", "rescue late"]
    assert sorted(colour.invoke(app, Command(update={"xs": ["more"]}), THREAD)["xs"]) == ["bad", "more", "rescued"]
    assert sorted(ran) == ["bad", "bad", "late", "rescue late"]


def test_a_handled_failure_is_an_error_of_its_task_alone(colour: Colour, surroundings: Surroundings, trace: Trace) -> None:
    """The run goes on, and ends well."""
    error = ValueError("boom")

    def bad(state: State) -> Any:
        raise error

    def rescue(state: State, error: NodeError) -> Any:
        return {"xs": ["rescued"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("bad", bad, error_handler=rescue)
    graph.add_edge(START, "bad")
    with recorded(surroundings) as log:
        assert colour.invoke(graph.compile(), {"xs": []}) == {"xs": ["rescued"]}

    assert trace.errors == ["run_step bad"]
    assert [event.error for event in log.events if isinstance(event, ErrorHandled)] == [error]
    assert_well_nested(log.events)


def test_a_failing_clean_up_does_not_hide_what_it_was_cancelled_for() -> None:
    """It is attached to the failure that came first, though in task order it would be before it."""
    has_begun = asyncio.Event()

    async def cleans_up(state: State) -> State:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("clean-up failed")

    async def fails(state: State) -> State:
        await has_begun.wait()
        raise ValueError("first")

    with pytest.raises(ValueError, match="first") as caught:
        asyncio.run(parallel(a=cleans_up, b=fails).ainvoke({"n": 0}))
    assert [str(error) for error in failures_of(caught.value)] == ["first", "clean-up failed"]


def test_a_failing_handler_does_not_hide_the_failure_it_was_for(colour: Colour) -> None:
    def fails(state: State) -> State:
        raise ValueError("root")

    def handler(state: State, error: NodeError) -> State:
        raise KeyError("in the handler")

    graph: Any = StateGraph(State).add_node("fails", fails, error_handler=handler).add_edge(START, "fails")
    with pytest.raises(KeyError) as caught:
        colour.invoke(graph.compile(), {"n": 0})
    assert repr(caught.value.__cause__) == "ValueError('root')"
    assert [type(error) for error in failures_of(caught.value)] == [KeyError, ValueError]
