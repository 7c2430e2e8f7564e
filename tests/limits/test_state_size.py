"""compile(max_state_bytes=N): what would make a thread's state larger fails by name, and changes nothing."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from recording import recording
from small_graphs import THREAD, State, chain, says

from tracegraph.channels import DeltaChannel, UntrackedValue
from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.errors import UnserializableValueError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.errors import GraphDefinitionError, StateSizeError
from tracegraph.events import RunEnded
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Command, Overwrite, Send, interrupt

KB = "x" * 1000


class Ran:
    """Counts runs of the nodes it makes."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()

    def __call__(self, name: str, *words: Any) -> Any:
        """Return a node that writes *words*."""

        def body(state: Any) -> State:
            self.names[name] += 1
            return {"xs": list(words)}

        return body


@pytest.fixture
def ran() -> Ran:
    return Ran()


def size(value: Any) -> int:
    """Return how large a value is as savers store it."""
    return len(JsonPlusSerializer().dumps_typed(value)[1])


def checkpoints(saver: BaseCheckpointSaver) -> int:
    """Return how many checkpoints there are."""
    return len(list(saver.list(THREAD)))


def values_at_head(saver: BaseCheckpointSaver) -> dict[str, Any]:
    """Return the fields of a thread's newest checkpoint, without what is pending there."""
    found = saver.get_tuple(THREAD)
    assert found is not None
    return {name: value for name, value in found.checkpoint["channel_values"].items() if name in ("xs", "n")}


def growing(saver: BaseCheckpointSaver, ran: Ran, limit: int | None) -> Any:
    """Return a graph of three nodes, of which the second writes much; another one beside it writes little."""
    graph = StateGraph(State)
    graph.add_node("first", ran("first", "a"))
    graph.add_node("large", ran("large", KB))
    graph.add_node("small", ran("small", "b"))
    graph.add_node("last", ran("last", "c"))
    graph.add_edge(START, "first")
    graph.add_edge("first", "large")
    graph.add_edge("first", "small")
    graph.add_edge(["large", "small"], "last")
    return graph.compile(checkpointer=saver, max_state_bytes=limit)


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    """It would never let anything be."""
    with pytest.raises(GraphDefinitionError, match="max_state_bytes must be at least 1"):
        chain({"max_state_bytes": limit}, a=says())


