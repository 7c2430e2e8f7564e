"""What an update does to a thread, compared with LangGraph: values, what is next, history, and how the run goes on."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from readings import quiet

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    topic: str


class Names:
    """The names of one of the two libraries."""

    def __init__(self, library: str) -> None:
        for module, names in {
            "graph": ("StateGraph", "START", "END"),
            "types": ("Command", "Send", "StateUpdate", "interrupt"),
            "checkpoint.memory": ("InMemorySaver",),
            "errors": ("InvalidUpdateError",),
        }.items():
            for name in names:
                setattr(self, name, getattr(import_module(f"{library}.{module}"), name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


OURS, ORACLE = Names("tracegraph"), Names("langgraph")


def says(word: str) -> Any:
    """Return a node that logs a word."""
    return lambda state: {"log": [word]}


def asks(lib: Names) -> Any:
    """Return a node that asks, and logs the answer."""
    return lambda state: {"log": [lib.interrupt("?")]}


def graph_of(lib: Names, nodes: dict[str, Any], *edges: tuple[Any, Any]) -> Any:
    """Return a builder with these nodes and edges."""
    graph = lib.StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
    for source, target in edges:
        graph.add_edge(source, target)
    return graph


def chain(lib: Names) -> Any:
    """Return the builder of three nodes in a row."""
    nodes = {name: says(name) for name in "abc"}
    return graph_of(lib, nodes, (lib.START, "a"), ("a", "b"), ("b", "c"))


def pair(lib: Names) -> Any:
    """Return the builder of two nodes at once, one of which asks."""
    return graph_of(lib, {"a": says("a"), "b": asks(lib), "c": says("c")}, (lib.START, "a"), (lib.START, "b"), ("b", "c"))


def joined(lib: Names) -> Any:
    """Return the builder of a node that waits for two others."""
    return graph_of(lib, {"a": says("a"), "b": asks(lib), "j": says("j")}, (lib.START, "a"), (lib.START, "b"), (["a", "b"], "j"))


def branching(lib: Names) -> Any:
    """Return the builder of a loop that sends work while the log is short."""
    graph = graph_of(lib, {"a": says("a"), "b": says("b")}, (lib.START, "a"))
    graph.add_conditional_edges("a", lambda state: [lib.Send("b", {})] if len(state["log"]) < 5 else lib.END)
    return graph


def nested(lib: Names) -> Any:
    """Return the builder of a graph whose first node is a graph that asks."""
    inner = graph_of(lib, {"n": says("n"), "m": asks(lib)}, (lib.START, "n"), ("n", "m"))
    return graph_of(lib, {"sub": inner.compile(), "z": says("z")}, (lib.START, "sub"), ("sub", "z"))


@dataclass
class Case:
    """A graph, how far it has run, and what is then written to its thread."""

    builder: Callable[[Names], Any]
    supersteps: Callable[[Names], Any]
    given: Any = field(default_factory=lambda: {"log": ["in"]})
    stop_at: Sequence[str] = ()
    at: int | None = None
    """Update the checkpoint that is this far back, by its config."""
    goes_on_with: Any = None
    inside: str | None = None
    """Update the state of this task's subgraph."""


def one(values: Any, as_node: str | None = None, task_id: str | None = None) -> Callable[[Names], Any]:
    """Return a single update."""
    return lambda lib: [[lib.StateUpdate(values, as_node, task_id)]]


X = {"log": ["x"]}
TASK = "11111111-1111-1111-1111-111111111111"

