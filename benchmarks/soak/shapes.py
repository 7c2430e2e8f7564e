"""The graphs of the service, one for each way in which a run can go, in either colour."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias, TypedDict

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_stream_writer
from tracegraph.func import task
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import RunControl, Runtime
from tracegraph.types import RetryPolicy, Send, interrupt

__all__ = ["BoomError", "Call", "State", "build", "build_for_one_run"]

Body: TypeAlias = Callable[..., Any]
Builder: TypeAlias = StateGraph[Any, Any, Any, Any]

SOON = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2, retry_on=ConnectionError)
TIMEOUT_S = 0.002


class BoomError(Exception):
    """What a node raises that fails for good."""


class State(TypedDict, total=False):
    """A log that parallel tasks write to, and a number."""

    xs: Annotated[list[int], operator.add]
    n: int


@dataclass
class Call:
    """What one call of a graph hands to its nodes, as ``context=``."""

    is_waiting: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a node that then waits to be cancelled."""
    control: RunControl = field(default_factory=RunControl)


def build(shape: str, *, is_async: bool, saver: Any = None, **options: Any) -> Any:
    """Return the compiled graph of a shape."""
    builder: Builder = StateGraph(State, context_schema=Call)
    _SHAPES[shape](builder, _coloured(is_async))
    return builder.compile(checkpointer=saver, name=shape, **options)


def build_for_one_run(*, is_async: bool) -> Any:
    """Return a graph that nothing of the service knows: its state, its node and even its saver have classes of their own."""

    class OwnState(TypedDict, total=False):
        n: int

    class OwnSaver(InMemorySaver):
        pass

    step = 1
    builder: Builder = StateGraph(OwnState)
    builder.add_node("add", _coloured(is_async)(lambda state: {"n": state["n"] + step}))
    builder.add_edge(START, "add")
    return builder.compile(checkpointer=OwnSaver())


def _coloured(is_async: bool) -> Callable[[Body], Body]:
    """Return what makes a node's body a coroutine function, or leaves it as it is."""

    def leave(body: Body) -> Body:
        return body

    def make_async(body: Body) -> Body:
        async def abody(state: Any) -> Any:
            await asyncio.sleep(0)
            return body(state)

        return abody

    return make_async if is_async else leave


def _bump(state: State) -> State:
    return {"n": state["n"] + 1}


def _note(state: State) -> State:
    return {"xs": [state["n"]]}


def _scatter(state: State) -> list[Send]:
    return [Send("work", {"n": index}) for index in range(4)]


def _loop(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    builder.add_node("bump", coloured(_bump))
    builder.add_edge(START, "bump")
    builder.add_conditional_edges("bump", lambda state: "bump" if state["n"] < 3 else END)


def _fan_out(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    builder.add_node("work", coloured(_note))
    builder.add_conditional_edges(START, _scatter, ["work"])


def _subgraph(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    child: Builder = StateGraph(State)
    child.add_node("first", coloured(_bump)).add_node("second", coloured(_note))
    child.add_edge(START, "first").add_edge("first", "second")
    builder.add_node("child", child.compile()).add_edge(START, "child")


def _called_graph(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    child: Builder = StateGraph(State)
    child.add_node("bump", coloured(_bump)).add_edge(START, "bump")
    inner = child.compile()

    def call(state: State) -> State:
        return {"n": 1 + inner.invoke({"n": state["n"]})["n"]}

    async def acall(state: State) -> State:
        return {"n": 1 + (await inner.ainvoke({"n": state["n"]}))["n"]}

    builder.add_node("call", call if coloured(call) is call else acall).add_edge(START, "call")


@task
def _double(x: int) -> int:
    return 2 * x


@task
async def _adouble(x: int) -> int:
    await asyncio.sleep(0)
    return 2 * x


def _tasks(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    def call(state: State) -> State:
        return {"xs": [future.result() for future in [_double(1), _double(2)]]}

    async def acall(state: State) -> State:
        return {"xs": list(await asyncio.gather(_adouble(1), _adouble(2)))}

    builder.add_node("call", call if coloured(call) is call else acall).add_edge(START, "call")


def _retry(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    def fail_first(state: State, runtime: Runtime[Call]) -> State:
        assert runtime.execution_info is not None
        if runtime.execution_info.node_attempt == 1:
            raise ConnectionError("the first attempt fails")
        return {"xs": [runtime.execution_info.node_attempt]}

    async def afail_first(state: State, runtime: Runtime[Call]) -> State:
        await asyncio.sleep(0)
        return fail_first(state, runtime)

    body = fail_first if coloured(fail_first) is fail_first else afail_first
    builder.add_node("flaky", body, retry_policy=SOON).add_node("beside", coloured(_note))
    builder.add_edge(START, "flaky").add_edge(START, "beside")


def _ask(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    builder.add_node("ask", coloured(lambda state: {"xs": [interrupt("how many?")]})).add_node("bump", coloured(_bump))
    builder.add_edge(START, "ask").add_edge("ask", "bump")


def _raise(state: State) -> State:
    raise BoomError("for good")


def _fail(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    builder.add_node("fail", coloured(_raise)).add_node("beside", coloured(_note))
    builder.add_edge(START, "fail").add_edge(START, "beside")


def _rescue(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    builder.add_node("fail", coloured(_raise), error_handler=coloured(_note)).add_edge(START, "fail")


def _talk(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    """Build a run that a reader can leave after its first part, with more to come."""

    def talk(state: State) -> State:
        get_stream_writer()("something")
        return {"n": state["n"] + 1}

    _fan_out(builder, coloured)
    builder.add_node("talk", coloured(talk)).add_edge(START, "talk")
    builder.add_node("bump", coloured(_bump)).add_edge("talk", "bump")


def _wait(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    """Build a run that waits in a subgraph until it is cancelled; async only."""

    async def wait(state: State, runtime: Runtime[Call]) -> State:
        runtime.context.is_waiting.set()
        return await _for_ever()

    child: Builder = StateGraph(State, context_schema=Call)
    child.add_node("wait", wait).add_edge(START, "wait")
    builder.add_node("child", child.compile()).add_node("beside", coloured(_note))
    builder.add_edge(START, "child").add_edge(START, "beside")


def _too_slow(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    """Build a node that its timeout ends; async only."""

    async def wait(state: State) -> State:
        return await _for_ever()

    builder.add_node("wait", wait, timeout=TIMEOUT_S).add_edge(START, "wait")


def _for_ever() -> Coroutine[Any, Any, State]:
    async def wait() -> State:
        await asyncio.Event().wait()
        return {}

    return wait()


def _drain(builder: Builder, coloured: Callable[[Body], Body]) -> None:
    def drain(state: State, runtime: Runtime[Call]) -> State:
        runtime.context.control.request_drain("deploy")
        return {"n": state["n"] + 1}

    async def adrain(state: State, runtime: Runtime[Call]) -> State:
        return drain(state, runtime)

    builder.add_node("drain", drain if coloured(drain) is drain else adrain).add_node("bump", coloured(_bump))
    builder.add_edge(START, "drain").add_edge("drain", "bump")


_SHAPES: dict[str, Callable[[Builder, Callable[[Body], Body]], None]] = {
    "loop": _loop,
    "fan-out": _fan_out,
    "subgraph": _subgraph,
    "called graph": _called_graph,
    "tasks": _tasks,
    "retry": _retry,
    "ask": _ask,
    "fail": _fail,
    "rescue": _rescue,
    "talk": _talk,
    "wait": _wait,
    "too slow": _too_slow,
    "drain": _drain,
}
