"""One open call of a model, tool, retriever, store or other runnable, as the code that makes the call holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tracegraph.callbacks.base import FatalObserverError
from tracegraph.callbacks.calls import HandlerCalls
from tracegraph.callbacks.place import Reporter
from tracegraph.events import MemoryEnded, ModelEnded, ModelToken, RetrievalEnded, ToolEnded

if TYPE_CHECKING:
    from tracegraph.callbacks.manager import CallbackManager

__all__ = ["ChainRun", "InnerRun", "MemoryRun", "ModelRun", "RetrieverRun", "ToolRun"]


class InnerRun:
    """What all calls have: an id, a parent, and a manager for what is called inside them."""

    def __init__(self, manager: CallbackManager, reporter: Reporter, run_id: UUID, name: str) -> None:
        self._manager = manager
        self._reporter = reporter
        self.run_id = run_id
        self.name = name
        self.parent_run_id = manager.parent_run_id
        self.handlers = manager.handlers
        self.inheritable_handlers = manager.inheritable_handlers
        self.tags = manager.tags
        self.inheritable_tags = manager.inheritable_tags
        self.metadata = manager.metadata
        self.inheritable_metadata = manager.inheritable_metadata

    def get_child(self, tag: str | None = None) -> CallbackManager:
        """Return the manager of what is called inside this call; *tag* is for what is called directly."""
        return self._manager.below(self.run_id, tag)

    async def settled(self) -> None:
        """Wait for what async handlers still do with this call."""
        await self._reporter.settled()

    def facts(self) -> tuple[UUID, str, int, int, str, UUID, UUID | None, str]:
        """Return the fields every event of this call begins with."""
        at = self._reporter.place
        return at.run_id, at.ns, at.step, at.now(), at.task_id, self.run_id, self._manager.parent_call_id, self.name


class ModelRun(InnerRun):
    """A model call that is under way."""

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:
        """Report a piece of the answer."""
        if self._reporter.wants(ModelToken.bit):
            self._reporter.publish(ModelToken(*self.facts(), token, chunk))

    def on_llm_end(self, response: Any, **_: Any) -> None:
        """Report the answer."""
        if self._reporter.wants(ModelEnded.bit):
            self._reporter.publish(ModelEnded(*self.facts(), response, None))

    def on_llm_error(self, error: BaseException, *, response: Any = None, **_: Any) -> None:
        """Report that the call failed; *response* is what had arrived by then."""
        if self._reporter.wants(ModelEnded.bit):
            self._reporter.publish(ModelEnded(*self.facts(), response, error))


class ToolRun(InnerRun):
    """A tool call that is under way."""

    def on_tool_end(self, output: Any, **_: Any) -> None:
        """Report the result."""
        if self._reporter.wants(ToolEnded.bit):
            self._reporter.publish(ToolEnded(*self.facts(), output, None))

    def on_tool_error(self, error: BaseException, **_: Any) -> None:
        """Report that the tool failed, or passed an interrupt on."""
        if self._reporter.wants(ToolEnded.bit):
            self._reporter.publish(ToolEnded(*self.facts(), None, error))


class RetrieverRun(InnerRun):
    """A retriever call that is under way."""

    def on_retriever_end(self, documents: Sequence[Any], **_: Any) -> None:
        """Report what was found."""
        if self._reporter.wants(RetrievalEnded.bit):
            self._reporter.publish(RetrievalEnded(*self.facts(), documents, None))

    def on_retriever_error(self, error: BaseException, **_: Any) -> None:
        """Report that nothing could be looked up."""
        if self._reporter.wants(RetrievalEnded.bit):
            self._reporter.publish(RetrievalEnded(*self.facts(), None, error))


class MemoryRun(InnerRun):
    """A call of long-term memory that is under way."""

    def on_memory_end(self, records: Any = None, *, count: int | None = None, **_: Any) -> None:
        """Report that it is done: the *records* found, and how many were found or written where *records* does not say."""
        if self._reporter.wants(MemoryEnded.bit):
            if count is None and isinstance(records, (list, tuple)):
                count = len(records)
            self._reporter.publish(MemoryEnded(*self.facts(), records, count, None))

    def on_memory_error(self, error: BaseException, **_: Any) -> None:
        """Report that it could not be done."""
        if self._reporter.wants(MemoryEnded.bit):
            self._reporter.publish(MemoryEnded(*self.facts(), None, None, error))


class ChainRun(InnerRun):
    """Some other runnable that is under way. It is no event of the run: only handlers hear of it."""

    def __init__(self, manager: CallbackManager, reporter: Reporter, run_id: UUID, name: str) -> None:
        super().__init__(manager, reporter, run_id, name)
        self._calls = HandlerCalls(manager.handlers)

    def on_chain_start(self, serialized: Any, inputs: Any) -> None:
        """Report the start; the manager that made this run has called it."""
        self._call("on_chain_start", serialized, inputs, metadata={**self.metadata}, name=self.name)

    def on_chain_end(self, outputs: Any, **_: Any) -> None:
        """Report the result."""
        self._call("on_chain_end", outputs)

    def on_chain_error(self, error: BaseException, **_: Any) -> None:
        """Report the failure."""
        self._call("on_chain_error", error)

    def on_text(self, text: str, **_: Any) -> None:
        """Pass free text on."""
        self._call("on_text", text)

    def _call(self, method: str, *args: Any, **kwargs: Any) -> None:
        self._reporter.note_progress()
        ids: dict[str, Any] = {"run_id": self.run_id, "parent_run_id": self.parent_run_id, "tags": [*self.tags]}
        try:
            self._reporter.settle(self._calls.call(method, *args, **ids, **kwargs))
        except FatalObserverError as error:
            raise error.original from None
