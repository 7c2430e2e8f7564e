"""What handlers and node code see of real runs, in both colours (spec 10; K1 to K6, K8, K9, K11 to K13)."""

from __future__ import annotations

import contextvars
import logging
import uuid
from collections.abc import Callable
from typing import Any, TypedDict
from uuid import UUID

import pytest
from colours import ASYNC, SYNC, Colour
from recorded import Recorder

from tracegraph.callbacks import AsyncCallbackHandler, BaseCallbackHandler, dispatch_custom_event
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig, get_config, get_store, get_stream_writer
from tracegraph.errors import GraphRecursionError
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import Runtime, get_runtime
from tracegraph.types import Command, RetryPolicy, StreamWriter, interrupt


class State(TypedDict, total=False):
    x: int


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    return request.param  # type: ignore[no-any-return]


def one_node(body: Callable[..., Any], name: str = "a", **options: Any) -> StateGraph[Any]:
    graph = StateGraph(State)
    graph.add_node(name, body, **options)
    graph.add_edge(START, name)
    return graph


class Tree(Recorder):
    """Draws the run tree: name, tags and outcome of each run, children below their parents, by time."""

    def drawn(self) -> list[str]:
        ends: dict[UUID, str] = {}
        for name, args, kwargs in self.calls:
            if name in {"on_chain_end", "on_tool_end"}:
                ends[kwargs["run_id"]] = f"-> {args[0]!r}"
            elif name == "on_chain_error":
                ends[kwargs["run_id"]] = f"!! {type(args[0]).__name__}"
        depth: dict[UUID | None, int] = {None: -1}
        lines = []
        for name, _, kwargs in self.calls:
            if name in {"on_chain_start", "on_tool_start"}:
                depth[kwargs["run_id"]] = level = depth[kwargs["parent_run_id"]] + 1
                end = ends.pop(kwargs["run_id"], "never ended")
                lines.append(f"{'  ' * level}{kwargs['name']} {' '.join(kwargs['tags'])} {end}")
        assert not ends, "a run ended that had not started"
        return lines


def call_tool(state: State, config: RunnableConfig) -> State:
    tool = config["callbacks"].on_tool_start({"name": "add"}, "1")
    tool.on_tool_end(2)
    return {"x": 1}


def tool_and_subgraph() -> Any:
    sub = one_node(lambda state: {"x": state["x"] + 1}, "leaf").compile(name="SUB")
    graph = StateGraph(State)
    graph.add_node("a", call_tool)
    graph.add_node("b", sub)

    def enter(state: State) -> str:
        return "a"

    def route(state: State) -> str:
        return "b"

    graph.add_conditional_edges(START, enter, ["a"])
    graph.add_conditional_edges("a", route, ["b"])
    graph.add_edge("b", END)
    return graph.compile()


def test_run_tree_of_branches_tool_and_subgraph(colour: Colour) -> None:
    """Names, parents, tags and outcomes as spec 10.8 has them (K8)."""
    tree = Tree()
    colour.invoke(tool_and_subgraph(), {"x": 0}, {"callbacks": [tree], "tags": ["u"]})
    assert tree.drawn() == [
        "LangGraph u -> {'x': 2}",
        "  __start__ graph:step:0 u langsmith:hidden -> {'x': 0}",
        "    enter seq:step:2 u langsmith:hidden -> 'a'",
        "  a graph:step:1 u -> {'x': 1}",
        "    add seq:step:1 u -> 2",
        "    route seq:step:3 u -> 'b'",
        "  b graph:step:2 u -> {'x': 2}",
        "    SUB seq:step:1 u -> {'x': 2}",
        "      leaf graph:step:1 u -> {'x': 2}",
    ]


