"""Calls that go through LangChain's callback managers: they become events like those that go through ours.

LangChain makes managers of its own from the handlers in ours. So one of these handlers stands for the run, and
publishes what it is told. The user's handlers have been told by the foreign manager; events say so (``is_foreign``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from tracegraph.callbacks.base import BaseCallbackHandler
from tracegraph.callbacks.place import Place
from tracegraph.events import (
    ModelEnded,
    ModelStarted,
    ModelToken,
    RetrievalEnded,
    RetrievalStarted,
    ToolEnded,
    ToolStarted,
)

__all__ = ["ForeignCalls", "TappingForeignCalls"]

CallEvent = ModelStarted | ModelToken | ModelEnded | ToolStarted | ToolEnded | RetrievalStarted | RetrievalEnded
Facts = tuple[UUID, str, int, int, str, UUID, UUID | None, str]
T = TypeVar("T")


class ForeignCalls(BaseCallbackHandler):
    """A handler that publishes on the Hub of *place*, where node code stands."""

    is_of_the_run = True
    """It is no handler of the user's: runs inside this one have their own, and our managers do not call it."""
    run_inline = True
    ignore_chain = True
    ignore_retry = True
    ignore_custom_event = True

    def __init__(self, place: Place) -> None:
        self._place = place
        self._open: dict[UUID, tuple[UUID | None, str]] = {}
        """Parent and name of the calls under way."""

    def on_chat_model_start(
        self, serialized: Mapping[str, Any] | None, messages: Sequence[Sequence[Any]], *, run_id: UUID, **rest: Any
    ) -> None:
        """Publish the start of a chat model's call."""
        self._model_started(serialized, messages, True, run_id, rest)

    def on_llm_start(self, serialized: Mapping[str, Any] | None, prompts: list[str], *, run_id: UUID, **rest: Any) -> None:
        """Publish the start of a model's call."""
        self._model_started(serialized, prompts, False, run_id, rest)

    def _model_started(self, serialized: Any, given: Any, is_chat: bool, run_id: UUID, rest: dict[str, Any]) -> None:
        params = rest.get("invocation_params") or {}
        facts = self._opened(run_id, serialized, rest)
        if self._wants(ModelStarted):
            self._publish(ModelStarted(*facts, serialized, is_chat, given, params, _tags(rest), _metadata(rest)))

    def on_llm_new_token(self, token: Any, *, run_id: UUID, chunk: Any = None, **_: Any) -> None:
        """Publish a piece of a model's answer."""
        if self._wants(ModelToken):
            self._publish(ModelToken(*self._facts(run_id), token, chunk))

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Publish a model's answer."""
        self._closed(ModelEnded, run_id, response, None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, response: Any = None, **_: Any) -> None:
        """Publish that a model failed."""
        self._closed(ModelEnded, run_id, response, error)

    def on_tool_start(
        self,
        serialized: Mapping[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        inputs: Mapping[str, Any] | None = None,
        tool_call_id: str | None = None,
        **rest: Any,
    ) -> None:
        """Publish the start of a tool's call."""
        # The tool's own name, where a call has been given another.
        facts = self._opened(run_id, serialized, {**rest, "name": (serialized or {}).get("name") or rest.get("name")})
        if self._wants(ToolStarted):
            given = input_str if inputs is None else dict(inputs)
            self._publish(ToolStarted(*facts, serialized, given, tool_call_id, _tags(rest), _metadata(rest)))

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Publish a tool's result."""
        self._closed(ToolEnded, run_id, output, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Publish that a tool failed, or passed an interrupt on."""
        self._closed(ToolEnded, run_id, None, error)

    def on_retriever_start(self, serialized: Mapping[str, Any] | None, query: str, *, run_id: UUID, **rest: Any) -> None:
        """Publish that a retriever is asked."""
        facts = self._opened(run_id, serialized, rest)
        if self._wants(RetrievalStarted):
            self._publish(RetrievalStarted(*facts, serialized, query, _tags(rest), _metadata(rest)))

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **_: Any) -> None:
        """Publish what a retriever found."""
        self._closed(RetrievalEnded, run_id, documents, None)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Publish that a retriever failed."""
        self._closed(RetrievalEnded, run_id, None, error)

    # LangChain calls these whether a handler has them or not.

    def on_agent_action(self, *_: Any, **__: Any) -> None:
        """Pass over what an agent of LangChain's decides."""

    def on_agent_finish(self, *_: Any, **__: Any) -> None:
        """Pass over its end."""

    def on_stream_event(self, *_: Any, **__: Any) -> None:
        """Pass over the other form of a streamed answer."""

    def _opened(self, run_id: UUID, serialized: Any, rest: dict[str, Any]) -> Facts:
        from tracegraph.callbacks.manager import name_of

        parent = rest.get("parent_run_id")
        self._open[run_id] = (parent if parent in self._open else None, name_of(serialized, rest.get("name")))
        return self._facts(run_id)

    def _facts(self, run_id: UUID) -> Facts:
        at = self._place
        parent, name = self._open.get(run_id, (None, ""))
        return at.run_id, at.ns, at.step, at.now(), at.task_id, run_id, parent, name

    def _closed(self, kind: Any, run_id: UUID, result: Any, error: BaseException | None) -> None:
        facts = self._facts(run_id)
        self._open.pop(run_id, None)
        if self._wants(kind):
            self._publish(kind(*facts, result, error))

    def _wants(self, kind: type[CallEvent]) -> bool:
        hub = self._place.hub
        return hub is not None and bool(hub.wants & kind.bit)

    def _publish(self, event: CallEvent) -> None:
        assert self._place.hub is not None
        event.is_foreign = True
        self._place.hub.publish(event)


class TappingForeignCalls(ForeignCalls):
    """The same, and a handler for whom LangChain's models stream even when their whole answer is asked for."""

    def tap_output_iter(self, run_id: UUID, output: T) -> T:  # noqa: ARG002  # what LangChain knows such handlers by
        """Return the output as it is."""
        return output

    def tap_output_aiter(self, run_id: UUID, output: T) -> T:  # noqa: ARG002  # as above
        """Return the output as it is."""
        return output


def _tags(rest: Mapping[str, Any]) -> list[str]:
    return [*(rest.get("tags") or ())]


def _metadata(rest: Mapping[str, Any]) -> dict[str, Any]:
    return {**(rest.get("metadata") or {})}
