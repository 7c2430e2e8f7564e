"""Going back to a checkpoint inside a subgraph: the run goes on from the node chosen there (case C36)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from colours import Colour
from foreign_saver import Foreign
from nested import THREAD, Recorder, State, around, at, before, beside, calling, history, namespaces, state
from updates import update

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.errors import InvalidInputError
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Command, Send

NAMES = ("a", "b", "c", "review?")


def inside(colour: Colour, form: str, made: Recorder) -> Any:
    """Return the node that runs the graph to go back into."""
    match form:
        case "node":
            return made.chain(NAMES)
        case "own state":
            return made.chain(NAMES, checkpointer=True)
        case "node code":
            return calling(colour, made.chain(NAMES))
        case "node code, own state":
            return calling(colour, made.chain(NAMES, checkpointer=True))
        case _:
            return made.routed(NAMES)


def paused(colour: Colour, app: Any, *names: str) -> str:
    """Run a thread to its question and return the namespace of the graph that asks."""
    colour.invoke(app, {"log": []}, THREAD)
    spaces = namespaces(state(colour, app, subgraphs=True))
    return spaces[names[-1] if names else "sub"]


FORMS = ["node", "own state", "node code", "node code, own state", "Command"]


@pytest.mark.parametrize("form", FORMS)
def test_a_replay_goes_on_from_the_node_chosen(colour: Colour, form: str) -> None:
    """What ran before it inside the subgraph does not run again, however the subgraph is called or routed."""
    made = Recorder()
    app = around(x=made.says("x"), sub=inside(colour, form, made), z=made.says("z"))
    ns = paused(colour, app)
    chosen = before(colour, app, "c", ns)
    made.take()

    again = colour.invoke(app, None, chosen)

    assert made.take() == ["c", "review"]
    assert [i.value for i in again["__interrupt__"]] == ["review?"]
    done = colour.invoke(app, Command(resume="fine"), THREAD)
    assert made.take() == ["review", "z"]
    assert done["log"][-3:] == ["c", "fine", "z"]


@pytest.mark.parametrize("form", FORMS)
def test_a_replay_of_a_finished_thread_goes_on_inside(colour: Colour, form: str) -> None:
    """The branch becomes the thread's newest state, and the old history stays as it was."""
    made = Recorder()
    app = around(x=made.says("x"), sub=inside(colour, form, made), z=made.says("z"))
    ns = paused(colour, app)
    chosen = before(colour, app, "c", ns)
    colour.invoke(app, Command(resume="first"), THREAD)
    old, old_inside = history(colour, app), history(colour, app, at(ns))
    made.take()

    colour.invoke(app, None, chosen)
    done = colour.invoke(app, Command(resume="second"), THREAD)

    assert made.take() == ["c", "review", "review", "z"]
    assert done["log"][-3:] == ["c", "second", "z"]
    assert state(colour, app).values == done
    assert history(colour, app)[-len(old) :] == old
    assert history(colour, app, at(ns))[-len(old_inside) :] == old_inside


@pytest.mark.parametrize("form", FORMS)
def test_an_updated_checkpoint_inside_is_what_goes_on(colour: Colour, form: str) -> None:
    """update_state() of a checkpoint inside makes a branch there, and invoking its config goes on from it."""
    made = Recorder()
    app = around(sub=inside(colour, form, made), z=made.says("z"))
    ns = paused(colour, app)
    made.take()

    values: Any = {"log": ["changed"]} if form != "Command" else Command(update={"log": ["changed"]}, goto="c")
    changed = update(colour, app, values, "b", config=before(colour, app, "b", ns))
    colour.invoke(app, None, changed)

    assert made.take() == ["c", "review"]
    done = colour.invoke(app, Command(resume="yes"), THREAD)
    assert done["log"][-5:] == ["a", "changed", "c", "yes", "z"]


@pytest.mark.parametrize("form", FORMS)
def test_an_updated_head_inside_is_what_a_resume_goes_on_from(colour: Colour, form: str) -> None:
    """Resuming the thread itself finds the update, since it is the subgraph's newest state."""
    made = Recorder()
    app = around(sub=inside(colour, form, made), z=made.says("z"))
    ns = paused(colour, app)
    made.take()

    values: Any = {"log": ["changed"]} if form != "Command" else Command(update={"log": ["changed"]}, goto="b")
    update(colour, app, values, "a", config=before(colour, app, "a", ns))
    colour.invoke(app, None, THREAD)

    assert made.take() == ["b", "c", "review"]


