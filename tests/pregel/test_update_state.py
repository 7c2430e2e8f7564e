"""Writing a thread's state from outside: which node it counts as, where it goes, what is refused."""

from __future__ import annotations

from typing import Any, TypedDict
from uuid import UUID, uuid5

import pytest
from channel_graphs import channel_graph, doubling
from colours import Colour
from updates import (
    THREAD,
    State,
    X,
    asks,
    branching,
    bulk,
    chain,
    chain_without_saver,
    enclosing,
    inner_graph,
    joined,
    says,
    update,
)

from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.constants import MISSING, TRACE
from tracegraph.errors import ConcurrentRunError, InvalidInputError, InvalidUpdateError, ParentCommand
from tracegraph.graph import END, START, StateGraph
from tracegraph.pregel import Pregel
from tracegraph.types import Command, StateUpdate, interrupt


@pytest.fixture
def done(colour: Colour) -> Any:
    """A graph of two nodes whose thread has run to its end."""
    app = chain()
    colour.invoke(app, {"log": ["in"]}, THREAD)
    return app


# --- what an update is ------------------------------------------------------------------------------------------


def test_an_update_is_a_new_checkpoint_and_says_where(colour: Colour, done: Any) -> None:
    """Its config addresses it, it follows the one it was made on, and metadata of the call stand beside it."""
    before = done.get_state(THREAD)

    made = update(colour, done, X, "a", config={**THREAD, "metadata": {"who": "me"}})

    after = done.get_state(THREAD)
    assert made == after.config
    assert after.parent_config == before.config
    assert (after.values, after.next) == ({"log": ["in", "a", "b", "x"]}, ("b",))
    assert after.metadata == {"source": "update", "step": 3, "parents": {}, "who": "me"}


def test_the_run_goes_on_behind_the_node_the_update_is_from(colour: Colour) -> None:
    """The question of that node is passed; nobody has to answer it."""
    app = chain(a=asks, b=says("b"))
    colour.invoke(app, {"log": []}, THREAD)

    update(colour, app, X, "a")

    assert app.get_state(THREAD).interrupts == ()
    assert colour.invoke(app, None, THREAD) == {"log": ["x", "b"]}


def test_an_update_is_the_result_of_the_task_it_stands_for(colour: Colour) -> None:
    """History shows it there, unless a task id was given."""
    app = chain(a=asks, b=asks)
    colour.invoke(app, {"log": []}, THREAD)
    (waiting,) = app.get_state(THREAD).tasks

    update(colour, app, X, "a")
    update(colour, app, {"log": ["y"]}, "b", task_id="11111111-1111-1111-1111-111111111111")

    at_b, at_a = list(app.get_state_history(THREAD))[1:3]
    assert [(task.id, task.result) for task in at_a.tasks] == [(waiting.id, X)]
    assert [(task.name, task.result) for task in at_b.tasks] == [("b", None)]


def test_an_update_for_which_no_task_waits_is_kept_under_an_id_of_its_own(colour: Colour, done: Any) -> None:
    """Made from the checkpoint and its place in the superstep."""
    head = done.get_state(THREAD).config

    bulk(colour, done, [StateUpdate(X, "b"), StateUpdate({"log": ["y"]}, "b")])

    base = UUID(head["configurable"]["checkpoint_id"])
    assert done.checkpointer.get_tuple(head).pending_writes == [
        (str(uuid5(base, "__interrupt__")), "log", ["x"]),
        (str(uuid5(base, "__interrupt__:1")), "log", ["y"]),
    ]


def test_an_old_record_is_not_changed_by_an_update_of_it(colour: Colour, done: Any) -> None:
    """The branch becomes the newest state; what the superstep did at the time stays as it was."""
    at_b = list(done.get_state_history(THREAD))[1]
    writes = done.checkpointer.get_tuple(at_b.config).pending_writes

    made = update(colour, done, Command(update=[("log", ["1"]), ("log", ["2"]), ("log", ["3"])]), "b", config=at_b.config)

    assert done.get_state(THREAD).config == made
    assert done.get_state(THREAD).parent_config == at_b.config
    assert done.checkpointer.get_tuple(at_b.config).pending_writes == writes