def test_run_tree_is_the_one_langgraph_makes(colour: Colour) -> None:
    """The same graph in both libraries, told to the same kind of handler: equal but for ids."""
    from langchain_core.callbacks import BaseCallbackHandler as Theirs
    from langgraph.graph import StateGraph as TheirGraph

    class Handler(Theirs):
        def __init__(self) -> None:
            self.seen: list[Any] = []
            self.ids: dict[Any, int] = {None: -1}

        def _id(self, run_id: Any) -> int:
            return self.ids.setdefault(run_id, len(self.ids))

        def on_chain_start(
            self,
            serialized: Any,
            inputs: Any,
            *,
            run_id: Any,
            parent_run_id: Any = None,
            tags: Any = None,
            metadata: Any = None,
            **kwargs: Any,
        ) -> None:
            shown = {k: v for k, v in metadata.items() if k not in {"langgraph_checkpoint_ns", "checkpoint_ns"}}
            self.seen.append(("start", self._id(run_id), self._id(parent_run_id), kwargs, serialized, inputs, tags, shown))

        def on_chain_end(self, outputs: Any, *, run_id: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
            self.seen.append(("end", self._id(run_id), self._id(parent_run_id), outputs, kwargs))

    def enter(state: State) -> str:
        return "a"

    def told_by(graph_type: Any) -> list[Any]:
        sub = graph_type(State)
        sub.add_node("leaf", lambda state: {"x": state["x"] + 1})
        sub.add_edge(START, "leaf")
        graph = graph_type(State)
        graph.add_node("a", lambda state: {"x": 1}, metadata={"own": 1})
        graph.add_node("b", sub.compile(name="SUB"))
        graph.add_conditional_edges(START, enter, ["a"])
        graph.add_edge("a", "b")
        handler = Handler()
        config = {"callbacks": [handler], "tags": ["u", "v"], "metadata": {"m": 1}, "configurable": {"thread_id": "7"}}
        colour.invoke(graph.compile(), {"x": 0}, config)
        return handler.seen

    assert told_by(StateGraph) == told_by(TheirGraph)


def test_graph_called_in_a_node_inherits_tags_metadata_and_handlers(colour: Colour) -> None:
    """Without config, and below the node (K5); thread id in metadata (K13)."""
    inner = one_node(lambda state: {"x": 2}, "leaf").compile(name="INNER")

    def call(state: State) -> Any:
        return inner.invoke(state)

    tree = Tree()
    config = {"callbacks": [tree], "tags": ["u"], "metadata": {"m": 1}, "configurable": {"thread_id": "7"}, "run_name": "mine"}
    colour.invoke(one_node(call).compile(), {"x": 0}, config)

    assert tree.drawn() == [
        "mine u -> {'x': 2}",
        "  a graph:step:1 u -> {'x': 2}",
        "    INNER seq:step:1 u -> {'x': 2}",
        "      leaf graph:step:1 u -> {'x': 2}",
    ]
    for start in tree.of("on_chain_start"):
        assert (start["metadata"]["m"], start["metadata"]["thread_id"]) == (1, "7")


def test_async_graph_called_in_an_async_node() -> None:
    """The tree is the same whether the inner graph is awaited or called."""
    inner = one_node(lambda state: {"x": 2}, "leaf").compile(name="INNER")

    async def call(state: State) -> Any:
        return await inner.ainvoke(state)

    tree = Tree()
    ASYNC.invoke(one_node(call).compile(), {"x": 0}, {"callbacks": [tree]})
    assert [line.split()[0] for line in tree.drawn()] == ["LangGraph", "a", "INNER", "leaf"]


def test_handler_of_a_nested_call_hears_of_that_call_only(colour: Colour) -> None:
    """The root's handler hears of everything, each once."""
    inner = one_node(lambda state: {"x": 2}, "leaf").compile(name="INNER")
    outer_tree, inner_tree = Tree(), Tree()

    def call(state: State) -> Any:
        inner.invoke(state, {"callbacks": [inner_tree, outer_tree]})
        return inner.invoke(state)

    colour.invoke(one_node(call).compile(), {"x": 0}, {"callbacks": [outer_tree]})

    assert [start["name"] for start in inner_tree.of("on_chain_start")] == ["INNER", "leaf"]
    assert inner_tree.of("on_chain_start")[0]["parent_run_id"] == outer_tree.of("on_chain_start")[1]["run_id"]
    assert [line.split()[0] for line in outer_tree.drawn()] == ["LangGraph", "a", "INNER", "leaf", "INNER", "leaf"]


def test_run_id_of_the_config_is_the_roots(colour: Colour) -> None:
    """Execution info has it as text, a child run has none (K11)."""
    run_id, seen = uuid.uuid4(), []
    inner = one_node(lambda state, runtime: seen.append(runtime.execution_info.run_id), "leaf").compile()

    def node(state: State, runtime: Runtime[None]) -> None:
        assert runtime.execution_info is not None
        seen.append(runtime.execution_info.run_id)
        inner.invoke({"x": 1})

    recorder = Recorder()
    colour.invoke(one_node(node).compile(), {"x": 0}, {"callbacks": [recorder], "run_id": run_id})
    assert seen == [str(run_id), None]
    assert recorder.of("on_chain_start")[0]["run_id"] == run_id


def test_each_attempt_is_a_run_and_execution_info_counts_them(colour: Colour) -> None:
    """The failed one ends with its error, the next has another id (K11)."""
    attempts: list[int] = []

    def flaky(state: State, runtime: Runtime[None]) -> State:
        assert runtime.execution_info is not None
        attempts.append(runtime.execution_info.node_attempt)
        if len(attempts) < 3:
            raise ConnectionError("x")
        return {"x": 5}

    tree = Tree()
    policy = RetryPolicy(initial_interval=0.001, jitter=False)
    colour.invoke(one_node(flaky, retry_policy=policy).compile(), {"x": 0}, {"callbacks": [tree]})

    assert attempts == [1, 2, 3]
    assert tree.drawn() == [
        "LangGraph  -> {'x': 5}",
        "  a graph:step:1 !! ConnectionError",
        "  a graph:step:1 !! ConnectionError",
        "  a graph:step:1 -> {'x': 5}",
    ]
    assert [state.attempt_number for state in tree.first("on_retry")] == [1, 2]


def test_error_reaches_every_level(colour: Colour) -> None:
    """Inner node, child graph, node, root: the same exception."""

    def boom(state: State) -> State:
        raise ValueError("boom")

    graph = one_node(one_node(boom, "leaf").compile(name="SUB"))
    tree = Tree()
    with pytest.raises(ValueError, match="boom") as raised:
        colour.invoke(graph.compile(), {"x": 0}, {"callbacks": [tree]})
    assert tree.names().count("on_chain_error") == 4
    assert all(error is raised.value for error in tree.first("on_chain_error"))


def test_step_limit_is_an_error_of_the_root(colour: Colour) -> None:
    """The nodes themselves went well."""
    graph = one_node(lambda state: {"x": 1})
    graph.add_edge("a", "a")
    tree = Tree()
    with pytest.raises(GraphRecursionError):
        colour.invoke(graph.compile(), {"x": 0}, {"callbacks": [tree], "recursion_limit": 2})
    assert [line.split()[0] for line in tree.drawn()] == ["LangGraph", "a", "a"]
    assert [type(error) for error in tree.first("on_chain_error")] == [GraphRecursionError]


def test_pause_and_resume(colour: Colour) -> None:
    """No handler is told of an error; on_interrupt once, before the root ends; on_resume at each level."""

    def ask(state: State) -> State:
        return {"x": interrupt("ok?")}

    app = one_node(one_node(ask, "leaf").compile(name="SUB")).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "7"}}
    paused, resumed = Tree(), Tree()
    colour.invoke(app, {"x": 0}, {**config, "callbacks": [paused]})
    colour.invoke(app, Command(resume=3), {**config, "callbacks": [resumed]})

    assert "on_chain_error" not in paused.names() + resumed.names()
    assert [name for name in paused.names() if name in {"on_interrupt", "on_chain_end"}][-2:] == ["on_interrupt", "on_chain_end"]
    (stop,) = paused.first("on_interrupt")
    assert (stop.status, stop.checkpoint_ns, [i.value for i in stop.interrupts]) == ("pending", (), ["ok?"])
    assert stop.run_id == paused.of("on_chain_start")[0]["run_id"]
    assert paused.first("on_resume") == []

    levels = [event.checkpoint_ns for event in resumed.first("on_resume")]
    assert [len(ns) for ns in levels] == [0, 1]
    assert levels[1][0].startswith("a:")
    order = [name for name in resumed.names() if name in {"on_chain_start", "on_resume"}]
    assert order == ["on_chain_start", "on_resume", "on_chain_start", "on_chain_start", "on_resume", "on_chain_start"]
    assert isinstance(resumed.calls[0][1][1], Command)