@pytest.mark.parametrize("is_code", [False, True], ids=["as a node", "by node code"])
def test_a_replay_two_levels_down(colour: Colour, is_code: bool) -> None:
    """Each level goes on from where it was: the middle one at its own checkpoint, the inner one at the one chosen."""
    made = Recorder()
    inner = made.chain(NAMES, prefix="in.")
    middle: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    middle.add_sequence([("m", made.says("m")), ("inner", calling(colour, inner) if is_code else inner), ("n", made.says("n"))])
    middle.add_edge(START, "m")
    graph = middle.compile()
    app = around(x=made.says("x"), middle=calling(colour, graph) if is_code else graph, z=made.says("z"))
    ns = paused(colour, app, "middle", "inner")
    assert ns.count("|") == 1
    chosen = before(colour, app, "b", ns)
    colour.invoke(app, Command(resume="first"), THREAD)
    made.take()

    colour.invoke(app, None, chosen)

    assert made.take() == ["in.b", "in.c", "in.review"]
    done = colour.invoke(app, Command(resume="second"), THREAD)
    assert made.take() == ["in.review", "n", "z"]
    assert done["log"][-5:] == ["in.b", "in.c", "second", "n", "z"]


def test_a_replay_of_the_middle_level_starts_what_is_inside_it_anew(colour: Colour) -> None:
    """Chosen is the checkpoint from which the inner graph is next, so that runs from its start."""
    made = Recorder()
    middle: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    middle.add_sequence([("m", made.says("m")), ("inner", made.chain(NAMES))])
    middle.add_edge(START, "m")
    app = around(x=made.says("x"), middle=middle.compile())
    ns = paused(colour, app, "middle")
    made.take()

    colour.invoke(app, None, before(colour, app, "inner", ns))

    assert made.take() == ["a", "b", "c", "review"]


def test_a_second_call_of_a_node_is_gone_back_into(colour: Colour) -> None:
    """What the node called before it is finished and not called again."""
    made = Recorder()
    app = around(sub=calling(colour, made.chain(NAMES), 2))
    ns = paused(colour, app) + "|1"
    colour.invoke(app, Command(resume="one"), THREAD)
    chosen = before(colour, app, "c", ns)
    made.take()

    colour.invoke(app, None, chosen)

    assert made.take() == ["c", "review"]
    done = colour.invoke(app, Command(resume="two"), THREAD)
    assert done["log"] == ["a", "b", "c", "one", "a", "b", "c", "two"]
    assert made.take() == ["review"]


def test_of_two_subgraphs_at_once_one_is_gone_back_into(colour: Colour) -> None:
    """The superstep is done again: the one chosen goes on where it was, its sibling starts anew."""
    made = Recorder()
    app = beside(p=made.chain(("a", "b", "review?"), prefix="p."), q=made.chain(("a", "b", "review?"), prefix="q."))
    ns = paused(colour, app, "p")
    made.take()

    again = colour.invoke(app, None, before(colour, app, "b", ns))

    ran = made.take()
    assert [name for name in ran if name.startswith("p.")] == ["p.b", "p.review"]
    assert [name for name in ran if name.startswith("q.")] == ["q.a", "q.b", "q.review"]
    answers = {i.id: i.value[:1] for i in again["__interrupt__"]}
    assert colour.invoke(app, Command(resume=answers), THREAD)["log"] == ["p.a", "p.b", "p", "q.a", "q.b", "q"]


def test_of_many_calls_of_one_node_one_is_gone_back_into(colour: Colour) -> None:
    """Their namespaces differ by task id alone, and the right one is found again on the branch."""
    made = Recorder()
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_sequence(
        [("a", made.says("a")), ("b", lambda state: made.says(f"b{state['log'][0]}")(state)), ("review", made.asks("r"))]
    )
    inner.add_edge(START, "a")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("sub", inner.compile())
    graph.add_conditional_edges(START, lambda state: [Send("sub", {"log": [n]}) for n in (1, 2, 3)])
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    ns = state(colour, app, subgraphs=True).tasks[1].state.config["configurable"]["checkpoint_ns"]
    made.take()

    again = colour.invoke(app, None, before(colour, app, "review", ns))

    ran = made.take()
    assert (ran.count("b1"), ran.count("b2"), ran.count("b3"), ran.count("r")) == (1, 0, 1, 3)
    done = colour.invoke(app, Command(resume={i.id: "yes" for i in again["__interrupt__"]}), THREAD)
    assert done["log"] == [1, "a", "b1", "yes", 2, "a", "b2", "yes", 3, "a", "b3", "yes"]


