"""The same small programs on LangGraph: tasks, checkpoints, debug, messages and tools say the same.

Left out of the comparison: ids and times, and what is different on purpose: a checkpoint's config and metadata are here
those that the history has, where LangGraph adds the caller's configurable keys to the one and leaves the caller's metadata
out of the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from both import State
from colours import SYNC, Colour
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}, "metadata": {"team": "blue"}, "tags": ["mine"]}
OFFERED = {
    "graph": ("StateGraph", "START", "MessagesState"),
    "graph.message": ("push_message",),
    "types": ("Command", "Send", "interrupt", "RetryPolicy"),
    "checkpoint.memory": ("InMemorySaver",),
    "func": ("entrypoint", "task"),
}
_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")


class Library:
    """What the programs are made of."""

    def __init__(self, name: str, colour: Colour) -> None:
        self.colour = colour
        for module, names in OFFERED.items():
            for each in names:
                setattr(self, each, getattr(import_module(f"{name}.{module}"), each))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def chain(self, schema: Any = State, /, **nodes: Any) -> Any:
        """Return a builder that runs *nodes* in a row."""
        graph = self.StateGraph(schema)
        graph.add_sequence(list(nodes.items()))
        return graph.add_edge(self.START, next(iter(nodes)))

    def saved(self, builder: Any, **options: Any) -> Any:
        return builder.compile(checkpointer=self.InMemorySaver(), **options)

    def stream(self, app: Any, given: Any, config: Any = CONFIG, **options: Any) -> list[Any]:
        """Run, and return what was streamed, and what was raised at the end."""
        found: list[Any] = []
        try:
            self.colour.each(app, given, found.append, config, **options)
        except Exception as error:
            found.append(f"raised {error!r}")
        return found


def plain(value: Any) -> Any:
    """Return a part without ids, times, and whose object it is."""
    if isinstance(value, dict):
        left_out = ("timestamp", "ls_integration", "lc_versions")
        known = {plain(key): plain(each) for key, each in value.items() if key not in left_out}
        if {"parent_config", "metadata", "next"} <= known.keys():
            known["metadata"].pop("team", None)
            known["next"] = sorted(known["next"])
            known["tasks"] = sorted(known["tasks"], key=repr)
        return known
    if type(value).__name__ == "Interrupt":
        return f"asks {value.value}"
    if hasattr(value, "content"):
        return type(value).__name__.removesuffix("Chunk"), value.content, _IDS.sub("*", value.id or "")
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, BaseException):
        return repr(value)
    return _IDS.sub("*", value) if isinstance(value, str) else value


def twice(lib: Library) -> Any:
    def node(state: Any) -> Any:
        return [lib.Command(update={"log": ["p"]}), lib.Command(update={"log": ["q"]})]

    app = lib.saved(lib.chain(a=lambda state: {"log": ["x"]}, b=node))
    return lib.stream(app, {"log": []}, stream_mode=["tasks", "updates", "values", "checkpoints", "debug"])


def without_saver(lib: Library) -> Any:
    return lib.stream(lib.chain(a=lambda state: {"log": ["x"]}).compile(), {"log": []}, stream_mode=["debug", "checkpoints"])


def at_exit(lib: Library) -> Any:
    app = lib.saved(lib.chain(a=lambda state: {"log": ["x"]}))
    return lib.stream(app, {"log": []}, stream_mode="debug", durability="exit")


def inside(lib: Library) -> Any:
    """Ask in a graph inside, then answer."""
    inner = lib.chain(i=lambda state: {"log": [lib.interrupt("?")]}).compile()
    app = lib.saved(lib.chain(a=inner, z=lambda state: {"log": ["z"]}))
    modes = ["tasks", "updates", "checkpoints"]
    asked = lib.stream(app, {"log": []}, stream_mode=modes, subgraphs=True)
    return asked, lib.stream(app, lib.Command(resume="r"), stream_mode=modes, subgraphs=True)


def breakpoints(lib: Library) -> Any:
    app = lib.saved(lib.chain(a=lambda state: None, z=lambda state: None), interrupt_after=["a"])
    return [lib.stream(app, given, stream_mode=["debug", "updates"]) for given in ({"log": []}, None)]


def out_of_steps(lib: Library) -> Any:
    app = lib.saved(lib.chain(a=lambda state: None, z=lambda state: None))
    return lib.stream(app, {"log": []}, {**CONFIG, "recursion_limit": 1}, stream_mode=["tasks", "checkpoints"])[:-1]


def fails(lib: Library) -> Any:
    """Fail, then try again."""

    def boom(state: Any) -> Any:
        raise ValueError("boom")

    app = lib.saved(lib.chain(a=boom))
    return [lib.stream(app, given, stream_mode=["tasks", "checkpoints"]) for given in ({"log": []}, None)]


def sends(lib: Library) -> Any:
    graph = lib.StateGraph(State)
    graph.add_node("w", lambda state: {"log": [state]}, metadata={"role": "worker"})
    graph.add_conditional_edges(lib.START, lambda state: [lib.Send("w", 1), lib.Send("w", {"x": 2})])
    return sorted(map(repr, plain(lib.stream(graph.compile(), {"log": []}, stream_mode="tasks"))))


def leaves(lib: Library) -> Any:
    inner = lib.chain(i=lambda state: lib.Command(graph=lib.Command.PARENT, goto="z", update={"log": ["up"]})).compile()
    graph = lib.StateGraph(State)
    graph.add_node("a", inner)
    graph.add_node("z", lambda state: {"log": ["z"]})
    graph.add_edge(lib.START, "a")
    return lib.stream(graph.compile(), {"log": []}, stream_mode="tasks", subgraphs=True)


def function(lib: Library) -> Any:
    @lib.task
    def double(x: int) -> int:
        return x * 2

    @lib.task
    async def adouble(x: int) -> int:
        return x * 2

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def work(x: int) -> Any:
        return double(x).result()

    async def awork(x: int) -> Any:
        return await adouble(x)

    app = work if lib.colour is SYNC else lib.entrypoint(checkpointer=lib.InMemorySaver())(awork)
    return lib.stream(app, 3, stream_mode=["tasks", "updates", "checkpoints"])


def model() -> Any:
    return GenericFakeChatModel(messages=iter([AIMessage("hello there")]), metadata={"m": 1}, tags=["of the model"])


def speak(state: Any) -> Any:
    return {"messages": [model().invoke(state["messages"])]}


def tokens(lib: Library) -> Any:
    app = lib.saved(lib.chain(lib.MessagesState, a=speak, b=speak))
    return lib.stream(app, {"messages": [HumanMessage("hi")]}, stream_mode="messages")


def tokens_inside(lib: Library) -> Any:
    app = lib.saved(lib.chain(lib.MessagesState, a=lib.chain(lib.MessagesState, i=speak).compile(), b=speak))
    given = {"messages": [HumanMessage("hi")]}
    return [
        lib.stream(app, given, {"configurable": {"thread_id": str(deep)}}, stream_mode="messages", subgraphs=deep)
        for deep in (False, True)
    ]


def returned(lib: Library) -> Any:
    """Return old and new messages, as commands, in the wrong place, and none."""
    y, zz = AIMessage("y", id="1"), AIMessage("zz", id="2")
    app = lib.chain(
        lib.MessagesState,
        a=lambda state: {"messages": [HumanMessage("x"), y, *state["messages"]]},
        b=lambda state: lib.Command(update={"messages": [y, zz]}),
        c=lambda state: {"messages": [RemoveMessage("2")]},
        d=lambda state: [lib.Command(update={"messages": [AIMessage("d", id="3")]}), lib.Command(update={"messages": [y]})],
        e=lambda state: {"other": {"deep": [AIMessage("e", id="4")]}},
    ).compile()
    return lib.stream(app, {"messages": [HumanMessage("hi")]}, stream_mode="messages")


def nostream(lib: Library) -> Any:
    def node(state: Any) -> Any:
        return {"messages": [model().with_config(tags=["nostream"]).invoke("hi")]}

    return lib.stream(lib.chain(lib.MessagesState, a=node).compile(), {"messages": []}, stream_mode="messages")


def pushes(lib: Library) -> Any:
    def node(state: Any) -> Any:
        lib.push_message(AIMessage("one", id="1"))
        lib.push_message(AIMessage("two", id="2"), state_key=None)
        return {"messages": [AIMessage("three", id="3")]}

    return lib.stream(
        lib.chain(lib.MessagesState, a=node).compile(), {"messages": []}, stream_mode=["messages", "updates", "values"]
    )


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool
def fail(a: int) -> int:
    """Fail."""
    raise ValueError("nope")


def tool_calls(lib: Library) -> Any:
    def node(state: Any) -> None:
        add.invoke({"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"})
        add.invoke({"a": 2})
        with pytest.raises(ValueError, match="nope"):
            fail.invoke({"name": "fail", "args": {"a": 1}, "id": "c2", "type": "tool_call"})

    return lib.stream(lib.chain(a=node).compile(), {"log": []}, stream_mode=["tools"])


PROGRAMS = (
    twice, without_saver, at_exit, inside, breakpoints, out_of_steps, fails, sends, leaves, function, tokens, tokens_inside,
    returned, nostream, pushes, tool_calls,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_stream_says_what_langgraph_s_says(colour: Colour, program: Callable[[Library], Any]) -> None:
    """Part by part."""
    found, expected = (plain(program(Library(name, colour))) for name in ("tracegraph", "langgraph"))

    assert found == expected