def test_closing_a_stream_early_ends_the_root_as_abandoned() -> None:
    """GeneratorExit, as Python has it."""
    graph = one_node(lambda state: {"x": 1})
    graph.add_edge("a", "a")
    tree = Tree()
    stream = graph.compile().stream({"x": 0}, {"callbacks": [tree]})
    next(stream)
    stream.close()
    assert tree.drawn()[0] == "LangGraph  !! GeneratorExit"
    assert "never ended" not in " ".join(tree.drawn())


class Broken(BaseCallbackHandler):
    def __init__(self, *, raise_error: bool) -> None:
        self.raise_error = raise_error

    def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **kwargs: Any) -> None:
        if name == "a":
            raise KeyError("handler")


class BrokenLater(AsyncCallbackHandler):
    def __init__(self, *, raise_error: bool) -> None:
        self.raise_error = raise_error

    async def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **kwargs: Any) -> None:
        if name == "a":
            raise KeyError("handler")


@pytest.mark.parametrize("kind", [Broken, BrokenLater])
def test_failing_handler_does_not_fail_the_run(colour: Colour, kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged; with raise_error the run fails with the handler's exception (K9)."""
    app = one_node(lambda state: {"x": 1}).compile()
    with caplog.at_level(logging.WARNING, "tracegraph.callbacks"):
        assert colour.invoke(app, {"x": 0}, {"callbacks": [kind(raise_error=False)]}) == {"x": 1}
    assert len(caplog.records) == 1

    with pytest.raises(KeyError, match="handler"):
        colour.invoke(app, {"x": 0}, {"callbacks": [kind(raise_error=True)]})


def test_async_handlers_are_told_everything_in_order(colour: Colour) -> None:
    """Awaited in an async run, run to completion in a sync one."""
    seen: list[str] = []

    class Later(AsyncCallbackHandler):
        async def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **kwargs: Any) -> None:
            seen.append(f"start {name}")

        async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            seen.append(f"end {outputs}")

    app = one_node(lambda state: {"x": 1}).compile()
    colour.invoke(app, {"x": 0}, {"callbacks": [Later()]})
    assert seen == ["start LangGraph", "start a", "end {'x': 1}", "end {'x': 1}"]