def test_a_command_for_the_parent_leaves_the_branch_too(colour: Colour) -> None:
    """A subgraph that hands over to its parent does so when it is gone back into."""
    made = Recorder()
    sub: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    sub.add_node("a", made.says("a"))
    sub.add_node("hand", lambda state: Command(graph=Command.PARENT, goto="z", update={"log": ["handed"]}))
    sub.add_edge(START, "a")
    sub.add_edge("a", "hand")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("sub", sub.compile())
    graph.add_node("z", made.says("z"))
    graph.add_edge(START, "sub")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    start = before(colour, app, "sub")
    ns = next(task.state for task in state(colour, app, start).tasks)["configurable"]["checkpoint_ns"]
    made.take()

    assert colour.invoke(app, None, before(colour, app, "hand", ns))["log"] == ["handed", "z"]
    assert made.take() == ["z"]


def test_a_question_inside_can_be_answered_again(colour: Colour) -> None:
    """Resuming a paused checkpoint inside a subgraph again goes on from there with the new answer (as case C38)."""
    made = Recorder()
    app = around(sub=made.chain(("a", "ask?", "b")), z=made.says("z"))
    ns = paused(colour, app)
    inner, outer = before(colour, app, "ask", ns), state(colour, app).config
    first = colour.invoke(app, Command(resume=1), THREAD)
    made.take()

    assert first["log"] == ["a", 1, "b", "z"]
    assert colour.invoke(app, Command(resume=2), inner)["log"] == ["a", 2, "b", "z"]
    assert made.take() == ["ask", "b", "z"]
    assert colour.invoke(app, Command(resume=3), outer)["log"] == ["a", 3, "b", "z"]
    assert made.take() == ["ask", "b", "z"]
    assert state(colour, app).values["log"] == ["a", 3, "b", "z"]


def test_the_first_of_two_questions_inside_can_be_answered_again(colour: Colour) -> None:
    """The parent remembers the last question only; the subgraph's own checkpoint says which one is meant."""
    made = Recorder()
    app = around(sub=made.chain(("p?", "q?")))
    ns = paused(colour, app)
    first = before(colour, app, "p", ns)
    colour.invoke(app, Command(resume="p1"), THREAD)
    colour.invoke(app, Command(resume="q1"), THREAD)

    again = colour.invoke(app, Command(resume="p2"), first)

    assert [i.value for i in again["__interrupt__"]] == ["q?"]


def test_new_input_at_a_checkpoint_inside_begins_the_root_anew(colour: Colour) -> None:
    """There is one input, the root's; it is given at the checkpoint at which the root was."""
    made = Recorder()
    app = around(x=made.says("x"), sub=made.chain(NAMES))
    ns = paused(colour, app)
    made.take()

    colour.invoke(app, {"log": ["new"]}, before(colour, app, "c", ns))

    assert made.take() == ["x", "a", "b", "c", "review"]
    assert state(colour, app).values["log"] == ["x", "new", "x"]


def test_a_config_without_its_map_is_enough(colour: Colour) -> None:
    """Namespace and id address a checkpoint; where the graphs around it were is stored with it."""
    made = Recorder()
    app = around(sub=made.chain(NAMES))
    ns = paused(colour, app)
    where = before(colour, app, "c", ns)["configurable"]
    made.take()

    colour.invoke(app, None, {"configurable": {key: where[key] for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}})

    assert made.take() == ["c", "review"]


def test_a_namespace_without_a_checkpoint_means_the_thread(colour: Colour) -> None:
    """As in LangGraph: the thread goes on from its newest state."""
    made = Recorder()
    app = around(sub=made.chain(NAMES))
    ns = paused(colour, app)
    made.take()

    colour.invoke(app, None, at(ns))

    assert made.take() == ["review"]