def test_a_finished_sibling_keeps_its_record(colour: Colour) -> None:
    """An update as a node that has finished replaces what it did, but not what history says it did."""
    app = joined(a=says("a"), b=asks)
    colour.invoke(app, {"log": []}, THREAD)

    update(colour, app, Command(update=[("log", ["1"]), ("log", ["2"]), ("log", ["3"])]), "a")

    newest, before = list(app.get_state_history(THREAD))[:2]
    assert newest.values == {"log": ["1", "2", "3"]}
    assert {task.name: task.result for task in before.tasks} == {"a": {"log": ["a"]}, "b": None}


def test_the_target_of_a_join_is_passed_like_any_node(colour: Colour) -> None:
    """LangGraph leaves the join standing, and runs the node again."""
    app = joined(a=says("a"), b=says("b"))
    colour.invoke(app, {"log": []}, THREAD)

    update(colour, app, X, "j")

    assert app.get_state(THREAD).next == ()
    assert app.get_state(THREAD).values == {"log": ["a", "b", "x"]}


def test_clearing_a_thread_keeps_what_a_command_brought(colour: Colour) -> None:
    """And drops where it would have led to."""
    app = chain(a=asks, b=says("b"))
    colour.invoke(app, {"log": []}, THREAD)
    colour.invoke(app, Command(update={"log": ["more"]}), THREAD)

    update(colour, app, None, END)

    assert (app.get_state(THREAD).values, app.get_state(THREAD).next) == ({"log": ["more"]}, ())


def test_a_copy_of_the_first_checkpoint_has_no_parent_either(colour: Colour, done: Any) -> None:
    """It is a sibling."""
    first = list(done.get_state_history(THREAD))[-1]

    update(colour, done, None, "__copy__", config=first.config)

    copied = done.get_state(THREAD)
    assert (copied.parent_config, copied.next) == (None, (START,))
    assert colour.invoke(done, None, THREAD) == {"log": ["in", "a", "b"]}


def test_a_low_level_graph_is_updated_as_its_only_node(colour: Colour) -> None:
    """Nobody needs to be named, even if it never ran."""
    app = channel_graph({"double": doubling()}, checkpointer=InMemorySaver(), stream_channels="b")

    update(colour, app, 5)

    assert app.get_state(THREAD).values == 5


def test_a_low_level_graph_of_several_nodes_has_no_default_before_it_ran(colour: Colour) -> None:
    """There is no start node to fall back on."""
    app = channel_graph({"one": doubling(), "two": doubling()}, checkpointer=InMemorySaver())

    with pytest.raises(InvalidUpdateError, match="no node has run"):
        update(colour, app, 5)


def test_an_update_keeps_the_trace_of_the_run_before_it(colour: Colour) -> None:
    """So that the run that goes on from there can link to it."""
    saver = InMemorySaver()
    app = chain(saver)
    colour.invoke(app, {"log": []}, THREAD)
    head = saver.get_tuple(THREAD)
    assert head is not None
    address: Any = {"configurable": {**head.config["configurable"], "checkpoint_id": None}}
    traced = {**head.checkpoint, "id": str(uuid6())}
    saver.put(address, traced, {**head.metadata, TRACE: ["00-1-2-01"]}, {})  # type: ignore[arg-type]  # copied records

    update(colour, app, X, "a")

    newest = next(iter(saver.list(address, filter={"source": "update"})))
    assert newest.metadata[TRACE] == ["00-1-2-01"]


# --- subgraphs --------------------------------------------------------------------------------------------------


def test_a_subgraph_is_updated_where_its_state_is(colour: Colour) -> None:
    """However deep; the address returned says at which checkpoints the enclosing graphs were."""
    app = enclosing(enclosing(inner_graph()))
    colour.invoke(app, {"log": []}, THREAD)
    (outer,) = app.get_state(THREAD, subgraphs=True).tasks
    (middle,) = outer.state.tasks

    made = update(colour, app, X, "ask", config=middle.state.config)["configurable"]

    assert made["checkpoint_ns"] == f"inner:{outer.id}|inner:{middle.id}"
    assert made["checkpoint_map"] == {
        "": app.get_state(THREAD).config["configurable"]["checkpoint_id"],
        f"inner:{outer.id}": outer.state.config["configurable"]["checkpoint_id"],
        made["checkpoint_ns"]: made["checkpoint_id"],
    }
    assert colour.invoke(app, None, THREAD) == {"log": ["x"]}


