"""What a running node is told of its run: context, store, execution info, server info (spec 10.4, 10.6)."""

from __future__ import annotations

import contextvars
import threading
import time
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from colours import Colour
from pydantic import BaseModel, ValidationError
from small_graphs import PATIENCE_S, State, chain, parallel, says

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig, get_config, get_store, get_stream_writer
from tracegraph.errors import NodeError
from tracegraph.func import entrypoint, task
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import ExecutionInfo, Runtime, ServerInfo, get_runtime
from tracegraph.types import RetryPolicy, Send

OUTER: dict[str, Any] = {"configurable": {"thread_id": "outer", "k": 1}, "metadata": {"m": 1}, "tags": ["u"]}


@dataclass
class Ctx:
    user: str
    n: int = 0


class Model(BaseModel):
    user: str


class Typed(TypedDict):
    user: str


def one(body: Any, schema: Any = None, *, name: str = "node", **options: Any) -> Any:
    """Return a graph of one node."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State, context_schema=schema)
    graph.add_node(name, body)
    graph.add_edge(START, name)
    return graph.compile(**options)


class Seen(list[Any]):
    """Collects what nodes see: each of its nodes notes what a function makes of the runtime."""

    def node(self, look: Any) -> Any:
        """Return a node that notes ``look(runtime)``."""

        def body(state: State, runtime: Runtime[Any]) -> None:
            self.append(look(runtime))

        return body


@pytest.fixture
def seen() -> Seen:
    return Seen()


# --- context -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        (Ctx, None, None),
        (Ctx, {"user": "u"}, Ctx("u")),
        (Ctx, Ctx("u", 2), Ctx("u", 2)),
        (Model, {"user": "u"}, Model(user="u")),
        (Model, Model(user="u"), Model(user="u")),
        (Typed, {"user": "u"}, {"user": "u"}),
        (None, {"user": "u"}, {"user": "u"}),
    ],
)
def test_nodes_see_the_context_as_its_schema_has_it(colour: Colour, seen: Seen, schema: Any, given: Any, expected: Any) -> None:
    """As a run's result or as its stream; nothing is made where nothing was given (K7)."""
    app = one(seen.node(lambda runtime: runtime.context), schema)

    colour.invoke(app, {"n": 0}, context=given)
    colour.stream(app, {"n": 0}, context=given)

    assert seen == [expected, expected]
    assert type(seen[0]) is type(expected)


@pytest.mark.parametrize(
    ("schema", "given", "error"),
    [(Ctx, {"who": "u"}, TypeError), (Ctx, {}, TypeError), (Model, {"who": "u"}, ValidationError)],
)
def test_a_context_that_does_not_fit_is_the_callers_error(
    colour: Colour, seen: Seen, schema: Any, given: Any, error: type[Exception]
) -> None:
    """Before anything is run or saved (K7)."""
    saver = InMemorySaver()
    app = one(seen.node(lambda runtime: runtime.context), schema, checkpointer=saver)

    for call in (colour.invoke, colour.stream):
        with pytest.raises(error):
            call(app, {"n": 0}, OUTER, context=given)

    assert (seen, list(saver.list(None))) == ([], [])


def test_a_graph_inside_inherits_the_context_unless_it_is_given_one(colour: Colour, seen: Seen) -> None:
    """That of its own call is made with its own schema; the outer one is as it was."""
    leaf = one(seen.node(lambda runtime: runtime.context), Model)

    def call(state: State, runtime: Runtime[Ctx]) -> None:
        leaf.invoke({})
        leaf.invoke({}, context={"user": "own"})
        leaf.invoke({})
        seen.append(runtime.context)

    colour.invoke(one(call, Ctx), {}, context={"user": "outer"})

    assert seen == [Ctx("outer"), Model(user="own"), Ctx("outer"), Ctx("outer")]


# --- store -------------------------------------------------------------------------------------------------------


def test_a_graph_inside_has_the_outer_runs_store_and_no_other(colour: Colour, seen: Seen) -> None:
    """Not even where the outer run has none; run by itself it has its own."""
    leaf = one(seen.node(lambda runtime: (runtime.store, get_store())), store="inner")
    call = lambda state: leaf.invoke({}) and None  # noqa: E731  # the same node twice

    colour.invoke(one(call, store="outer"), {})
    colour.invoke(one(call), {})
    colour.invoke(leaf, {})

    assert seen == [("outer", "outer"), (None, None), ("inner", "inner")]


# --- execution info ----------------------------------------------------------------------------------------------