def test_a_branch_inside_can_be_gone_back_into_again(colour: Colour) -> None:
    """Checkpoints of a branch are as good as any other."""
    made = Recorder()
    app = around(sub=made.chain(NAMES))
    ns = paused(colour, app)
    colour.invoke(app, None, before(colour, app, "b", ns))
    branch = namespaces(state(colour, app, subgraphs=True))["sub"]
    made.take()

    colour.invoke(app, None, before(colour, app, "c", branch))

    assert made.take() == ["c", "review"]
    assert colour.invoke(app, Command(resume="yes"), THREAD)["log"] == ["a", "b", "c", "yes"]


def test_breakpoints_inside_are_passed_by_going_back(colour: Colour) -> None:
    """The breakpoint before the node chosen was met already; the next one holds."""
    made = Recorder()
    app = around(sub=made.chain(("a", "b", "c"), interrupt_before=["b", "c"]))
    ns = paused(colour, app)
    colour.invoke(app, None, THREAD)
    made.take()

    colour.invoke(app, None, before(colour, app, "b", ns))

    assert made.take() == ["b"]
    assert colour.invoke(app, None, THREAD)["log"] == ["a", "b", "c"]
    assert made.take() == ["c"]


def test_a_retried_task_goes_on_on_the_branch(colour: Colour) -> None:
    """The second attempt finds what the first did after it had gone back; it does not go back again."""
    from tracegraph.types import RetryPolicy

    made, failures = Recorder(), [False]

    def shaky(state: Any) -> Any:
        made.ran.append("shaky")
        if failures[0]:
            failures[0] = False
            raise ConnectionError
        return {"log": ["shaky"]}

    sub: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    sub.add_sequence([("a", made.says("a")), ("b", made.says("b")), ("shaky", shaky)])
    sub.add_edge(START, "a")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("sub", sub.compile(), retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "sub")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    ns = state(colour, app, before(colour, app, "sub")).tasks[0].state["configurable"]["checkpoint_ns"]
    made.take()
    failures[0] = True

    done = colour.invoke(app, None, before(colour, app, "b", ns))

    assert made.take() == ["b", "shaky", "shaky"]
    assert done["log"] == ["a", "b", "shaky"]


def test_a_checkpoint_that_is_not_there_is_named(colour: Colour) -> None:
    """Nothing runs and nothing is written."""
    made = Recorder()
    app = around(sub=made.chain(NAMES))
    ns = paused(colour, app)
    where = before(colour, app, "c", ns)["configurable"]
    unknown = "1f000000-0000-6000-8000-000000000000"
    length = len(history(colour, app))

    for wrong in (
        {**where, "checkpoint_id": unknown},
        {**where, "checkpoint_map": {**where["checkpoint_map"], "": unknown}},
        {**where, "checkpoint_id": unknown, "checkpoint_map": {**where["checkpoint_map"], ns: unknown}},
    ):
        with pytest.raises(InvalidInputError, match=unknown):
            colour.invoke(app, None, {"configurable": wrong})
    assert len(history(colour, app)) == length


def test_a_map_that_leads_nowhere_is_refused(colour: Colour) -> None:
    """Else the subgraph would silently start anew, or not run at all."""
    made = Recorder()
    app = around(x=made.says("x"), sub=made.chain(NAMES))
    ns = paused(colour, app)
    where = before(colour, app, "c", ns)["configurable"]
    other = before(colour, app, "x")["configurable"]["checkpoint_id"]
    made.take()

    with pytest.raises(InvalidInputError, match="node 'sub' does not run that call"):
        colour.invoke(app, None, {"configurable": {**where, "checkpoint_map": {**where["checkpoint_map"], "": other}}})
    assert made.take() == []
    assert [found.next for found in history(colour, app)][0] == ("sub",)


def test_an_end_is_gone_back_to_as_well(colour: Colour) -> None:
    """The last checkpoint of a subgraph has nothing left to run: its parent goes on with what it gave."""
    made = Recorder()
    app = around(sub=made.chain(("a", "b")), z=made.says("z"))
    colour.invoke(app, {"log": []}, THREAD)
    ns = state(colour, app, before(colour, app, "sub")).tasks[0].state["configurable"]["checkpoint_ns"]
    made.take()

    ended = next(found for found in history(colour, app, at(ns)) if found.next == ())
    assert colour.invoke(app, None, ended.config)["log"] == ["a", "b", "z"]
    assert made.take() == ["z"]
    assert END not in made.ran