def test_a_checkpoint_map_addresses_a_subgraph_s_checkpoint(colour: Colour) -> None:
    """As the address that an update returned has it."""
    app = enclosing(inner_graph())
    colour.invoke(app, {"log": []}, THREAD)
    (task,) = app.get_state(THREAD).tasks
    ns = f"inner:{task.id}"
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ns}}
    made = update(colour, app, X, "ask", config=config)["configurable"]
    update(colour, app, X, "ask", config=config)

    config["configurable"]["checkpoint_map"] = made["checkpoint_map"]
    update(colour, app, {"log": ["y"]}, "ask", config=config)

    (task,) = app.get_state(THREAD, subgraphs=True).tasks
    assert task.state.values == {"log": ["x", "y"]}


def test_the_second_call_of_a_task_is_a_subgraph_too(colour: Colour) -> None:
    """Its namespace ends in a number."""
    app = enclosing(inner_graph())
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "inner:7|1"}}

    made = update(colour, app, X, "ask", config=config)

    assert made["configurable"]["checkpoint_ns"] == "inner:7|1"


def test_what_has_no_state_cannot_be_updated(colour: Colour, done: Any) -> None:
    """No such subgraph, a node that is none, one that is not saved, no such checkpoint."""
    unsaved = enclosing(inner_graph(checkpointer=False))
    for app, ns in ((done, "nobody:1"), (done, "a:1"), (unsaved, "inner:1")):
        with pytest.raises(InvalidInputError, match="is no subgraph that is saved"):
            update(colour, app, X, "a", config={"configurable": {"thread_id": "t", "checkpoint_ns": ns}})
    unknown = {"configurable": {"thread_id": "t", "checkpoint_id": "1f0aaaaa-0000-6000-8000-000000000000"}}
    with pytest.raises(InvalidInputError, match="has no checkpoint '1f0aaaaa"):
        update(colour, done, X, "a", config=unknown)


# --- what is refused --------------------------------------------------------------------------------------------


def test_an_update_never_pauses_or_hands_over_whoever_makes_it(colour: Colour) -> None:
    """A node that updates another thread must not take its question or command for its own."""
    app = branching(lambda state: interrupt("?"))

    with pytest.raises(InvalidUpdateError, match="cannot wait for an answer"):
        update(colour, app, X, "a")
    with pytest.raises(InvalidUpdateError, match="Command for the parent graph") as raised:
        update(colour, app, Command(graph=Command.PARENT, update=X), "b")

    assert isinstance(raised.value.__cause__, ParentCommand)


def test_a_copy_says_what_it_takes(colour: Colour, done: Any) -> None:
    """Nothing is copied if the rest cannot be done."""
    head = done.get_state(THREAD)

    for values in (X, ["x"], [(X,)], [1]):
        with pytest.raises(InvalidUpdateError, match="a copy takes a list"):
            update(colour, done, values, "__copy__")

    assert done.get_state(THREAD) == head


def test_refusals_name_what_they_are_about(colour: Colour, done: Any) -> None:
    """And the way out."""
    with pytest.raises(InvalidUpdateError, match=r"as_node='nobody' names no node; known: '__start__', 'a', 'b'"):
        update(colour, done, X, "nobody")
    with pytest.raises(InvalidUpdateError, match="each needs as_node"):
        bulk(colour, done, [StateUpdate(X, "a"), StateUpdate(X)])
    with pytest.raises(InvalidUpdateError, match="'__end__' has a superstep to itself"):
        bulk(colour, done, [StateUpdate(None, END), StateUpdate(X, "a")])
    with pytest.raises(InvalidInputError, match="nothing to update"):
        bulk(colour, done)
    parallel = joined(a=says("a"), b=says("b"))
    colour.invoke(parallel, {"log": []}, THREAD)
    with pytest.raises(InvalidUpdateError, match=r"'a', 'b' ran last, in one superstep; say which .* with as_node="):
        update(colour, parallel, X)