def test_execution_info_says_which_task_this_is(colour: Colour, seen: Seen) -> None:
    """As the config does, and the state: thread, namespace, checkpoint, task."""
    saver = InMemorySaver()
    before = time.time()

    def look(state: State, config: RunnableConfig, runtime: Runtime[None]) -> None:
        seen.append((runtime.execution_info, config))

    app = one(look, checkpointer=saver, interrupt_before=["node"])
    colour.invoke(app, {"n": 0}, OUTER)
    (waiting,) = app.get_state(OUTER).tasks
    checkpoint_id = app.get_state(OUTER).config["configurable"]["checkpoint_id"]
    colour.invoke(app, None, OUTER)

    ((info, config),) = seen
    assert isinstance(info, ExecutionInfo)
    assert (info.task_id, info.checkpoint_id, info.thread_id, info.run_id) == (waiting.id, checkpoint_id, "outer", None)
    assert info.checkpoint_ns == config["configurable"]["checkpoint_ns"] == f"node:{waiting.id}"
    assert (info.node_attempt, before <= (info.node_first_attempt_time or 0) <= time.time()) == (1, True)


def test_attempts_are_counted_from_the_time_of_the_first(colour: Colour, seen: Seen) -> None:
    """Each attempt has a runtime of its own, and get_runtime() is the same (K11)."""

    def flaky(state: State, runtime: Runtime[None]) -> None:
        assert get_runtime() is runtime
        seen.append(runtime.execution_info)
        if len(seen) < 3:
            raise ConnectionError("down")

    graph = StateGraph(State)
    graph.add_node("node", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    graph.add_edge(START, "node")

    colour.invoke(graph.compile(), {"n": 0})

    assert [info.node_attempt for info in seen] == [1, 2, 3]
    assert len({(info.task_id, info.node_first_attempt_time) for info in seen}) == 1


def test_every_task_has_an_info_of_its_own(colour: Colour, seen: Seen) -> None:
    """Sends of one node, called tasks and error handlers among them."""
    note = seen.node(lambda runtime: runtime.execution_info.task_id)

    @task
    def called(runtime: Runtime[None]) -> None:
        note({}, runtime)

    def caller(state: State, runtime: Runtime[None]) -> None:
        note({}, runtime)
        called().result(PATIENCE_S)
        raise ValueError

    def handler(state: State, error: NodeError, runtime: Runtime[None]) -> None:
        note({}, runtime)

    graph = StateGraph(State)
    graph.add_node("sent", note)
    graph.add_node("caller", caller, error_handler=handler)
    graph.add_conditional_edges(START, lambda state: [Send("sent", {}), Send("sent", {}), "caller"])

    colour.invoke(graph.compile(), {"n": 0})

    assert len(seen) == len(set(seen)) == 5


def test_a_run_inside_with_a_thread_of_its_own_says_so(colour: Colour, seen: Seen) -> None:
    """Keys of the outer thread are gone, tags, metadata and limits stay (K2)."""

    def look(state: State, config: RunnableConfig, runtime: Runtime[None]) -> None:
        info = runtime.execution_info
        assert info is not None
        own = config["configurable"]
        seen.append((own["thread_id"], own.get("k"), info.thread_id, info.checkpoint_ns.startswith("leaf:")))
        seen.append((config["metadata"]["thread_id"], config["metadata"]["m"], config["tags"]))
        seen.append((config["recursion_limit"], config["max_concurrency"]))

    leaf = one(look, name="leaf", checkpointer=InMemorySaver())

    def call(state: State) -> None:
        leaf.invoke({"n": 0}, {"configurable": {"thread_id": "inner"}})

    config = {**OUTER, "recursion_limit": 9, "max_concurrency": 3}
    colour.invoke(one(call, checkpointer=InMemorySaver()), {"n": 0}, config)

    assert seen == [("inner", None, "inner", True), ("inner", 1, ["u"]), (9, 3)]


def test_handlers_are_told_the_thread_that_each_run_has(colour: Colour) -> None:
    """Not the outer one where a run inside has its own, or traces are filed under the wrong conversation (K13, case C21)."""
    told: list[tuple[str, Any]] = []

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            told.append((kwargs["name"], kwargs["metadata"].get("thread_id")))

    own, shared = one(says(), name="own", checkpointer=InMemorySaver()), one(says(), name="shared")

    def call(state: State) -> None:
        own.invoke({}, {"configurable": {"thread_id": "inner"}})
        shared.invoke({})

    colour.invoke(one(call, name="call", checkpointer=InMemorySaver()), {}, {**OUTER, "callbacks": [Handler()]})

    expected = {"call": "outer", "own": "inner", "shared": "outer"}
    assert {name: thread for name, thread in told if name != "LangGraph"} == expected
    assert [thread for name, thread in told if name == "LangGraph"] == ["outer", "inner", "outer"]


def test_a_nodes_config_says_where_it_stands(colour: Colour, seen: Seen) -> None:
    """What the node says of itself wins; nothing is there that nobody set (10.4)."""

    def look(state: State, config: RunnableConfig) -> None:
        seen.append(config)

    graph = StateGraph(State)
    graph.add_node("node", look, metadata={"m": "the node's", "langgraph_step": "mine"})
    graph.add_edge(START, "node")

    colour.invoke(graph.compile(), {}, {"metadata": {"m": "the run's", "u": 1}, "configurable": {"k": 1}, "run_name": "r"})

    (config,) = seen
    ns = config["configurable"]["checkpoint_ns"]
    assert config["metadata"] == {
        "m": "the node's",
        "u": 1,
        "langgraph_step": "mine",
        "langgraph_node": "node",
        "langgraph_triggers": ("branch:to:node",),
        "langgraph_path": ("__pregel_pull", "node"),
        "langgraph_checkpoint_ns": ns,
    }
    assert config.keys() == {"metadata", "callbacks", "configurable"}
    assert config["configurable"] == {"k": 1, "checkpoint_id": None, "checkpoint_ns": ns, "checkpoint_map": {}}


# --- server info -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configurable", "expected"),
    [
        ({}, None),
        ({"thread_id": "t"}, None),
        ({"assistant_id": "a"}, ServerInfo("a", "")),
        ({"graph_id": "g"}, ServerInfo("", "g")),
        ({"assistant_id": None, "graph_id": "g"}, ServerInfo("", "g")),
        ({"assistant_id": "a", "graph_id": "g", "langgraph_auth_user": "u"}, ServerInfo("a", "g", "u")),
    ],
)
def test_server_info_is_what_a_server_puts_into_the_config(
    colour: Colour, seen: Seen, configurable: dict[str, Any], expected: Any
) -> None:
    """None where no server did; graphs inside have it too."""
    look = seen.node(lambda runtime: runtime.server_info)

    colour.invoke(chain(a=look, inner=chain(b=look)), {}, {"configurable": configurable})

    assert seen == [expected, expected]