@pytest.mark.parametrize("kind", ["bytes", "sqlite", "foreign"])
def test_a_branch_inside_is_whole_in_every_saver(colour: Colour, kind: str, tmp_path: Any) -> None:
    """What the branch begins with lies in another namespace, so all of it is stored there again."""
    made = Recorder()
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_sequence([("sub", made.chain(NAMES)), ("z", made.says("z"))])
    builder.add_edge(START, "sub")

    def saved() -> Any:
        if kind == "sqlite":
            return builder.compile(checkpointer=stack.enter_context(SqliteSaver.from_conn_string(tmp_path / "db")))
        return builder.compile(checkpointer=kept)

    kept = InMemorySaver(serde=JsonPlusSerializer()) if kind == "bytes" else Foreign()
    with ExitStack() as stack:
        app = saved()
        ns = paused(colour, app)
        colour.invoke(app, None, before(colour, app, "c", ns))
        made.take()
        again = saved()

        branch = namespaces(state(colour, again, subgraphs=True))["sub"]
        assert branch != ns
        assert state(colour, again, at(branch)).values["log"] == ["a", "b", "c"]
        assert [found.metadata["source"] for found in history(colour, again, at(branch))] == ["loop", "fork"]
        assert colour.invoke(again, Command(resume="yes"), THREAD)["log"] == ["a", "b", "c", "yes", "z"]


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_replay_inside_is_saved_like_any_run(colour: Colour, durability: Any) -> None:
    """Under exit one checkpoint each holds what the root and the subgraph came to."""
    made = Recorder()
    app = around(x=made.says("x"), sub=made.chain(NAMES), z=made.says("z"))
    ns = paused(colour, app)
    chosen = before(colour, app, "b", ns)
    made.take()

    colour.invoke(app, None, chosen, durability=durability)

    assert made.take() == ["b", "c", "review"]
    assert colour.invoke(app, Command(resume="yes"), THREAD, durability=durability)["log"][-4:] == ["b", "c", "yes", "z"]
    assert made.take() == ["review", "z"]


def test_what_was_not_stored_cannot_be_gone_back_to(colour: Colour) -> None:
    """Under exit a memory is stored when its graph ends, but not the checkpoint that the root was at meanwhile."""
    made = Recorder()
    app = around(sub=made.chain(("a", "b"), checkpointer=True), z=made.says("z"))
    colour.invoke(app, {"log": []}, THREAD, durability="exit")
    (last,) = history(colour, app, at("sub"))

    with pytest.raises(InvalidInputError, match="durability='exit' only the last one of a run is stored"):
        colour.invoke(app, None, last.config)


def test_an_older_question_inside_is_found_behind_newer_ones(colour: Colour) -> None:
    """Answering the root's old checkpoint again goes on from where the subgraph asked, however far it has come since."""
    made = Recorder()
    app = around(sub=made.chain(("ask?", *"abcdefghijklmnopqrst")), z=made.says("z"))
    colour.invoke(app, {"log": []}, THREAD)
    old = state(colour, app).config
    colour.invoke(app, Command(resume=1), THREAD)
    made.take()

    done = colour.invoke(app, Command(resume=2), old)

    assert done["log"] == [2, *"abcdefghijklmnopqrst", "z"]
    assert made.take() == ["ask", *"abcdefghijklmnopqrst", "z"]


def test_a_sibling_that_was_not_asked_goes_on_where_it_was(colour: Colour) -> None:
    """Of two subgraphs that ask, one is answered at an old checkpoint; the other one asks what it asked."""
    made = Recorder()
    app = beside(p=made.chain(("a", "ask?"), prefix="p."), q=made.chain(("a", "ask?"), prefix="q."))
    ids = {i.value: i.id for i in colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]}
    old = state(colour, app).config
    made.take()

    again = colour.invoke(app, Command(resume={ids["p.ask?"]: 1}), old)

    assert [i.id for i in again["__interrupt__"]] == [ids["q.ask?"]]
    assert sorted(made.take()) == ["p.ask", "q.ask"]
    assert colour.invoke(app, Command(resume=2), THREAD)["log"] == ["p.a", 1, "q.a", 2]
