"""What channels do in supersteps: told what was consumed, left alone when nothing changes, shown to path functions."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from by_hand import engine_for, only, started, succeed, tasks_of
from channel_graphs import channel_graph

from tracegraph.channels import BaseChannel, EphemeralValue, LastValue, Topic, UntrackedValue
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.constants import MISSING
from tracegraph.engine.actions import Finish
from tracegraph.errors import EmptyChannelError
from tracegraph.graph import END, START, StateGraph
from tracegraph.pregel import NodeBuilder
from tracegraph.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    scratch: Annotated[int, UntrackedValue]


class Ticket(BaseChannel[int, int, int]):
    """A channel of a user's own, in object form: a value that whoever it runs uses up."""

    def __init__(self) -> None:
        super().__init__(int)
        self.value: Any = MISSING
        self.idle = 0

    ValueType = UpdateType = property(lambda self: int)

    def update(self, values: Any) -> bool:
        """Take the last write; count the supersteps without one."""
        if not values:
            self.idle += 1
            return False
        self.value = values[-1]
        return True

    def get(self) -> int:
        """Return the value."""
        if self.value is MISSING:
            raise EmptyChannelError("used up")
        return int(self.value)

    def from_checkpoint(self, checkpoint: Any) -> Ticket:
        """Return a channel with that value."""
        made = Ticket()
        made.key, made.value = self.key, checkpoint
        return made

    def consume(self) -> bool:
        """Use the value up."""
        if self.value is MISSING:
            return False
        self.value = MISSING
        return True


def test_a_consumed_channel_is_empty_after_the_step_it_caused() -> None:
    """Also for the rest of that superstep's own bookkeeping: told that nobody wrote it, it stays empty."""
    nodes = {"use": NodeBuilder().subscribe_only("ticket").do(lambda x: x).write_to("b")}
    graph = channel_graph(nodes, channels={"ticket": Ticket(), "b": LastValue(int)}, input_channels="ticket")
    engine = engine_for(graph)
    (use,) = tasks_of(started(engine, 7))

    finish = only(Finish, succeed(engine, use, use.input).actions)

    assert finish.output == 7
    assert engine.store.values == {"b": 7}


def test_a_write_that_changes_nothing_moves_no_version() -> None:
    """Nothing follows from it: an empty list adds nothing to a topic that collects."""
    nodes = {
        "add": NodeBuilder().subscribe_only("a").do(lambda x: x).write_to(items=[], b=1),
        "react": NodeBuilder().subscribe_only("items").do(len),
    }
    channels = {"a": EphemeralValue(int), "b": LastValue(int), "items": Topic(int, accumulate=True)}
    engine = engine_for(channel_graph(nodes, channels=channels))
    (add,) = tasks_of(started(engine, 1))

    decision = succeed(engine, add, 1)

    assert only(Finish, decision.actions).status == "completed"
    assert "items" not in engine.store.versions


def test_a_path_function_sees_all_writes_of_its_node() -> None:
    """Reduced in order, before the superstep ends."""
    seen: list[Any] = []

    def twice(state: State) -> Any:
        return [Command(update={"log": ["x"]}), Command(update={"log": ["y"]})]

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("twice", twice)
    graph.add_edge(START, "twice")
    graph.add_conditional_edges("twice", lambda state: seen.append(state["log"]) or END, [END])

    graph.compile().invoke({"log": ["in"]})

    assert seen == [["in", "x", "y"]]


def test_an_untracked_channel_is_in_no_checkpoint() -> None:
    """Nodes of the run share it; a resumed run starts without."""
    seen: list[Any] = []

    def look(state: State) -> Any:
        seen.append(state.get("scratch"))
        return {"log": [interrupt("?")]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("set", lambda state: {"scratch": 5}), ("look", look)])
    graph.add_edge(START, "set")
    app = graph.compile(checkpointer=InMemorySaver())

    app.invoke({"log": []}, THREAD)
    app.invoke(Command(resume="yes"), THREAD)

    assert seen == [5, None]
    assert app.get_state(THREAD).values == {"log": ["yes"]}


def test_a_finished_sibling_that_wrote_nothing_is_not_run_again() -> None:
    """That it finished is stored all the same."""
    ran: list[str] = []
    nodes = {
        "ask": NodeBuilder().subscribe_only("a").do(lambda x: interrupt("?")).write_to("b"),
        "quiet": NodeBuilder().subscribe_only("a").do(lambda x: ran.append("quiet")),
    }
    app = channel_graph(nodes, checkpointer=InMemorySaver())
    app.invoke(1, THREAD)

    assert app.invoke(Command(resume=5), THREAD) == 5
    assert ran == ["quiet"]


def test_one_changed_channel_of_many_triggers_its_node_once() -> None:
    """Also when a step changes more channels than have nodes."""
    many = {f"c{number}": LastValue(int) for number in range(6)}
    nodes = {
        "spread": NodeBuilder().subscribe_only("a").do(lambda x: x).write_to(*many),
        "gather": NodeBuilder().subscribe_to("c0", "c5").do(lambda x: sum(x.values())).write_to("b"),
    }
    app = channel_graph(nodes, channels={"a": EphemeralValue(int), "b": LastValue(int), **many})

    assert app.invoke(2) == 4
