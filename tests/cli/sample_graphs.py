"""Graphs that the command's tests run; each name says what becomes of it."""

from __future__ import annotations

import operator
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from tracegraph import START, InMemorySaver, Runtime, StateGraph, entrypoint, interrupt, task
from tracegraph.graph import Nested

answer = 42
"""No graph."""


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[str], operator.add]


def add(state: State) -> State:
    return {"n": state.get("n", 0) + 1, "log": ["add"]}


async def aadd(state: State) -> State:
    return {"n": state.get("n", 0) + 1, "log": ["aadd"]}


async def apath(state: State) -> str:
    return "add"


def explode(state: State) -> State:
    raise ValueError("first line\nsecond line")


def leave(state: State) -> State:
    raise SystemExit("bye")


def press_ctrl_c(state: State) -> State:
    raise KeyboardInterrupt


def ask(state: State) -> State:
    return {"n": interrupt({"question": "sure?"})}


def ask_again(state: State) -> State:
    return {"log": [interrupt("which one?")]}


def need_file(state: State) -> State:
    """Fail until somebody has made the file."""
    Path("needed").read_text(encoding="utf-8")
    return {"log": ["need_file"]}


def pay(state: State) -> State:
    """Fail as long as the file is there, once its question is answered."""
    answer = interrupt("pay?")
    if Path("broken").exists():
        raise ConnectionError("no line")
    return {"log": [answer]}


def pay_twice(state: State) -> State:
    return {"log": [interrupt("pay?"), interrupt("again?")]}


def fall_back(state: State) -> State:
    """An error handler with a question of its own."""
    answer = interrupt("fall back?")
    if Path("broken").exists():
        raise ConnectionError("no line")
    return {"log": [answer]}


@dataclass
class Parcel:
    """A class that nothing but this file knows."""

    to: str


class Deep(TypedDict, total=False):
    depth: int


class Meta(TypedDict, total=False):
    title: str
    words: Annotated[int, operator.add]
    deep: Annotated[Deep, Nested]


class Article(TypedDict, total=False):
    text: str
    meta: Annotated[Meta, Nested]


def count(state: Article) -> Article:
    return {"meta": {"words": 1}}


class Shipment(TypedDict, total=False):
    parcel: Parcel
    n: int


def pack(state: Shipment) -> Shipment:
    return {"parcel": Parcel("Bern")}


def weigh(state: Shipment) -> Shipment:
    return {"n": len(state["parcel"].to), "parcel": Parcel(interrupt(state["parcel"]))}


def choose(state: State) -> str:
    raise LookupError("nowhere to go")


def terminate(state: State) -> State:
    os.kill(os.getpid(), signal.SIGTERM)
    return {"log": ["terminate"]}


def terminate_twice(state: State) -> State:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    return {"log": ["terminate_twice"]}


def wait(state: State, runtime: Runtime) -> State:
    """Say that it is running, and go on when the run was asked to stop."""
    was_asked = threading.Event()
    runtime.control.on_drain(lambda reason: was_asked.set())
    Path("started").write_text("", encoding="utf-8")
    was_asked.wait(30)
    return {"log": ["wait"]}


def hang(state: State, runtime: Runtime) -> State:
    """Say that it is running, and when it is asked to stop, and never come back; unless it is mended."""
    if not Path("mended").exists():
        runtime.control.on_drain(lambda reason: Path("asked").write_text("", encoding="utf-8"))
        Path("started").write_text("", encoding="utf-8")
        threading.Event().wait(30)
    return {"log": ["hang"]}


def odd(state: State) -> Any:
    return {"log": [b"\x00\xff", {"a"}, object, float("inf")]}


class Mute(Exception):
    """Neither prints nor shows itself."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def measureless(state: State) -> Any:
    return {"log": [10**5000, {10**5000: -(10**5000)}]}


def mute(state: State) -> Any:
    return {"log": [Mute(), "beside it"]}


def raise_mute(state: State) -> State:
    raise Mute


def line(*nodes: Any, **options: Any) -> Any:
    return StateGraph(State).add_sequence(list(nodes)).add_edge(START, nodes[0].__name__).compile(**options)


good = line(add, name="good")
good_async = line(add, aadd)
good_async_path = StateGraph(State).add_node(add).add_conditional_edges(START, apath, ["add"]).compile()
odd_values = line(odd)
measureless_values = line(measureless)
mute_values = line(mute)
mute_failure = line(raise_mute)
text_of_surrogates = StateGraph(str).add_node("say", lambda state: "\ud800").add_edge(START, "say").compile()
failing = line(add, explode)
failing_inside = StateGraph(State).add_node("inner", failing).add_edge(START, "inner").compile()
leaving = line(leave)
pressed = line(press_ctrl_c)
asking = line(ask, checkpointer=InMemorySaver())
question = line(add, ask)
question_async = line(aadd, ask)
question_inside = StateGraph(State).add_node("inner", question).add_edge(START, "inner").compile()
questions = StateGraph(State).add_node(ask).add_node(ask_again).add_edge(START, "ask").add_edge(START, "ask_again").compile()
question_beside_failure = (
    StateGraph(State).add_node(ask).add_node(need_file).add_edge(START, "ask").add_edge(START, "need_file").compile()
)
paying = line(pay)
paying_twice = line(pay_twice)
handled = StateGraph(State).add_node("explode", explode, error_handler=fall_back).add_edge(START, "explode").compile()
handled_async = (
    StateGraph(State)
    .add_node("explode", explode, error_handler=fall_back)
    .add_node(aadd)
    .add_edge(START, "explode")
    .add_edge("explode", "aadd")
    .compile()
)
pausing = line(add, aadd, interrupt_before=["aadd"])
needing = line(add, need_file)
nested = StateGraph(Article).add_sequence([count]).add_edge(START, "count").compile()
shipping = StateGraph(Shipment).add_sequence([pack, weigh]).add_edge(START, "pack").compile()
unsaved = line(add, checkpointer=False)
lost = StateGraph(State).add_node(add).add_edge(START, "add").add_conditional_edges("add", choose, ["add"]).compile()
stopping = line(add, explode, checkpointer=InMemorySaver(), interrupt_before=["explode"])
drained = line(terminate, explode)
drained_async = line(aadd, terminate, explode)
waiting = line(wait, explode)
waiting_async = line(wait, aadd, explode)
waiting_beside = (
    StateGraph(State)
    .add_node(wait)
    .add_node(add)
    .add_node(explode)
    .add_edge(START, "wait")
    .add_edge(START, "add")
    .add_edge("wait", "explode")
).compile()
hanging = line(add, hang)
hanging_async = line(aadd, hang)
hanging_beside = (
    StateGraph(State)
    .add_node(add)
    .add_node(hang)
    .add_node("beside", lambda state: {"log": ["beside"]})
    .add_edge(START, "add")
    .add_edge("add", "beside")
    .add_edge("add", "hang")
    .compile()
)
terminated = line(terminate_twice, explode)
endless = StateGraph(State).add_node(add).add_edge(START, "add").add_edge("add", "add").compile()
builder = StateGraph(State).add_node(add).add_edge(START, "add")
broken_builder = StateGraph(State).add_node(add).add_edge("add", "nowhere").add_edge("nobody", "add")


def factory() -> Any:
    return good


def failing_factory() -> Any:
    raise RuntimeError("no graph today")


def factory_with_parameters(n: int) -> Any:
    return good


@task
def double(x: int) -> int:
    return x * 2


@entrypoint()
def function(x: int, *, previous: Any = None) -> Any:
    doubled = double(x).result()
    return entrypoint.final(value=[doubled, previous, interrupt("sure?")], save=doubled)