CASES: dict[str, Case] = {
    "nothing saved yet": Case(chain, one(X), given=None),
    "nothing saved yet, as a node": Case(chain, one(X, "b"), given=None),
    "nothing saved yet, as the start": Case(chain, one(X, "__start__"), given=None),
    "nothing saved yet, as the input": Case(chain, one(X, "__input__"), given=None),
    "nothing saved yet, cleared": Case(chain, one(None, "__end__"), given=None),
    "paused, as who ran last": Case(chain, one(X), stop_at=["b"]),
    "paused, as who is next": Case(chain, one(X, "b"), stop_at=["b"]),
    "paused, as a later node": Case(chain, one(X, "c"), stop_at=["b"]),
    "paused, edges only": Case(chain, one(None, "b"), stop_at=["b"]),
    "paused, cleared": Case(chain, one(None, "__end__"), stop_at=["b"]),
    "paused, new input": Case(chain, one(X, "__input__"), stop_at=["b"]),
    "paused, copied": Case(chain, one(None, "__copy__"), stop_at=["b"]),
    "paused, copied and updated": Case(chain, one([(X, "b"), ({"topic": "y"}, "c"), (X, "b")], "__copy__"), stop_at=["b"]),
    "paused, under a task id": Case(chain, one(X, "b", TASK), stop_at=["b"]),
    "done": Case(chain, one(X)),
    "done, without values": Case(chain, one(None)),
    "done, back to the start": Case(chain, one(X, "a")),
    "done, copied": Case(chain, one([], "__copy__")),
    "done, unknown key": Case(chain, one({"log": ["x"], "nonsense": 1}, "b")),
    "done, another channel": Case(chain, one({"topic": "cats"})),
    "a command": Case(chain, lambda lib: one(lib.Command(update=X, goto="a"), "c")(lib)),
    "several": Case(chain, lambda lib: [[lib.StateUpdate(X, "a"), lib.StateUpdate({"log": ["y"]}, "c")]]),
    "supersteps": Case(chain, lambda lib: [[lib.StateUpdate(X, n)] for n in ("a", "b", "a")]),
    "supersteps from the input on": Case(
        chain, lambda lib: [[lib.StateUpdate(X, n)] for n in ("__input__", "__start__", "a")], given=None
    ),
    "an old checkpoint": Case(chain, one(X, "b"), at=2),
    "an old checkpoint, as who ran last": Case(chain, one(X), at=2),
    "an old checkpoint, many writes": Case(
        chain, lambda lib: one(lib.Command(update=[("log", ["1"]), ("log", ["2"]), ("log", ["3"])]), "b")(lib), at=2
    ),
    "an old checkpoint, copied": Case(chain, one([(X, "b")], "__copy__"), at=2),
    "an old checkpoint, cleared": Case(chain, one(None, "__end__"), at=2),
    "an old checkpoint, new input": Case(chain, one(X, "__input__"), at=1),
    "the head by its id": Case(chain, one(X, "b"), at=0, stop_at=["b"]),
    "who asks is answered for": Case(pair, one(X, "b")),
    "who finished is written again": Case(pair, one(X, "a")),
    "what finished counts when cleared": Case(pair, one(None, "__end__")),
    "a source of a join": Case(joined, one(X, "b")),
    "a path function sees the update": Case(branching, one({"log": ["1", "2", "3"]}, "a")),
    "a path function sends": Case(branching, one({"log": ["1"]}, "a"), stop_at=["b"]),
    "a sent task is answered for": Case(branching, one(X, "b"), stop_at=["b"]),
    "a subgraph as a node": Case(nested, one(X, "sub")),
    "inside a subgraph": Case(nested, one(X, "m"), inside="sub"),
    "inside a subgraph, as who ran last": Case(nested, one(X), inside="sub"),
    "inside a subgraph, cleared": Case(nested, one(None, "__end__"), inside="sub"),
    "refused: nobody ran alone": Case(pair, one(X), stop_at=["c"], goes_on_with="answer"),
    "refused: unknown node": Case(chain, one(X, "nobody")),
    "refused: the end with values": Case(chain, one(X, "__end__")),
    "refused: no input": Case(chain, one(None, "__input__")),
    "refused: nothing to copy": Case(chain, one(None, "__copy__"), given=None),
    "refused: no node among several": Case(chain, lambda lib: [[lib.StateUpdate(X, "a"), lib.StateUpdate(X)]]),
    "refused: input and more": Case(chain, lambda lib: [[lib.StateUpdate(X, "__input__"), lib.StateUpdate(X, "a")]]),
    "refused: copy and more": Case(chain, lambda lib: [[lib.StateUpdate(None, "__copy__"), lib.StateUpdate(X, "a")]]),
    "refused: the end and more": Case(chain, lambda lib: [[lib.StateUpdate(None, "__end__"), lib.StateUpdate(X, "a")]]),
    "refused: no supersteps": Case(chain, lambda lib: []),
    "refused: an empty superstep": Case(chain, lambda lib: [[lib.StateUpdate(X, "a")], []]),
    "refused: not a state": Case(chain, one("text", "a")),
}


