"""A chat model that says what a script tells it, and reports it as models do: through the config's callback manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracegraph.config import get_config
from tracegraph.messages import AIMessage, AIMessageChunk, UsageMetadata


class ScriptedModel:
    """Streams its words one by one, or answers as a whole; ``reports`` says what a token is reported with.

    *usage* comes with the last piece, as providers send it, and *fails_after* so many pieces the stream breaks.
    *asked* is what the call is reported with.
    """

    def __init__(
        self,
        *words: str,
        streams: bool = True,
        reports: str = "chunk",
        answer_id: str | None = None,
        usage: UsageMetadata | None = None,
        fails_after: int | None = None,
        **asked: Any,
    ) -> None:
        self.words = words
        self.streams = streams
        self.reports = reports
        self.answer_id = answer_id
        self.usage = usage
        self.fails_after = fails_after
        self.asked = asked

    def _pieces(self) -> Iterator[AIMessageChunk]:
        for position, word in enumerate(self.words):
            if position == self.fails_after:
                raise ConnectionError("the stream broke")
            is_last = position == len(self.words) - 1
            yield AIMessageChunk(word, id=self.answer_id, usage_metadata=self.usage if is_last else None)

    def stream(self, messages: list[Any], config: Any = None) -> Iterator[AIMessageChunk]:
        """Yield the pieces of the answer, each after it was reported."""
        (run,) = (config or get_config())["callbacks"].on_chat_model_start({"name": "scripted"}, [messages], **self.asked)
        whole = AIMessageChunk("", id=self.answer_id)
        try:
            for piece in self._pieces():
                if self.streams and self.reports == "chunk":
                    run.on_llm_new_token(piece.content, chunk=piece)
                elif self.streams:
                    run.on_llm_new_token(piece.content)
                whole = whole + piece
                yield piece
        except ConnectionError as error:
            run.on_llm_error(error)
            raise
        run.on_llm_end(whole.to_message())

    def invoke(self, messages: list[Any], config: Any = None) -> AIMessage:
        """Return the whole answer, which was streamed meanwhile."""
        (run,) = (config or get_config())["callbacks"].on_chat_model_start({"name": "scripted"}, [messages], **self.asked)
        whole = AIMessageChunk("", id=self.answer_id)
        for piece in self._pieces():
            if self.streams:
                run.on_llm_new_token(piece.content, chunk=piece if self.reports == "chunk" else None)
            whole = whole + piece
        answer = whole.to_message()
        run.on_llm_end(answer)
        return answer