def test_a_graph_called_in_a_handler_is_a_root_run(colour: Colour) -> None:
    """Handlers are no part of the run they watch."""
    inner = one_node(lambda state, config: seen.append(config), "leaf").compile()
    seen: list[Any] = []

    class Calls(BaseCallbackHandler):
        def on_chain_end(self, outputs: Any, *, parent_run_id: Any = None, **kwargs: Any) -> None:
            if parent_run_id is not None:
                inner.invoke({"x": 0})

    config = {"callbacks": [Calls()], "tags": ["u"], "configurable": {"k": 1}}
    colour.invoke(one_node(lambda state: {"x": 1}).compile(), {"x": 0}, config)
    assert [("tags" in found, found["configurable"].get("k")) for found in seen] == [(False, None)]


def test_custom_event_is_told_below_the_node(colour: Colour) -> None:
    """With the tags of what the body calls."""
    recorder = Recorder()

    def node(state: State) -> State:
        dispatch_custom_event("progress", {"pct": 5})
        return {"x": 1}

    colour.invoke(one_node(node).compile(), {"x": 0}, {"callbacks": [recorder], "tags": ["u"]})
    ((_, args, kwargs),) = [call for call in recorder.calls if call[0] == "on_custom_event"]
    assert (args, kwargs["tags"]) == (("progress", {"pct": 5}), ["seq:step:1", "u"])
    assert kwargs["run_id"] == recorder.of("on_chain_start")[1]["run_id"]


def test_supersteps_and_checkpoints_are_told(colour: Colour) -> None:
    """In the order of the run."""
    recorder = Recorder()
    app = one_node(lambda state: {"x": 1}).compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"x": 0}, {"callbacks": [recorder], "configurable": {"thread_id": "7"}}, durability="sync")
    steps = [(name, args[0], kwargs.get("nodes")) for name, args, kwargs in recorder.calls if "superstep" in name]
    assert ("on_superstep_start", 1, ("a",)) in steps
    assert ("on_superstep_end", 1, None) in steps
    assert [kwargs["source"] for kwargs in recorder.of("on_checkpoint")] == ["input", "loop", "loop"]


# Config


