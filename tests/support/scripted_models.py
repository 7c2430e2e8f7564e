"""A chat model that says what a script tells it, and reports it as models do: through the config's callback manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracegraph.config import get_config
from tracegraph.messages import AIMessage, AIMessageChunk


class ScriptedModel:
    """Streams its words one by one, or answers as a whole; ``reports`` says what a token is reported with."""

    def __init__(self, *words: str, streams: bool = True, reports: str = "chunk", answer_id: str | None = None) -> None:
        self.words = words
        self.streams = streams
        self.reports = reports
        self.answer_id = answer_id

    def stream(self, messages: list[Any], config: Any = None) -> Iterator[AIMessageChunk]:
        """Yield the pieces of the answer, each after it was reported."""
        (run,) = (config or get_config())["callbacks"].on_chat_model_start({"name": "scripted"}, [messages])
        whole = AIMessageChunk("", id=self.answer_id)
        for word in self.words:
            piece = AIMessageChunk(word, id=self.answer_id)
            if self.streams and self.reports == "chunk":
                run.on_llm_new_token(word, chunk=piece)
            elif self.streams:
                run.on_llm_new_token(word)
            whole = whole + piece
            yield piece
        run.on_llm_end(whole.to_message())

    def invoke(self, messages: list[Any], config: Any = None) -> AIMessage:
        """Return the whole answer, which was streamed meanwhile."""
        (run,) = (config or get_config())["callbacks"].on_chat_model_start({"name": "scripted"}, [messages])
        whole = AIMessageChunk("", id=self.answer_id)
        for word in self.words:
            piece = AIMessageChunk(word, id=self.answer_id)
            if self.streams:
                run.on_llm_new_token(word, chunk=piece if self.reports == "chunk" else None)
            whole = whole + piece
        answer = whole.to_message()
        run.on_llm_end(answer)
        return answer
