"""Bad input of every kind: a clear error that names node and channel, no half-written state, no span left open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from pydantic import BaseModel, ValidationError
from spans import Trace

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig
from tracegraph.errors import EmptyInputError, ErrorCode, InvalidUpdateError, UnknownTargetError
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, Overwrite, Send

THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}
SAVED = {"n": 1, "text": "in,good"}
"""State of the thread when the node ``bad`` begins."""


class Refused(Exception):
    """What the reducer below raises."""


class Halt(BaseException):
    """Nothing that ``except Exception`` catches."""


def join_text(left: str, right: str) -> str:
    if right == "!":
        raise Refused("no exclamation marks")
    return f"{left},{right}" if left else right


class State(TypedDict, total=False):
    n: int
    text: Annotated[str, join_text]


def after_good(**bad: Any) -> Any:
    """Return a graph: the node ``good`` writes ``n`` and ``text``, then the nodes in *bad* run at once."""
    graph = StateGraph(State)
    graph.add_node("good", lambda state: {"n": 1, "text": "good"})
    graph.add_edge(START, "good")
    for name, body in bad.items():
        graph.add_node(name, body)
        graph.add_edge("good", name)
    return graph


def fails(colour: Colour, graph: Any, expected: type[BaseException], given: Any = None) -> tuple[BaseException, str, Any]:
    """Run *graph* and return the error, all it says, and the compiled graph."""
    app = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(expected) as failure:
        colour.invoke(app, {"text": "in"} if given is None else given, THREAD)
    error = failure.value
    return error, "\n".join([str(error), *getattr(error, "__notes__", ())]), app


def head(app: Any) -> Any:
    """Return the thread's newest checkpoint; unlike get_state(), its history leaves finished tasks' writes out."""
    return next(iter(app.get_state_history(THREAD)))


def assert_untouched(app: Any, trace: Trace, *, next_nodes: tuple[str, ...] = ("bad",)) -> None:
    """The thread is where it was before the failed superstep, it can be read, and what was observed has ended."""
    assert (head(app).values, head(app).next) == (SAVED, next_nodes)
    assert app.get_state(THREAD).values == SAVED
    assert trace.ended
    assert trace.is_complete(), (trace.open, trace.ended_twice)


@pytest.mark.parametrize("returned", [[], [1], "text", 3, ("n", 1), [("n", 1)], True], ids=repr)
def test_return_value_that_is_no_update(colour: Colour, trace: Trace, returned: Any) -> None:
    """The error says which node returned what."""
    error, text, app = fails(colour, after_good(bad=lambda state: returned), InvalidUpdateError)

    assert isinstance(error, InvalidUpdateError)
    assert (error.node, error.error_code) == ("bad", ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE)
    assert "'bad'" in text
    assert type(returned).__name__ in text or repr(returned) in text
    assert_untouched(app, trace)


def with_path(path: Callable[[Any], Any], ends: Any = None) -> Any:
    """Return the graph whose node ``bad`` has a conditional edge."""
    graph = after_good(bad=lambda state: {"n": 2, "text": "bad"})
    graph.add_conditional_edges("bad", path, ends)
    return graph


UNKNOWN_TARGETS = [
    pytest.param(after_good(bad=lambda state: Command(update={"n": 2}, goto="nowhere")), id="goto"),
    pytest.param(after_good(bad=lambda state: Command(update={"n": 2}, goto=["good", "nowhere"])), id="one of several gotos"),
    pytest.param(after_good(bad=lambda state: Command(update={"n": 2}, goto=Send("nowhere", {}))), id="goto with a Send"),
    pytest.param(after_good(bad=lambda state: [{"n": 2}, Command(goto="nowhere")]), id="goto in a list"),
    pytest.param(with_path(lambda state: "nowhere"), id="path"),
    pytest.param(with_path(lambda state: ["good", "nowhere"]), id="one of several paths"),
    pytest.param(with_path(lambda state: Send("nowhere", {})), id="path with a Send"),
    pytest.param(with_path(lambda state: "nowhere", {"home": "good"}), id="label outside the path map"),
]


@pytest.mark.parametrize("graph", UNKNOWN_TARGETS)
def test_target_that_does_not_exist(colour: Colour, trace: Trace, graph: Any) -> None:
    """The error says who sent where, and where one could go; nothing of the node's update stays."""
    error, text, app = fails(colour, graph, UnknownTargetError)

    assert isinstance(error, UnknownTargetError)
    assert (error.target, error.node) == ("nowhere", "bad")
    assert all(name in text for name in ("'bad'", "'nowhere'"))
    assert "good" in error.known or "home" in error.known
    assert_untouched(app, trace)


@pytest.mark.parametrize("wrong", [3, None, ["good", None]], ids=repr)
def test_path_that_returns_no_place(colour: Colour, trace: Trace, wrong: Any) -> None:
    """A number or None is no node name."""
    error, text, app = fails(colour, with_path(lambda state: wrong), InvalidUpdateError)

    assert isinstance(error, InvalidUpdateError)
    assert error.node == "bad"
    assert "'bad'" in text
    assert_untouched(app, trace)


def test_two_writers_on_a_channel_that_takes_one(colour: Colour, trace: Trace) -> None:
    """The error names the channel and both nodes; neither write is kept, nor is what they wrote beside it."""
    graph = after_good(bad=lambda state: {"n": 2, "text": "a"}, worse=lambda state: {"n": 3, "text": "b"})

    error, text, app = fails(colour, graph, InvalidUpdateError)

    assert isinstance(error, InvalidUpdateError)
    assert (error.channel, error.step, error.error_code) == ("n", 2, ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE)
    assert sorted(error.writers) == ["bad", "worse"]
    assert all(name in text for name in ("'n'", "'bad'", "'worse'"))
    assert_untouched(app, trace, next_nodes=("bad", "worse"))