def test_unknown_key_and_explicit_limit(colour: Colour) -> None:
    """Own keys move into configurable, an explicit limit is in the node's config (K1)."""
    seen: list[Any] = []
    app = one_node(lambda state, config: seen.append(config)).compile()
    colour.invoke(app, {"x": 0}, {"user": "u1", "recursion_limit": 10007})
    colour.invoke(app, {"x": 0})
    assert (seen[0]["configurable"]["user"], seen[0]["recursion_limit"]) == ("u1", 10007)
    assert "recursion_limit" not in seen[1]


def test_nested_call_with_its_own_thread_is_independent(colour: Colour) -> None:
    """The ambient configurable is dropped; tags and metadata stay (K2), and agree on the thread (D14)."""
    seen: list[Any] = []
    inner = one_node(lambda state, config: seen.append(config), "leaf").compile(checkpointer=InMemorySaver())

    def call(state: State) -> None:
        inner.invoke({"x": 0}, {"configurable": {"thread_id": "inner"}})

    config = {"configurable": {"thread_id": "outer", "k": 1}, "tags": ["u"], "metadata": {"m": 1}}
    colour.invoke(one_node(call).compile(checkpointer=InMemorySaver()), {"x": 0}, config)
    (found,) = seen
    assert (found["configurable"]["thread_id"], "k" in found["configurable"]) == ("inner", False)
    assert (found["tags"], found["metadata"]["m"], found["metadata"]["thread_id"]) == (["u"], 1, "inner")


def test_with_config_makes_a_copy(colour: Colour) -> None:
    """Tags are joined, configurable merged, the original stays as it was (K3)."""
    seen: list[Any] = []
    app = one_node(lambda state, config: seen.append(config)).compile()
    bound = app.with_config({"tags": ["a"], "configurable": {"k": 1, "j": 1}})
    colour.invoke(bound, {"x": 0}, {"tags": ["b"], "configurable": {"k": 2}})
    colour.invoke(app, {"x": 0})
    assert (seen[0]["tags"], seen[0]["configurable"]["k"], seen[0]["configurable"]["j"]) == (["a", "b"], 2, 1)
    assert ("tags" in seen[1], "k" in seen[1]["configurable"]) == (False, False)


var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="unset")


def test_context_variables_stay_in_their_node(colour: Colour) -> None:
    """The caller's are visible in every node; a node's are not seen by later nodes or the caller (K4)."""
    seen: list[str] = []

    def first(state: State) -> State:
        seen.append(var.get())
        var.set("first")
        inner.invoke({"x": 0})
        return {"x": 1}

    inner = one_node(lambda state: seen.append(var.get()), "leaf").compile()
    graph = one_node(first)
    graph.add_node("b", lambda state: seen.append(var.get()))
    graph.add_edge("a", "b")
    token = var.set("caller")
    try:
        colour.invoke(graph.compile(), {"x": 0})
        assert var.get() == "caller"
    finally:
        var.reset(token)
    assert seen == ["caller", "first", "caller"]


def test_helpers_return_what_is_injected(colour: Colour) -> None:
    """The very objects (K6, K12)."""
    seen: list[bool] = []

    def node(state: State, config: RunnableConfig, runtime: Runtime[None], writer: StreamWriter, store=None) -> None:  # type: ignore[no-untyped-def]
        seen.extend([get_config() is config, get_runtime() is runtime, get_stream_writer() is writer, get_store() is store])

    colour.invoke(one_node(node).compile(), {"x": 0})
    assert seen == [True, True, True, True]


def test_config_of_another_annotation_is_not_injected(colour: Colour) -> None:
    """A warning says so (K6)."""

    def node(state: State, config: int = 3) -> State:
        return {"x": config}

    with pytest.warns(UserWarning, match="config"):
        app = one_node(node).compile()
    assert colour.invoke(app, {"x": 0}) == {"x": 3}


def test_missing_store_is_an_error_unless_there_is_a_default(colour: Colour) -> None:
    """The node says it cannot do without (K6)."""

    def needs(state: State, *, store) -> None: ...  # type: ignore[no-untyped-def]

    def can_do_without(state: State, *, store=None) -> State:  # type: ignore[no-untyped-def]
        return {"x": 4 if store is None else 0}

    with pytest.raises(ValueError, match="store"):
        colour.invoke(one_node(needs).compile(), {"x": 0})
    assert colour.invoke(one_node(can_do_without).compile(), {"x": 0}) == {"x": 4}