def test_a_state_within_its_limit_is_as_any_other(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """To the byte."""
    fits = size(["a", KB, "b"]) + size(7) + size({"large", "small"})  # the join holds who came

    assert colour.invoke(growing(saver, ran, fits), {"n": 7}, THREAD) == {"xs": ["a", KB, "b", "c"], "n": 7}
    with pytest.raises(StateSizeError) as failure:
        colour.invoke(growing(saver, ran, fits - 1), {"n": 7, "xs": Overwrite([])}, {"configurable": {"thread_id": "u"}})
    assert (failure.value.size_bytes, failure.value.step) == (fits, 2)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_superstep_with_too_large_a_result_changes_nothing(
    colour: Colour, saver: BaseCheckpointSaver, ran: Ran, durability: str
) -> None:
    """What its tasks wrote is kept: with a higher limit the thread goes on without running them again."""
    with recording() as recorder, pytest.raises(StateSizeError) as failure:
        colour.invoke(growing(saver, ran, 500), {"n": 7}, THREAD, durability=durability)

    error = failure.value
    would_be = size(["a", KB, "b"])
    barrier = "join:large+small:last"
    assert (error.thread_id, error.limit, error.step) == ("t", 500, 2)
    assert list(error.channels)[:1] == ["xs"]
    assert error.channels["xs"] == would_be
    assert error.size_bytes == sum(error.channels.values())
    assert error.channels.keys() <= {"xs", "n", barrier}
    assert str(error).startswith(f"[TG208] the state of thread 't' would be {error.size_bytes} bytes after step 2, more than ")
    assert "max_state_bytes=500; the largest channels: 'xs' 1008" in str(error)
    assert [event.status for event in recorder.events if isinstance(event, RunEnded)] == ["failed"]
    assert values_at_head(saver) == {"n": 7, "xs": ["a"]}
    assert [task.result for task in growing(saver, ran, 500).get_state(THREAD).tasks] == [{"xs": [KB]}, {"xs": ["b"]}]
    assert ran.names == Counter(first=1, large=1, small=1)

    with pytest.raises(StateSizeError):
        colour.invoke(growing(saver, ran, 500), None, THREAD, durability=durability)
    assert colour.invoke(growing(saver, ran, 5000), None, THREAD)["xs"] == ["a", KB, "b", "c"]
    assert ran.names == Counter(first=1, large=1, small=1, last=1)


def test_a_state_made_smaller_goes_on_too(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """After an update the superstep is run again, from the smaller state."""
    app = chain({"checkpointer": saver, "max_state_bytes": 1500}, a=ran("a", KB), b=ran("b", KB), c=ran("c", "c"))
    with pytest.raises(StateSizeError):
        colour.invoke(app, {"xs": []}, THREAD)

    app.update_state(THREAD, {"xs": Overwrite(["short"])})

    assert app.get_state(THREAD).next == ("b",)
    assert colour.invoke(app, None, THREAD) == {"xs": ["short", KB, "c"]}


def test_too_large_an_input_is_refused_before_anything_is_written(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """A new thread stays unknown, an old one as it was."""
    app = chain({"checkpointer": saver, "max_state_bytes": 500}, a=ran("a", "a"))

    with pytest.raises(StateSizeError) as failure:
        colour.invoke(app, {"xs": [KB]}, THREAD)
    assert (failure.value.step, list(failure.value.channels)) == (-1, [START])
    assert (checkpoints(saver), ran.names) == (0, Counter())

    colour.invoke(app, {"xs": ["old"]}, THREAD)
    before, known = app.get_state(THREAD), checkpoints(saver)
    with pytest.raises(StateSizeError):
        colour.invoke(app, {"xs": [KB]}, THREAD)
    assert (app.get_state(THREAD), checkpoints(saver)) == (before, known)
    assert colour.invoke(app, {"xs": ["new"]}, THREAD) == {"xs": ["old", "a", "new", "a"]}


@pytest.mark.parametrize("as_node", ["a", "__input__"])
def test_too_large_an_update_is_refused_before_anything_is_written(saver: BaseCheckpointSaver, as_node: str) -> None:
    """The thread stays where it was."""
    app = chain({"checkpointer": saver, "max_state_bytes": 500}, a=says("a"), b=says("b"))
    app.invoke({"xs": []}, THREAD)
    before, known = app.get_state(THREAD), checkpoints(saver)

    with pytest.raises(StateSizeError) as failure:
        app.update_state(THREAD, {"xs": [KB]}, as_node=as_node)

    assert (failure.value.thread_id, failure.value.step) == ("t", 3)
    assert (app.get_state(THREAD), checkpoints(saver)) == (before, known)


def test_ending_a_superstep_from_outside_is_measured_too(saver: BaseCheckpointSaver, ran: Ran) -> None:
    """What finished would count, and is too large."""
    with pytest.raises(StateSizeError):
        growing(saver, ran, 500).invoke({"n": 7}, THREAD)

    with pytest.raises(StateSizeError):
        growing(saver, ran, 500).update_state(THREAD, None, as_node=END)

    assert values_at_head(saver) == {"n": 7, "xs": ["a"]}


def test_too_large_an_update_beside_an_answer_is_refused(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """The question stays open."""

    def asks(state: State) -> State:
        return {"xs": [interrupt("well?")]}

    app = chain({"checkpointer": saver, "max_state_bytes": 500}, asks=asks)
    colour.invoke(app, {"xs": []}, THREAD)
    before = app.get_state(THREAD)

    with pytest.raises(StateSizeError):
        colour.invoke(app, Command(resume="yes", update={"xs": [KB]}), THREAD)

    assert app.get_state(THREAD) == before
    assert colour.invoke(app, Command(resume="yes", update={"xs": ["and"]}), THREAD) == {"xs": ["and", "yes"]}


def test_a_run_without_a_saver_has_the_limit_too(colour: Colour, ran: Ran) -> None:
    """There is no thread to name, and nothing to go on from."""
    app = chain({"max_state_bytes": 1500}, a=ran("a", KB), b=ran("b", KB), c=ran("c"))

    with pytest.raises(StateSizeError, match="the run's state would be 2007 bytes after step 2") as failure:
        colour.invoke(app, {"xs": []})

    assert failure.value.thread_id is None
    assert ran.names == Counter("ab")


def test_a_graph_inside_has_a_limit_of_its_own(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """Its state is another one; the outer thread goes on with what it did."""

    def app(limit: int) -> Any:
        inner = chain({"max_state_bytes": limit}, a=ran("a", KB), b=ran("b", KB))
        return chain({"checkpointer": saver, "max_state_bytes": 100_000}, inner=inner)

    with pytest.raises(StateSizeError) as failure:
        colour.invoke(app(1500), {"xs": []}, THREAD)

    assert (failure.value.thread_id, failure.value.limit) == ("t", 1500)
    assert colour.invoke(app(2500), None, THREAD) == {"xs": [KB, KB]}
    assert ran.names == Counter("ab")


def test_an_outer_limit_is_not_that_of_the_graph_inside(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """Only what comes back to the outer state counts there."""

    class Inner(TypedDict, total=False):
        n: int
        work: list[str]

    inner = StateGraph(Inner, output_schema=State)
    inner.add_node("work", lambda state: {"work": [KB] * 5, "n": 1})
    inner.add_edge(START, "work")

    app = chain({"checkpointer": saver, "max_state_bytes": 100}, inner=inner.compile())

    assert colour.invoke(app, {"n": 0}, THREAD)["n"] == 1


def test_a_state_that_is_too_large_already_may_become_smaller(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """Of a thread whose limit was lowered: what does not make it larger is let through."""

    def trims(state: State) -> Any:
        return {"xs": Overwrite(state["xs"][1:])}

    def app(limit: int | None) -> Any:
        graph = StateGraph(State)
        graph.add_node("adds", says("a"))
        graph.add_node("trims", trims)
        graph.add_conditional_edges(START, lambda state: "trims" if state.get("n") else "adds")
        return graph.compile(checkpointer=saver, max_state_bytes=limit, interrupt_before=["adds", "trims"])

    free, limited = app(None), app(500)
    colour.invoke(free, {"xs": [KB] * 4, "n": 1}, THREAD)

    assert len(colour.invoke(limited, None, THREAD)["xs"]) == 3
    with pytest.raises(StateSizeError) as failure:
        limited.update_state(THREAD, {"xs": ["b"]}, as_node="adds")
    assert failure.value.size_bytes == size([KB, KB, KB, "b"]) + size(1)
    limited.update_state(THREAD, {"xs": Overwrite([KB])}, as_node="adds")
    assert limited.get_state(THREAD).values["xs"] == [KB]


def test_sends_are_part_of_the_state(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """They are stored with the checkpoint that they are pending at."""
    graph = StateGraph(State)
    graph.add_node("plan", says("plan"))
    graph.add_node("work", ran("work"))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("work", {"n": KB}) for _ in range(3)], ["work"])

    with pytest.raises(StateSizeError) as failure:
        colour.invoke(graph.compile(checkpointer=saver, max_state_bytes=3000), {"xs": []}, THREAD)

    assert next(iter(failure.value.channels)) == "__pregel_tasks"
    assert not ran.names


def test_what_is_not_saved_does_not_count(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """It is no part of a checkpoint."""

    class Partly(TypedDict, total=False):
        n: int
        page: Annotated[str, UntrackedValue]

    graph = StateGraph(Partly)
    graph.add_node("load", lambda state: {"page": KB, "n": 1})
    graph.add_edge(START, "load")

    assert colour.invoke(graph.compile(checkpointer=saver, max_state_bytes=100), {"n": 0}, THREAD)["n"] == 1


def test_a_value_that_cannot_be_measured_is_an_error(colour: Colour) -> None:
    """A saver in memory would have kept it; the limit needs its size, and says whose it is."""
    app = chain({"checkpointer": InMemorySaver(), "max_state_bytes": 10_000}, a=says(open))

    with pytest.raises(UnserializableValueError, match="'xs'"):
        colour.invoke(app, {"xs": []}, THREAD)

    assert app.get_state(THREAD).tasks[0].result == {"xs": [open]}
    assert chain({"checkpointer": app.checkpointer}, a=says(open)).invoke(None, THREAD) == {"xs": [open]}


def test_a_stream_shows_nothing_of_the_superstep_that_was_refused(colour: Colour, ran: Ran) -> None:
    """Its tasks' updates are what they wrote; the values are those that count."""
    seen: list[Any] = []
    app = chain({"max_state_bytes": 500}, a=ran("a", "a"), b=ran("b", KB))

    with pytest.raises(StateSizeError):
        colour.each(app, {"xs": []}, seen.append, stream_mode="values")

    assert seen == [{"xs": []}, {"xs": ["a"]}]


def test_an_async_update_is_refused_too(saver: BaseCheckpointSaver) -> None:
    """As its sync twin is."""
    app = chain({"checkpointer": saver, "max_state_bytes": 500}, a=says("a"))

    with pytest.raises(StateSizeError):
        asyncio.run(app.aupdate_state(THREAD, {"xs": [KB]}, as_node="a"))

    assert checkpoints(saver) == 0


# --- what it costs -----------------------------------------------------------------------------------------------


class CountingSerializer(JsonPlusSerializer):
    """Counts the bytes it makes."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialise and count."""
        kind, data = super().dumps_typed(obj)
        self.made += len(data)
        return kind, data


def merged(table: dict[str, Any], batch: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a table with the newest value for each key."""
    return {key: value for each in (table, *batch) for key, value in each.items()}


class Long(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    table: Annotated[dict[str, str], DeltaChannel(merged, dict)]
    n: Annotated[int, operator.add]


def looping(turns: int, **options: Any) -> Any:
    """Return a graph whose loop adds to a log, and to a table as long as its keys are new."""
    graph = StateGraph(Long)
    graph.add_node("turn", lambda state: {"log": ["x" * 20], "table": {f"k{state['n'] % 50}": "y" * 20}, "n": 1})
    graph.add_edge(START, "turn")
    graph.add_conditional_edges("turn", lambda state: "turn" if state["n"] < turns else END)
    return graph.compile(**options)


def test_what_is_measured_is_what_was_added(colour: Colour) -> None:
    """Measuring 300 states of a log that grows would make 150 times as many bytes as it has."""
    made: list[int] = []
    for limit in (None, 1_000_000):
        serde = CountingSerializer()
        app = looping(300, checkpointer=InMemorySaver(serde=serde), max_state_bytes=limit)
        colour.invoke(app, {"n": 0}, {**THREAD, "recursion_limit": 500})
        made.append(serde.made)

    final = size(["x" * 20] * 300)
    assert final < made[1] - made[0] < 5 * final


def test_what_a_delta_channel_folds_away_does_not_count(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """The same keys written again and again make no larger state."""
    table = size({f"k{at}": "y" * 20 for at in range(50)})
    log = size(["x" * 20] * 600)

    app = looping(600, checkpointer=saver, max_state_bytes=table + log + 20)

    assert len(colour.invoke(app, {"n": 0}, {**THREAD, "recursion_limit": 900, "durability": "exit"})["table"]) == 50


def test_a_refused_superstep_is_measured_as_a_whole(colour: Colour, saver: BaseCheckpointSaver) -> None:
    """So the size in the error is that of the state, not of its pieces."""
    app = looping(600, checkpointer=saver, max_state_bytes=5000)

    with pytest.raises(StateSizeError) as failure:
        colour.invoke(app, {"n": 0}, {**THREAD, "recursion_limit": 900})

    turns = failure.value.step or 0
    log, table = size(["x" * 20] * turns), size({f"k{at}": "y" * 20 for at in range(min(turns, 50))})
    assert failure.value.channels == {"log": log, "table": table, "n": size(turns)}
    assert failure.value.size_bytes == log + table + size(turns)
    assert values_at_head(saver)["n"] == turns - 1