def played(case: Case, lib: Names, colour: Colour) -> dict[str, Any]:
    """Play a case with a library and return all that can be seen of it."""
    app = case.builder(lib).compile(checkpointer=lib.InMemorySaver(), interrupt_before=list(case.stop_at))
    if case.given is not None:
        colour.invoke(app, case.given, THREAD)
    if case.goes_on_with is not None:
        colour.invoke(app, lib.Command(resume=case.goes_on_with), THREAD)
    config: Any = THREAD if case.at is None else list(app.get_state_history(THREAD))[case.at].config
    if case.inside is not None:
        (task,) = app.get_state(THREAD).tasks
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": f"{task.name}:{task.id}"}}
    seen: dict[str, Any] = {}
    try:
        made = updated(colour, app, config, case.supersteps(lib))
    except lib.InvalidUpdateError:
        seen["error"] = "InvalidUpdateError"
    except ValueError:
        seen["error"] = "ValueError"
    else:
        seen["address"] = shape_of(made["configurable"])
    seen["history"] = history_of(app)
    seen["live"] = state_of(app.get_state(THREAD, subgraphs=True))
    if "error" not in seen:
        for _ in range(3):
            seen["result"] = result_of(colour, app)
        seen["history after"] = history_of(app)
    return seen


def result_of(colour: Colour, app: Any) -> Any:
    """Go on with a thread and return the output, without questions."""
    try:
        with quiet():  # a join that an update starved is told of by us alone
            output = colour.invoke(app, None, THREAD)
    except Exception as error:  # noqa: BLE001  # whatever it is, it must be the same
        return type(error).__name__
    return {key: value for key, value in output.items() if key != "__interrupt__"}


def updated(colour: Colour, app: Any, config: Any, supersteps: Any) -> Any:
    """Update a thread; a single update goes through ``update_state``."""
    single = supersteps[0][0] if len(supersteps) == 1 and len(supersteps[0]) == 1 else None
    if colour.name == "sync":
        return app.bulk_update_state(config, supersteps) if single is None else app.update_state(config, *single)
    return asyncio.run(app.abulk_update_state(config, supersteps) if single is None else app.aupdate_state(config, *single))


def shape_of(configurable: dict[str, Any]) -> dict[str, Any]:
    """Return an address without its ids."""
    depth = len(configurable.get("checkpoint_map", {}))
    return {"keys": sorted(configurable), "ns": configurable["checkpoint_ns"].partition(":")[0], "depth": depth}


def history_of(app: Any) -> list[Any]:
    """Return the thread's states, newest first, each with the place of its parent."""
    found = list(app.get_state_history(THREAD))
    ids = [state.config["configurable"]["checkpoint_id"] for state in found]
    parents = [state.parent_config and ids.index(state.parent_config["configurable"]["checkpoint_id"]) for state in found]
    return [(state_of(state), parent) for state, parent in zip(found, parents, strict=True)]


def state_of(state: Any) -> dict[str, Any]:
    """Return what a state says, without ids."""
    return {
        "values": state.values,
        "next": state.next,
        "metadata": state.metadata and {key: state.metadata[key] for key in ("source", "step")},
        "tasks": [(task.name, task.result, [q.value for q in task.interrupts]) for task in state.tasks],
        "inner": [state_of(task.state) for task in state.tasks if hasattr(task.state, "values") and hasattr(task.state, "next")],
    }


@pytest.mark.parametrize("name", CASES)
def test_an_update_does_what_it_does_in_langgraph(name: str, colour: Colour) -> None:
    """The same states, history and errors, and the run goes on in the same way."""
    ours, theirs = played(CASES[name], OURS, colour), played(CASES[name], ORACLE, colour)

    assert ours == theirs
    assert ("error" in ours) == name.startswith("refused")
