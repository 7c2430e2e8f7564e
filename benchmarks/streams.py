"""Graphs whose parts are read: what a reader pays for each update, and for each token of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["Reading", "token_reader"]


class Reading:
    """A graph that is streamed when it is invoked; returns how many parts there were."""

    def __init__(self, graph: Any, mode: str) -> None:
        self._graph = graph
        self._mode = mode

    def invoke(self, given: Any, config: Any) -> int:
        """Read all parts."""
        return sum(1 for _ in self._graph.stream(given, config, stream_mode=self._mode))

    async def ainvoke(self, given: Any, config: Any) -> int:
        """Read all parts, on the event loop."""
        count = 0
        async for _ in self._graph.astream(given, config, stream_mode=self._mode):
            count += 1
        return count


class Asked(TypedDict):
    """State of the graph around the model."""

    n: int


def token_reader(lib: Any, size: int, is_async: bool) -> Reading:
    """Return a graph of one node, in which a model says *size* words."""
    # Here, for only this scenario needs it: both libraries are measured with the same model, LangChain's.
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessageChunk
    from langchain_core.outputs import ChatGenerationChunk

    class Talker(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "talker"

        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
            for _ in range(size):
                yield ChatGenerationChunk(message=AIMessageChunk(content="word "))

        async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
            for _ in range(size):
                yield ChatGenerationChunk(message=AIMessageChunk(content="word "))

    model = Talker()

    def node(state: Asked) -> None:
        for _ in model.stream("?"):
            pass

    async def anode(state: Asked) -> None:
        async for _ in model.astream("?"):
            pass

    builder = lib.StateGraph(Asked)
    builder.add_node("ask", anode if is_async else node)
    builder.add_edge(lib.START, "ask")
    return Reading(builder.compile(), "messages")