# --- previous ----------------------------------------------------------------------------------------------------


def test_previous_is_what_the_entrypoint_returned_last(colour: Colour, seen: Seen) -> None:
    """Its tasks see it too; a graph inside has a state of its own, and no previous value."""
    leaf = one(seen.node(lambda runtime: ("leaf", runtime.previous)))

    @task
    def called(runtime: Runtime[None]) -> None:
        seen.append(("task", runtime.previous))

    @entrypoint(checkpointer=InMemorySaver())
    def remember(given: int, *, previous: Any = None, runtime: Runtime[None]) -> int:
        seen.append(("entrypoint", previous, runtime.previous, get_runtime().previous))
        called().result(PATIENCE_S)
        leaf.invoke({"n": 0})
        return given

    for given in (1, 2):
        colour.invoke(remember, given, OUTER)

    assert seen == [
        *[("entrypoint", None, None, None), ("task", None), ("leaf", None)],
        *[("entrypoint", 1, 1, 1), ("task", 1), ("leaf", None)],
    ]


# --- where the helpers work --------------------------------------------------------------------------------------


def test_helpers_work_in_path_functions_and_called_tasks(colour: Colour, seen: Seen) -> None:
    """And tell of the node they are part of, or the task (K12)."""

    def look() -> None:
        get_stream_writer()("chunk")
        seen.append((get_config()["metadata"]["langgraph_node"], get_store(), get_runtime(Ctx).context.user))

    @task
    def called() -> None:
        look()

    def node(state: State) -> None:
        called().result(PATIENCE_S)

    def path(state: State) -> str:
        look()
        return END

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State, context_schema=Ctx)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", path)

    chunks = colour.stream(graph.compile(store="store"), {}, context={"user": "u"}, stream_mode="custom")

    assert seen == [("called", "store", "u"), ("node", "store", "u")]
    assert chunks == ["chunk", "chunk"]


def test_helpers_fail_again_once_the_run_is_over(colour: Colour) -> None:
    """A run leaves nothing behind in its caller's context (K12)."""
    colour.invoke(one(says()), {})

    for helper in (get_config, get_store, get_stream_writer, get_runtime):
        with pytest.raises(RuntimeError, match="outside a run"):
            helper()


var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="unset")


def test_siblings_do_not_see_each_others_context_variables(colour: Colour, seen: Seen) -> None:
    """Not even while they run at once (K4)."""
    both_have_set = threading.Barrier(2)

    def setter(name: str) -> Any:
        def body(state: State) -> None:
            var.set(name)
            both_have_set.wait(PATIENCE_S)
            seen.append((name, var.get()))

        return body

    colour.invoke(parallel(a=setter("a"), b=setter("b")), {})

    assert sorted(seen) == [("a", "a"), ("b", "b")]
    assert var.get() == "unset"
