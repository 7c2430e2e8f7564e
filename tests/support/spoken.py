"""A chat model of ours that says what it is told to, piece by piece, through the callback manager of the node that calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

from tracegraph.messages import AIMessageChunk


class Speaker:
    """Streams chunks; ``before`` is called before each, and an exception among them is raised."""

    def __init__(self, chunks: Sequence[Any], before: Callable[[int], Awaitable[None] | None] | None = None) -> None:
        self._chunks = chunks
        self._before = before

    def pieces(self, config: Any) -> Iterator[tuple[Awaitable[None] | None, Any]]:
        """Yield what to wait for, and the whole so far."""
        (call,) = config["callbacks"].on_chat_model_start({"name": "Speaker"}, [[]])
        whole: Any = None
        for at, chunk in enumerate(self._chunks):
            yield (None if self._before is None else self._before(at)), whole
            if isinstance(chunk, BaseException):
                call.on_llm_error(chunk)
                raise chunk
            call.on_llm_new_token(chunk.text, chunk=chunk)
            whole = chunk if whole is None else whole + chunk
        message = whole.to_message()
        call.on_llm_end(message)
        yield None, message

    def speak(self, config: Any) -> Any:
        """Return the whole answer."""
        message = None
        for _, message in self.pieces(config):
            pass
        return message

    async def aspeak(self, config: Any) -> Any:
        """Return the whole answer."""
        message = None
        async for message in self._apieces(config):
            pass
        return message

    async def _apieces(self, config: Any) -> AsyncIterator[Any]:
        for waiting, message in self.pieces(config):
            if waiting is not None:
                await waiting
            yield message


def words(*texts: str, message_id: str = "m1", **last: Any) -> list[AIMessageChunk]:
    """Return chunks of text; *last* are attributes of the last one."""
    chunks = [AIMessageChunk(text, id=message_id) for text in texts]
    for name, value in last.items():
        setattr(chunks[-1], name, value)
    return chunks
