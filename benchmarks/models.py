"""Where tokens come from: a model that streams words, or the callback manager alone.

Async ones give way to the event loop after the first word and every few words, for a model waits for its words; else nobody
would read the first one before the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import Any, Final, TypeAlias

from benchmarks.case import Library

__all__ = ["Feed", "callbacks", "langchain_model", "own_model", "own_model_invoked", "wait_for_more"]

WORD = "word "
BURST: Final = 16
"""Words that come with one wait, as from a connection that is ahead of its reader."""

Node: TypeAlias = Callable[[Any], None] | Callable[[Any], Awaitable[None]]
Feed: TypeAlias = Callable[[Library, int, bool], Node]
"""Library, number of words, async or not -> a node that has them said."""


async def wait_for_more(index: int) -> None:
    """Give way to the event loop after the word number *index*, if those that came with it are told."""
    if index % BURST == 0:
        await asyncio.sleep(0)


class ScriptedModel:
    """A model of tracegraph's kind: it reports to the callback manager of the config, and knows nothing of LangChain."""

    def __init__(self, size: int) -> None:
        self.size = size

    def stream(self, manager: Any) -> Iterator[Any]:
        """Say the words."""
        from tracegraph.messages import AIMessage, AIMessageChunk

        [run] = manager.on_chat_model_start({"name": "scripted"}, [[]])
        for _ in range(self.size):
            piece = AIMessageChunk(WORD)
            run.on_llm_new_token(WORD, chunk=piece)
            yield piece
        run.on_llm_end(AIMessage(WORD * self.size))


def _langchain(size: int) -> Any:
    """Return the least that is a streaming chat model for LangChain."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessageChunk
    from langchain_core.outputs import ChatGenerationChunk

    def last() -> ChatGenerationChunk:
        # Marked, else LangChain adds an empty one.
        return ChatGenerationChunk(message=AIMessageChunk(content=WORD, chunk_position="last"))

    class Talker(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "talker"

        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
            for _ in range(size - 1):
                yield ChatGenerationChunk(message=AIMessageChunk(content=WORD))
            yield last()

        async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
            for index in range(size - 1):
                yield ChatGenerationChunk(message=AIMessageChunk(content=WORD))
                await wait_for_more(index)
            yield last()

    return Talker()


def langchain_model(lib: Library, size: int, is_async: bool) -> Node:
    """Have LangChain's model stream in a node of either library."""
    model = _langchain(size)

    def node(state: Any) -> None:
        for _ in model.stream("?"):
            pass

    async def anode(state: Any) -> None:
        async for _ in model.astream("?"):
            pass

    return anode if is_async else node


def _langchain_model_invoked(lib: Library, size: int, is_async: bool) -> Node:
    """Ask LangChain's model for its whole answer: it streams all the same, and says more of it to runs as objects."""
    model = _langchain(size)

    def node(state: Any) -> None:
        model.invoke("?")

    async def anode(state: Any) -> None:
        await model.ainvoke("?")

    return anode if is_async else node


def own_model(lib: Library, size: int, is_async: bool) -> Node:
    """Have the library's own kind of model stream: LangGraph's is LangChain's."""
    return langchain_model(lib, size, is_async) if lib.name == "langgraph" else _scripted(lib, size, is_async)


def own_model_invoked(lib: Library, size: int, is_async: bool) -> Node:
    """Ask the library's own kind of model for its whole answer."""
    return _langchain_model_invoked(lib, size, is_async) if lib.name == "langgraph" else _scripted(lib, size, is_async)


def _scripted(lib: Library, size: int, is_async: bool) -> Node:
    model = ScriptedModel(size)

    def node(state: Any) -> None:
        for _ in model.stream(lib.get_config()["callbacks"]):
            pass

    async def anode(state: Any) -> None:
        for index, _ in enumerate(model.stream(lib.get_config()["callbacks"])):
            await wait_for_more(index)

    return anode if is_async else node


def callbacks(lib: Library, size: int, is_async: bool) -> Node:
    """Tell the callback manager of words that no model says; each is a chunk of the library's own kind."""
    chunk, answer = _langchain_pieces() if lib.name == "langgraph" else _own_pieces()

    def node(state: Any) -> None:
        [run] = lib.get_config()["callbacks"].on_chat_model_start({"name": "none"}, [[]])
        for _ in range(size):
            run.on_llm_new_token(WORD, chunk=chunk())
        run.on_llm_end(answer())

    async def anode(state: Any) -> None:
        [run] = await _settled(lib.get_config()["callbacks"].on_chat_model_start({"name": "none"}, [[]]))
        for index in range(size):
            if (told := run.on_llm_new_token(WORD, chunk=chunk())) is not None:
                await told
            await wait_for_more(index)
        await _settled(run.on_llm_end(answer()))

    return anode if is_async else node


async def _settled(found: Any) -> Any:
    return await found if isawaitable(found) else found


def _langchain_pieces() -> tuple[Callable[[], Any], Callable[[], Any]]:
    from langchain_core.messages import AIMessageChunk
    from langchain_core.outputs import ChatGenerationChunk, LLMResult

    return lambda: ChatGenerationChunk(message=AIMessageChunk(content=WORD)), lambda: LLMResult(generations=[])


def _own_pieces() -> tuple[Callable[[], Any], Callable[[], Any]]:
    from tracegraph.messages import AIMessageChunk

    return lambda: AIMessageChunk(WORD), lambda: None
