"""RunControl(max_tasks=N): a run and all runs inside it begin at most N tasks, and the thread goes on with another control."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypedDict

import pytest
from colours import ASYNC, Colour
from recording import recording
from small_graphs import PATIENCE_S, THREAD, State, chain, parallel, says

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.errors import InvalidInputError, NodeError, TaskLimitError
from tracegraph.events import RunEnded, TaskStarted
from tracegraph.func import entrypoint, task
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import RunControl
from tracegraph.types import RetryPolicy, Send


class Ran:
    """Counts which nodes ran, and makes nodes that it counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.names: Counter[str] = Counter()

    def __call__(self, name: str) -> Callable[[Any], State]:
        """Return a node that writes its name."""

        def body(state: Any) -> State:
            with self._lock:
                self.names[name] += 1
            return {"xs": [name]}

        return body

    @property
    def count(self) -> int:
        """How many ran."""
        return self.names.total()


@pytest.fixture
def ran() -> Ran:
    return Ran()


def test_a_run_within_its_limit_is_as_any_other(colour: Colour, ran: Ran) -> None:
    """The start node is no task of the user's, so two nodes are two."""
    control = RunControl(max_tasks=2)

    assert colour.invoke(chain(a=ran("a"), b=ran("b")), {"xs": []}, control=control) == {"xs": ["a", "b"]}
    assert (control.max_tasks, control.tasks_begun) == (2, 2)


def test_what_is_not_limited_is_not_counted(colour: Colour, ran: Ran) -> None:
    """A control is for stopping runs first of all."""
    control = RunControl()

    colour.invoke(chain(a=ran("a")), {"xs": []}, control=control)

    assert (control.max_tasks, control.tasks_begun) == (None, 0)


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, float("nan"), "3"])
def test_a_limit_that_is_no_positive_int_is_refused(limit: Any) -> None:
    """One below 1 would never let anything run, and no count exceeds one that is not a number."""
    with pytest.raises(InvalidInputError, match="max_tasks must be a whole number, at least 1"):
        RunControl(max_tasks=limit)


