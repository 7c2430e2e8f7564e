"""What a user's handler may be told: subclass one of these, or bring any object with some of the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from uuid import UUID

from tracegraph.events import MemoryOperation
from tracegraph.types import Interrupt

__all__ = [
    "AsyncCallbackHandler",
    "BaseCallbackHandler",
    "FatalObserverError",
    "GraphCallbackHandler",
    "GraphInterruptEvent",
    "GraphLifecycleEvent",
    "GraphLifecycleStatus",
    "GraphResumeEvent",
    "RetryState",
]

GraphLifecycleStatus: TypeAlias = Literal["input", "pending", "done", "interrupt_before", "interrupt_after", "out_of_steps"]


class FatalObserverError(Exception):
    """A handler with ``raise_error = True`` raised ``original``, which fails the run."""

    def __init__(self, original: BaseException) -> None:
        self.original = original
        super().__init__(original)


@dataclass(frozen=True)
class GraphInterruptEvent:
    """A root run paused: for its ``interrupts``, or at a static breakpoint, which asks nothing.

    ``checkpoint_ns`` has one string per level, none at the root.
    """

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str | None
    checkpoint_ns: tuple[str, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True)
class GraphResumeEvent:
    """A graph, root or nested, goes on from a checkpoint."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str | None
    checkpoint_ns: tuple[str, ...]


GraphLifecycleEvent: TypeAlias = GraphInterruptEvent | GraphResumeEvent


class _Failure:
    """How the failed attempt came out; the names are those that handlers written for tenacity read."""

    failed = True

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def exception(self) -> BaseException:
        return self._error


@dataclass(frozen=True, slots=True)
class RetryState:
    """A failed attempt that will be followed by another one, ``upcoming_sleep`` seconds later.

    ``attempt_number`` starts at 1. ``idle_for`` is the same pause under the name tracers look for.
    """

    attempt_number: int
    upcoming_sleep: float
    error: BaseException

    @property
    def idle_for(self) -> float:
        """Seconds until the next attempt."""
        return self.upcoming_sleep

    @property
    def outcome(self) -> _Failure:
        """The failure, with ``failed`` and ``exception()``."""
        return _Failure(self.error)


class BaseCallbackHandler:
    """Is told what a run does. Override what you need: a method that is not overridden costs nothing.

    Methods are called in the thread that does the work, in order, and must be quick. What they raise is logged
    once and counted, unless ``raise_error`` is true: then it fails the run. ``run_id`` and ``parent_run_id`` form a
    tree: graph, node, and below it models, tools, path functions and graphs called in the node.
    """

    raise_error: bool = False
    run_inline: bool = False
    ignore_chain: bool = False
    ignore_llm: bool = False
    ignore_chat_model: bool = False
    ignore_tool: bool = False
    ignore_retriever: bool = False
    ignore_memory: bool = False
    ignore_agent: bool = False
    ignore_retry: bool = False
    ignore_custom_event: bool = False

    def on_chain_start(
        self,
        serialized: Mapping[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A graph, node or path function starts; ``name=`` says which."""

    def on_chain_end(self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """It returned; ``outputs`` is None for a node or nested graph that paused."""

    def on_chain_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """It failed, was cancelled (CancelledError) or abandoned by its reader (GeneratorExit)."""

    def on_llm_start(
        self,
        serialized: Mapping[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A model is called; a chat model too, if ``on_chat_model_start`` is not overridden."""

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any] | None,
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A chat model is called."""
        # LangChain's managers take this as "call on_llm_start instead"; ours know it without calling.
        raise NotImplementedError

    def on_llm_new_token(
        self, token: Any, *, chunk: Any = None, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> Any:
        """A model streamed a piece of its answer."""

    def on_llm_end(self, response: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """A model answered."""

    def on_llm_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """A model call failed."""

    def on_tool_start(
        self,
        serialized: Mapping[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A tool is called; ``tool_call_id=`` is the model's id of the call, if a model asked for it."""

    def on_tool_end(self, output: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """A tool returned."""

    def on_tool_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """A tool failed."""

    def on_retriever_start(
        self,
        serialized: Mapping[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A retriever is asked."""

    def on_retriever_end(
        self, documents: Sequence[Any], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> Any:
        """A retriever found documents."""

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """A retriever failed."""

    def on_memory_start(
        self,
        operation: MemoryOperation,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        store_id: str | None = None,
        record_id: str | None = None,
        namespace: Sequence[str] | None = None,
        query: Any = None,
        records: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Long-term memory is asked for something; *records* are those to be written, ``name=`` says which store it is."""

    def on_memory_end(
        self, records: Any, *, count: int | None = None, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> Any:
        """It did that; *records* are those found, None if it was no search; *count* as in ``MemoryEnded``."""

    def on_memory_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """It failed."""

    def on_text(self, text: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """Free text from a run manager."""

    def on_retry(self, retry_state: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> Any:
        """An attempt of a node failed and another will follow; see :class:`RetryState`. ``run_id`` is the failed one."""

    def on_custom_event(
        self,
        name: str,
        data: Any,
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Node code dispatched an event of its own; ``run_id`` is the node's."""

    def on_superstep_start(self, step: int, *, run_id: UUID, nodes: tuple[str, ...] = (), **kwargs: Any) -> Any:
        """A superstep was planned: *nodes* run in it, hidden ones included."""

    def on_superstep_end(self, step: int, *, run_id: UUID, updated: tuple[str, ...] = (), **kwargs: Any) -> Any:
        """A superstep's writes were applied (``status="completed"``), or it ``stopped`` before that."""

    def on_checkpoint(self, checkpoint_id: str, *, run_id: UUID, step: int = -1, **kwargs: Any) -> Any:
        """A checkpoint was stored, or could not be (``error=``)."""

    def on_interrupt(self, event: GraphInterruptEvent) -> Any:
        """A root run pauses; called once per stop, before its ``on_chain_end``."""

    def on_resume(self, event: GraphResumeEvent) -> Any:
        """A graph goes on from a checkpoint; called for each level, after its ``on_chain_start``."""


class GraphCallbackHandler(BaseCallbackHandler):
    """A handler for those who care about pauses: override ``on_interrupt`` and ``on_resume``."""


class AsyncCallbackHandler(BaseCallbackHandler):
    """A handler whose methods are coroutines, to be overridden with ``async def``.

    In an async run the driver awaits them, in order, before the run goes on; in a sync run each is run to
    completion on a private event loop. Single methods may stay plain functions.
    """