def test_an_update_needs_a_checkpointer_and_a_thread(colour: Colour, done: Any) -> None:
    """As reading does."""
    with pytest.raises(InvalidInputError, match="without a checkpointer"):
        update(colour, chain_without_saver(), X)
    with pytest.raises(InvalidInputError, match="by thread"):
        update(colour, done, X, config={})


def test_what_a_channel_refuses_is_not_written(colour: Colour, done: Any) -> None:
    """The error names channel and node; the thread stays as it is."""

    class Single(TypedDict, total=False):
        word: str

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Single)
    graph.add_node("a", lambda state: {"word": "a"})
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"word": "in"}, THREAD)
    head = app.get_state(THREAD)

    with pytest.raises(InvalidUpdateError) as raised:
        bulk(colour, app, [StateUpdate({"word": "x"}, "a"), StateUpdate({"word": "y"}, "a")])

    assert (raised.value.channel, raised.value.writers) == ("word", ("a",))
    assert app.get_state(THREAD) == head


def test_a_strict_graph_refuses_unknown_keys(colour: Colour) -> None:
    """In an update as in what a node returns."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=InMemorySaver(), strict=True)

    with pytest.raises(InvalidUpdateError, match="'nonsense'"):
        update(colour, app, {"nonsense": 1}, "a")


# --- the head ---------------------------------------------------------------------------------------------------


class Overtaken(InMemorySaver):
    """Lets another update of the thread through before it stores one."""

    def __init__(self, app: Any = None) -> None:
        super().__init__()
        self.app: Pregel | None = app

    def put(self, *args: Any, expect_head: Any = MISSING) -> Any:
        """Store a checkpoint, after somebody else's."""
        if self.app is not None:
            app, self.app = self.app, None
            app.update_state(THREAD, {"log": ["other"]}, "a")
        return super().put(*args, expect_head=expect_head)


@pytest.fixture
def overtaken(colour: Colour) -> Any:
    """A graph paused before its second node; the next update of its thread is overtaken."""
    saver = Overtaken()
    app = chain(saver, a=says("a"), b=asks)
    colour.invoke(app, {"log": ["in"]}, THREAD)
    saver.app = app
    return app


def test_an_update_that_was_overtaken_is_refused(colour: Colour, overtaken: Any) -> None:
    """Nothing of it is left, not even beside the checkpoint it was made for."""
    waiting = overtaken.get_state(THREAD)

    with pytest.raises(ConcurrentRunError):
        update(colour, overtaken, X, "b")

    assert overtaken.get_state(THREAD).values == {"log": ["in", "a", "other"]}
    assert overtaken.get_state(waiting.config).tasks[0].result is None


def test_an_addressed_update_makes_a_branch_whatever_happened_meanwhile(colour: Colour, overtaken: Any) -> None:
    """That is what an address is for."""
    head = overtaken.get_state(THREAD).config

    made = update(colour, overtaken, X, "b", config=head)

    assert overtaken.get_state(made).values == {"log": ["in", "a", "x"]}
    assert overtaken.get_state(made).parent_config == head


def test_only_the_first_superstep_of_an_addressed_update_makes_a_branch(colour: Colour) -> None:
    """From then on the branch is the head, and must not be overtaken."""
    saver = Overtaken()
    app = chain(saver, a=says("a"), b=asks)
    colour.invoke(app, {"log": ["in"]}, THREAD)
    head = app.get_state(THREAD).config

    class Late(list[Any]):
        """Superstep values whose appending lets somebody else in."""

        def __radd__(self, other: Any) -> Any:
            saver.app = app
            return [*other, *self]

    with pytest.raises(ConcurrentRunError):
        bulk(colour, app, [StateUpdate(X, "a")], [StateUpdate({"log": Late(["y"])}, "a")], config=head)