def test_two_overwrites_of_one_channel(colour: Colour, trace: Trace) -> None:
    """Which one should win nobody said."""
    graph = after_good(bad=lambda state: {"text": Overwrite("a")}, worse=lambda state: {"text": Overwrite("b")})

    error, text, app = fails(colour, graph, InvalidUpdateError)

    assert isinstance(error, InvalidUpdateError)
    assert (error.channel, sorted(error.writers)) == ("text", ["bad", "worse"])
    assert all(name in text for name in ("'text'", "'bad'", "'worse'"))
    assert_untouched(app, trace, next_nodes=("bad", "worse"))


def test_reducer_that_raises(colour: Colour, trace: Trace) -> None:
    """Its own error comes out, with a note that says channel and node; ``n``, merged before it, is not kept either."""
    error, text, app = fails(colour, after_good(bad=lambda state: {"n": 2, "text": "!"}), Refused)

    assert type(error) is Refused
    assert "'text'" in text
    assert "'bad'" in text
    assert_untouched(app, trace)


def test_thread_goes_on_after_a_failed_superstep(colour: Colour) -> None:
    """Whatever made the step fail, once it is gone the run can be continued from where it was."""
    is_broken = True
    graph = after_good(bad=lambda state: {"n": 2, "text": "!" if is_broken else "bad"})
    _, _, app = fails(colour, graph, Refused)

    is_broken = False

    # The task had finished, so its writes are kept: only new input makes it write anew.
    assert colour.invoke(app, {"text": "again"}, THREAD) == {"n": 2, "text": "in,good,again,good,bad"}


@pytest.mark.parametrize("kind", [Refused, ValueError, Halt, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside a sibling"])
def test_node_that_raises(colour: Colour, trace: Trace, kind: type[BaseException], is_alone: bool) -> None:
    """The very exception comes out, BaseExceptions too, and the failed superstep leaves no trace in the state."""

    def bad(state: State) -> Any:
        raise kind("no")

    others = {} if is_alone else {"fine": lambda state: {"text": "fine"}}
    error, text, app = fails(colour, after_good(bad=bad, **others), kind)

    assert type(error) is kind
    if isinstance(error, Exception):
        assert "'bad'" in text
    assert head(app).values == SAVED
    assert "bad" in head(app).next
    assert trace.is_complete(), (trace.open, trace.ended_twice)


@pytest.mark.parametrize("given", ["text", 3, [1], object()], ids=["str", "int", "list", "object"])
def test_input_that_is_no_update(colour: Colour, trace: Trace, given: Any) -> None:
    """A state of fields takes a dict; the error says what it got instead, and none of it is kept."""
    error, text, app = fails(colour, after_good(), InvalidUpdateError, given)

    assert type(given).__name__ in text or repr(given) in text
    assert app.get_state(THREAD).values == {"text": ""}
    assert trace.is_complete()
    assert isinstance(error, InvalidUpdateError)
    assert error.node == START


def test_no_input_and_nothing_to_resume(colour: Colour, trace: Trace) -> None:
    """``None`` goes on with a thread, and this one has nothing to go on with."""
    app = after_good().compile(checkpointer=InMemorySaver())

    with pytest.raises(EmptyInputError, match="TG203"):
        colour.invoke(app, None, THREAD)

    assert app.get_state(THREAD).values == {}
    assert trace.is_complete()


class Checked(BaseModel):
    n: int = 0
    text: str = ""


def test_input_that_a_schema_refuses(colour: Colour, trace: Trace) -> None:
    """Validation happens where the node's input is built; the note names the node, the error the field."""
    graph = StateGraph(Checked)
    graph.add_node("first", lambda state: {"text": "ran"})
    graph.add_edge(START, "first")

    _, text, app = fails(colour, graph, ValidationError, {"n": "many"})

    assert "'first'" in text
    assert "n\n" in text
    assert app.get_state(THREAD).next == ("first",)
    assert trace.is_complete()


def test_write_that_a_later_schema_refuses(colour: Colour, trace: Trace) -> None:
    """A bad type surfaces where it is read; the writer's superstep stays."""
    graph = StateGraph(Checked)
    graph.add_node("writer", lambda state: {"n": "many"})
    graph.add_node("reader", lambda state: {"text": "ran"})
    graph.add_edge(START, "writer")
    graph.add_edge("writer", "reader")

    _, text, app = fails(colour, graph, ValidationError, {"n": 1})

    assert "'reader'" in text
    assert (app.get_state(THREAD).next, app.get_state(THREAD).values["n"]) == (("reader",), "many")
    assert trace.is_complete()


@pytest.mark.parametrize("where", ["as a node", "called by a node"])
def test_error_inside_a_subgraph_names_both_nodes(colour: Colour, trace: Trace, where: str) -> None:
    """Notes are added on the way out, innermost first."""

    def bad(state: State) -> Any:
        raise Refused("deep down")

    inner = StateGraph(State)
    inner.add_node("deep", bad)
    inner.add_edge(START, "deep")
    app = inner.compile()
    graph = after_good(bad=app if where == "as a node" else lambda state: app.invoke({"n": 1}))

    error, text, outer = fails(colour, graph, Refused)

    assert type(error) is Refused
    assert text.index("'deep'") < text.index("'bad'")
    assert_untouched(outer, trace)
