"""The runs that telemetry is measured on: long, wide, short, with model calls, with checkpoints in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypedDict

from benchmarks.case import Case, load
from benchmarks.graphs import fan_out, loop
from benchmarks.models import langchain_model

__all__ = ["SHAPES", "Shape"]

CALLS: Final = 20
CHUNKS: Final = 16
"""Pieces of a streamed answer."""
WORD = "word "
USAGE: Final[Any] = {"input_tokens": 120, "output_tokens": CHUNKS, "total_tokens": 120 + CHUNKS}
PARAMS: Final = {"model": "scripted-1", "provider": "scripted", "temperature": 0.5}

Build = Callable[[Any, int, bool], Case]


@dataclass(frozen=True)
class Shape:
    """A kind of run, and how many of them one measurement takes: enough to outlast the clock's noise."""

    name: str
    unit: str
    size: int
    runs: int
    build: Build
    has_saver: bool = False

    @contextmanager
    def opened(self, *, is_async: bool, is_quick: bool) -> Iterator[Case]:
        """Build the graph; a saver's file lasts as long as the block."""
        size = min(self.size, 10) if is_quick else self.size
        if not self.has_saver:
            yield self.build(load("tracegraph"), size, is_async)
            return
        from tracegraph.checkpoint.sqlite import SqliteSaver

        with TemporaryDirectory() as folder:
            connection = sqlite3.connect(Path(folder) / "checkpoints.db", check_same_thread=False)
            saver = SqliteSaver(connection)
            saver.setup()
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            case = self.build(load("tracegraph"), size, is_async)
            yield Case(case.graph.copy({"checkpointer": saver}), case.input, case.units)
            connection.close()


class Turns(TypedDict):
    """State of the runs that call a model."""

    n: int


def _model_calls(lib: Any, size: int, is_async: bool, *, chunks: int) -> Case:
    """Build a loop whose steps each call a model once, the answer coming whole or in *chunks* pieces."""
    from tracegraph.messages import AIMessage, AIMessageChunk

    answer = AIMessage(WORD * CHUNKS, usage_metadata=USAGE, response_metadata={"model_name": "scripted-1"})
    pieces = [AIMessageChunk(WORD) for _ in range(chunks)]
    asked: list[list[Any]] = [[]]

    def call(state: Turns) -> Turns:
        [run] = lib.get_config()["callbacks"].on_chat_model_start({"name": "scripted"}, asked, invocation_params=PARAMS)
        for piece in pieces:
            run.on_llm_new_token(WORD, chunk=piece)
        run.on_llm_end(answer)
        return {"n": state["n"] + 1}

    async def acall(state: Turns) -> Turns:
        return call(state)

    def again(state: Turns) -> str:
        return "call" if state["n"] < size else str(lib.END)

    builder = lib.StateGraph(Turns)
    builder.add_node("call", acall if is_async else call)
    builder.add_edge(lib.START, "call")
    builder.add_conditional_edges("call", again)
    return Case(builder.compile(), {"n": 0}, size)


def _langchain_model(lib: Any, size: int, is_async: bool) -> Case:
    """Build a loop whose steps each read an answer of :data:`CHUNKS` pieces from LangChain's own model class."""
    ask: Any = langchain_model(lib, CHUNKS, is_async)

    def call(state: Turns) -> Turns:
        ask(state)
        return {"n": state["n"] + 1}

    async def acall(state: Turns) -> Turns:
        await ask(state)
        return {"n": state["n"] + 1}

    builder = lib.StateGraph(Turns)
    builder.add_node("call", acall if is_async else call)
    builder.add_edge(lib.START, "call")
    builder.add_conditional_edges("call", lambda state: "call" if state["n"] < size else lib.END)
    return Case(builder.compile(), {"n": 0}, size)


SHAPES: Final = (
    Shape("loop", "step", 1000, 1, loop),
    Shape("fan-out 100", "task", 100, 5, fan_out),
    Shape("one step", "run", 1, 300, loop),
    Shape("model calls", "call", CALLS, 20, partial(_model_calls, chunks=0)),
    Shape("LangChain's model", "call", CALLS, 3, _langchain_model),
    Shape("chunks alone", "call", CALLS, 10, partial(_model_calls, chunks=CHUNKS)),
    Shape("loop on SQLite", "step", 200, 2, loop, has_saver=True),
)