def test_nothing_of_the_superstep_that_would_exceed_it_runs(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """Two of its three tasks would be allowed, but a superstep is all or nothing; the thread goes on with a new control."""
    graph = StateGraph(State)
    for name in ("a", "b", "c", "d"):
        graph.add_node(name, ran(name))
    graph.add_edge(START, "a")
    for name in ("b", "c", "d"):
        graph.add_edge("a", name)
    app = graph.compile(checkpointer=saver)

    with recording() as recorder, pytest.raises(TaskLimitError) as failure:
        colour.invoke(app, {"xs": []}, THREAD, control=RunControl(max_tasks=3))

    error = failure.value
    assert (error.limit, error.begun, error.step, error.planned, error.nodes) == (3, 1, 2, 3, ("b", "c", "d"))
    assert str(error) == (
        "[TG207] step 2 would begin 3 more tasks ('b', 'c', 'd'), but max_tasks=3 and 1 have been begun. To go on, invoke the "
        "thread with None and a new RunControl(max_tasks=...)"
    )
    assert ran.names == Counter(a=1)
    assert [event.status for event in recorder.events if isinstance(event, RunEnded)] == ["failed"]
    assert [e.name for e in recorder.events if isinstance(e, TaskStarted) and not e.is_hidden] == ["a"]
    assert app.get_state(THREAD).next == ("b", "c", "d")

    assert colour.invoke(app, None, THREAD, control=RunControl(max_tasks=3)) == {"xs": ["a", "b", "c", "d"]}
    assert ran.names == Counter("abcd")


def test_a_used_up_control_stops_the_next_run_at_once(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """A control counts for as long as it lives."""
    app, control = chain({"checkpointer": saver}, a=ran("a"), b=ran("b")), RunControl(max_tasks=1)

    for _ in range(2):
        with pytest.raises(TaskLimitError, match=r"1 more task \('b'\)"):
            colour.invoke(app, None if ran.count else {"xs": []}, THREAD, control=control)

    assert ran.names == Counter(a=1)
    assert colour.invoke(app, None, THREAD) == {"xs": ["a", "b"]}


def test_every_send_is_a_task(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """A fan-out that ran away is stopped before it does anything."""
    graph = StateGraph(State)
    graph.add_node("plan", says("plan"))
    graph.add_node("work", ran("work"))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("work", {}) for _ in range(50)], ["work"])
    app = graph.compile(checkpointer=saver)

    with pytest.raises(TaskLimitError, match=r"begin 50 more tasks \('work'\)") as failure:
        colour.invoke(app, {"xs": []}, THREAD, control=RunControl(max_tasks=50))

    assert (failure.value.begun, ran.count) == (1, 0)
    assert len(colour.invoke(app, None, THREAD, control=RunControl(max_tasks=50))["xs"]) == 51


def test_an_endless_loop_ends(colour: Colour, ran: Ran) -> None:
    """With a recursion limit that would not have ended it."""
    graph = StateGraph(State)
    graph.add_node("turn", ran("turn"))
    graph.add_edge(START, "turn")
    graph.add_edge("turn", "turn")

    with pytest.raises(TaskLimitError):
        colour.invoke(graph.compile(), {"xs": []}, control=RunControl(max_tasks=25))

    assert ran.count == 25


# --- runs inside -------------------------------------------------------------------------------------------------


def test_nodes_of_graphs_inside_count(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """The node that runs the graph is one, its nodes are the others; what it did is kept."""
    app = chain({"checkpointer": saver}, inner=chain(a=ran("a"), b=ran("b"), c=ran("c")), last=ran("last"))

    with pytest.raises(TaskLimitError, match=r"1 more task \('c'\)"):
        colour.invoke(app, {"xs": []}, THREAD, control=RunControl(max_tasks=3))

    assert ran.names == Counter("ab")
    # Of the resumed run, the node with the graph, the third node inside and the last one are three tasks.
    assert colour.invoke(app, None, THREAD, control=RunControl(max_tasks=3))["xs"][-2:] == ["c", "last"]
    assert ran.names == Counter(["a", "b", "c", "last"])


def test_parallel_graphs_inside_share_the_count_exactly(colour: Colour, ran: Ran) -> None:
    """However they are interleaved, as many nodes begin as are allowed, and not one more."""
    side, turns, limit = 8, 10, 50

    def inner() -> Any:
        graph = StateGraph(State)
        graph.add_node("turn", ran("turn"))
        graph.add_edge(START, "turn")
        graph.add_conditional_edges("turn", lambda state: "turn" if len(state["xs"]) < turns else END)
        return graph.compile()

    app = parallel(**{f"side{at}": inner() for at in range(side)})
    control = RunControl(max_tasks=limit)

    with pytest.raises(TaskLimitError):
        colour.invoke(app, {"xs": []}, control=control)

    # A sibling that failed may have stopped what was counted but had not begun; never the other way round.
    assert control.tasks_begun <= limit
    assert side + ran.count <= control.tasks_begun


def test_threads_that_count_at_once_are_given_all_and_no_more(ran: Ran) -> None:
    """Eight runs of one control, begun at once: what they run together is what it allows."""
    control, barrier = RunControl(max_tasks=40), threading.Barrier(8)
    app = chain(**{f"n{at}": ran("n") for at in range(10)})

    def run() -> None:
        barrier.wait(PATIENCE_S)
        with pytest.raises(TaskLimitError):
            while True:
                app.invoke({"xs": []}, control=control)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert (ran.count, control.tasks_begun) == (40, 40)


def test_a_control_of_a_run_inside_lifts_no_limit(colour: Colour, ran: Ran) -> None:
    """It may be stricter, but what it allows is counted outside too."""
    inner = chain(a=ran("a"), b=ran("b"), c=ran("c"))
    own: list[RunControl] = []

    def call(state: State) -> State:
        own.append(RunControl(max_tasks=limit))
        inner.invoke({"xs": []}, control=own[-1])
        return {}

    for limit, allowed in ((100, 2), (1, 1)):
        ran.names.clear()
        outer = RunControl(max_tasks=3)
        with pytest.raises(TaskLimitError) as failure:
            colour.invoke(chain(call=call), {"xs": []}, control=outer)
        assert (failure.value.limit, ran.count, outer.tasks_begun) == (min(limit, 3), allowed, 1 + allowed)
        assert own[-1].tasks_begun == allowed


def test_a_control_of_a_run_inside_counts_that_run_alone(colour: Colour, ran: Ran) -> None:
    """Where the run around it has none."""
    inner, own = chain(a=ran("a"), b=ran("b")), RunControl(max_tasks=2)

    def call(state: State) -> Any:
        return {"xs": inner.invoke({"xs": []}, control=own)["xs"]}

    assert colour.invoke(chain(call=call, last=ran("last")), {"xs": []}) == {"xs": ["a", "b", "last"]}
    assert own.tasks_begun == 2


# --- calls of tasks ----------------------------------------------------------------------------------------------


def test_a_call_too_many_fails_the_run(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """The calls that finished are not made again when the thread goes on."""
    made: list[int] = []

    @task
    def work(at: int) -> int:
        made.append(at)
        return at

    def call(state: State) -> State:
        return {"xs": [work(at).result(PATIENCE_S) for at in range(4)]}

    app = chain({"checkpointer": saver}, call=call)

    with pytest.raises(TaskLimitError) as failure:
        colour.invoke(app, {"xs": []}, THREAD, control=RunControl(max_tasks=3))

    error = failure.value
    assert (error.limit, error.begun, error.step, error.planned, error.nodes) == (3, 3, 1, 1, ("work",))
    assert made == [0, 1]
    assert app.get_state(THREAD).next == ("call",)

    assert colour.invoke(app, None, THREAD, control=RunControl(max_tasks=3)) == {"xs": [0, 1, 2, 3]}
    assert made == [0, 1, 2, 3]


def test_a_caller_may_do_without_a_call_too_many(colour: Colour) -> None:
    """The call fails like one whose function raised; nothing of it was announced."""

    @task
    def work() -> int:
        return 1

    def call(state: State) -> State:
        total = work().result(PATIENCE_S)
        with pytest.raises(TaskLimitError):
            work().result(PATIENCE_S)
        return {"xs": [total]}

    with recording() as recorder:
        assert colour.invoke(chain(call=call), {"xs": []}, control=RunControl(max_tasks=2)) == {"xs": [1]}

    assert [e.name for e in recorder.events if isinstance(e, TaskStarted) and not e.is_hidden] == ["call", "work"]


# --- what counts -------------------------------------------------------------------------------------------------


def flaky(times: int) -> Callable[[Any], State]:
    """Return a node that fails so many times."""
    left = iter(range(times))

    def body(state: Any) -> State:
        for _ in left:
            raise ConnectionError("down")
        return {"xs": ["done"]}

    return body


QUICKLY = RetryPolicy(max_attempts=5, initial_interval=0.0, jitter=False)


def test_further_attempts_are_no_new_tasks(colour: Colour) -> None:
    """They have a limit of their own."""
    graph = StateGraph(State)
    graph.add_node("a", flaky(3), retry_policy=QUICKLY)
    graph.add_edge(START, "a")
    control = RunControl(max_tasks=1)

    assert colour.invoke(graph.compile(), {"xs": []}, control=control) == {"xs": ["done"]}
    assert control.tasks_begun == 1


def test_the_limit_is_not_tried_again_nor_handled(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """A node whose inner run met it fails at once, whatever its policies: the thread goes on from there instead."""
    handled: list[Any] = []
    tries: list[int] = []
    inner = chain(a=ran("a"), wide=parallel(b=ran("b"), c=ran("c")))

    def call(state: State) -> State:
        tries.append(1)
        return inner.invoke({"xs": []})  # type: ignore[no-any-return]

    graph = StateGraph(State)
    always = RetryPolicy(max_attempts=3, initial_interval=0.0, retry_on=Exception)
    graph.add_node("call", call, retry_policy=always, error_handler=handled.append)
    graph.add_edge(START, "call")
    app = graph.compile(checkpointer=saver)

    with pytest.raises(TaskLimitError, match="begin 2 more tasks"):
        # One is left when two would be needed, which the handler could have.
        colour.invoke(app, {"xs": []}, THREAD, control=RunControl(max_tasks=4))

    assert (len(tries), handled) == (1, [])
    # The graph inside the inner one was given what there was, and returned it with what it added.
    assert sorted(colour.invoke(app, None, THREAD)["xs"]) == ["a", "a", "b", "c"]
    assert ran.names == Counter("abc")


def test_an_error_handler_is_a_task(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """One that is not allowed leaves a thread that begins with it, and with the failure as the cause."""
    tries: list[int] = []
    handled: list[str] = []

    def fails(state: State) -> State:
        tries.append(1)
        raise ValueError("broken")

    def handler(state: State, error: NodeError) -> State:
        handled.append(str(error.error))
        return {"xs": ["handled"]}

    graph = StateGraph(State)
    graph.add_node("fails", fails, error_handler=handler)
    graph.add_edge(START, "fails")
    app = graph.compile(checkpointer=saver)

    with pytest.raises(TaskLimitError, match="__error_handler__fails") as failure:
        colour.invoke(app, {"xs": []}, THREAD, control=RunControl(max_tasks=1))
    assert isinstance(failure.value.__cause__, ValueError)
    assert not handled

    used_up = RunControl(max_tasks=1)
    colour.invoke(chain(a=says()), {}, control=used_up)
    with pytest.raises(TaskLimitError, match="__error_handler__fails"):
        colour.invoke(app, None, THREAD, control=used_up)
    assert not handled

    assert colour.invoke(app, None, THREAD, control=RunControl(max_tasks=1)) == {"xs": ["handled"]}
    assert (len(tries), len(handled)) == (1, 1)
    assert "broken" in handled[0]


def test_what_had_finished_is_not_counted_again(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """Of a superstep that failed, a resumed run begins what had not succeeded."""
    app = parallel({"checkpointer": saver}, a=ran("a"), b=ran("b"), broken=flaky(1))

    with pytest.raises(ConnectionError):
        colour.invoke(app, {"xs": []}, {**THREAD, "max_concurrency": 1})
    assert ran.names == Counter("ab")

    assert colour.invoke(app, None, THREAD, control=RunControl(max_tasks=1)) == {"xs": ["a", "b", "done"]}


def test_a_breakpoint_comes_before_the_limit(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """A run that pauses begins nothing."""
    control = RunControl(max_tasks=1)
    app = chain({"checkpointer": saver, "interrupt_before": ["b"]}, a=ran("a"), b=ran("b"))

    assert colour.invoke(app, {"xs": []}, THREAD, control=control) == {"xs": ["a"]}
    with pytest.raises(TaskLimitError):
        colour.invoke(app, None, THREAD, control=control)
    assert ran.names == Counter(a=1)


class Sum(TypedDict):
    total: Annotated[int, operator.add]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_task_of_a_thread_runs_once_however_often_the_limit_is_met(
    colour: Colour, saver: BaseCheckpointSaver, durability: str
) -> None:
    """A thread that goes on two tasks at a time gets where one run would have got."""
    graph = StateGraph(Sum)
    graph.add_node("add", lambda state: {"total": 1})
    graph.add_edge(START, "add")
    graph.add_conditional_edges("add", lambda state: "add" if state["total"] < 7 else END)
    app = graph.compile(checkpointer=saver)

    def runs() -> Iterator[Any]:
        given: Any = {"total": 0}
        while True:
            try:
                yield colour.invoke(app, given, THREAD, control=RunControl(max_tasks=2), durability=durability)
                return
            except TaskLimitError:
                given = None
                yield None

    assert list(runs()) == [None, None, None, {"total": 7}]


def test_a_stream_ends_with_the_limit_after_what_was_done(colour: Colour, ran: Ran) -> None:
    """Its reader has seen every superstep that ran."""
    seen: list[Any] = []

    with pytest.raises(TaskLimitError):
        colour.each(
            chain(a=ran("a"), b=ran("b"), c=ran("c")),
            {"xs": []},
            seen.append,
            stream_mode="updates",
            control=RunControl(max_tasks=2),
        )

    assert seen == [{"a": {"xs": ["a"]}}, {"b": {"xs": ["b"]}}]


def test_awaited_calls_are_counted_one_by_one(saver: BaseCheckpointSaver) -> None:
    """Of calls that an entrypoint makes at once, as many run as are allowed; the others when it goes on."""
    made: list[int] = []

    @task
    async def work(at: int) -> int:
        made.append(at)
        await asyncio.sleep(0)
        return at

    @entrypoint(checkpointer=saver)
    async def every(count: int) -> list[int]:
        return await asyncio.gather(*[work(at) for at in range(count)])

    with pytest.raises(TaskLimitError, match=r"1 more task \('work'\)") as failure:
        ASYNC.invoke(every, 6, THREAD, control=RunControl(max_tasks=4))

    assert failure.value.begun == 4
    assert set(made) <= {0, 1, 2}
    made_before, again = len(made), RunControl(max_tasks=7)
    assert ASYNC.invoke(every, None, THREAD, control=again) == [*range(6)]
    assert set(made) == {*range(6)}
    assert again.tasks_begun == 1 + len(made) - made_before
