"""Turns the events of a run into calls of ``on_*`` methods: who ran inside what, under which ids, tags and metadata."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias
from uuid import UUID

from tracegraph.callbacks.base import GraphInterruptEvent, GraphResumeEvent, RetryState
from tracegraph.callbacks.calls import HandlerCalls, both
from tracegraph.callbacks.runs import BODY_TAG, NodeRun, Run, branch_run_id, ids_of, node_of, node_run_id, segments, stand_in
from tracegraph.constants import START
from tracegraph.engine.views import isolated
from tracegraph.errors import GraphBubbleUp
from tracegraph.events import (
    MEMORY_KINDS,
    AttemptEnded,
    AttemptStarted,
    BranchEnded,
    BranchStarted,
    CacheLooked,
    CheckpointReached,
    CheckpointSaved,
    CheckpointStarted,
    CustomEmitted,
    Drained,
    ErrorHandled,
    Event,
    Interrupted,
    JoinStarved,
    MemoryEnded,
    MemoryStarted,
    MessagePushed,
    ModelEnded,
    ModelStarted,
    ModelToken,
    ObserverFailed,
    ReportIgnored,
    Resumed,
    RetrievalEnded,
    RetrievalStarted,
    RunEnded,
    RunStarted,
    StateUpdated,
    SuperstepEnded,
    SuperstepStarted,
    TaskEnded,
    TaskStarted,
    ToolEnded,
    ToolStarted,
    TurnTaken,
    UnknownKeyIgnored,
    kinds,
)

__all__ = ["HandlerObserver"]

_CallStarted: TypeAlias = ModelStarted | ToolStarted | RetrievalStarted | MemoryStarted

_RUN_KINDS: Final = kinds(RunStarted, RunEnded)
_NODE_KINDS: Final = kinds(TaskStarted, TaskEnded, AttemptStarted, AttemptEnded, BranchStarted, BranchEnded)

_KINDS_OF_METHODS: Final = (
    (("on_chain_start", "on_chain_end", "on_chain_error", "on_retry"), _NODE_KINDS),
    (
        ("on_chat_model_start", "on_llm_start", "on_llm_new_token", "on_llm_end", "on_llm_error"),
        _NODE_KINDS | kinds(ModelStarted, ModelToken, ModelEnded),
    ),
    (("on_tool_start", "on_tool_end", "on_tool_error"), _NODE_KINDS | kinds(ToolStarted, ToolEnded)),
    (
        ("on_retriever_start", "on_retriever_end", "on_retriever_error"),
        _NODE_KINDS | kinds(RetrievalStarted, RetrievalEnded),
    ),
    (("on_memory_start", "on_memory_end", "on_memory_error"), _NODE_KINDS | MEMORY_KINDS),
    (("on_custom_event",), _NODE_KINDS | kinds(CustomEmitted)),
    (("on_superstep_start",), kinds(SuperstepStarted)),
    (("on_superstep_end",), kinds(SuperstepEnded)),
    (("on_checkpoint",), kinds(CheckpointSaved)),
    (("on_interrupt",), kinds(Interrupted)),
    (("on_resume",), kinds(Resumed)),
)
"""What must be observed for which methods; the node kinds give the others their parent ids."""


class HandlerObserver:
    """Observer that calls the user's handlers.

    Args:
        run_id: watch only this run and those inside it (handlers given to a nested call); None watches all.
        parent_run_id: parent of what has none among the events seen: the enclosing run of somebody else's
            (a LangChain chain that calls this graph), or the node that called the nested run.
        on_failure: told once for each handler method that raises.
    """

    calls_handlers = True

    def __init__(
        self,
        handlers: Iterable[Any],
        *,
        run_id: UUID | None = None,
        parent_run_id: UUID | None = None,
        on_failure: Callable[[str, BaseException], None] | None = None,
    ) -> None:
        self._calls = HandlerCalls(handlers, on_failure=on_failure)
        self._top = run_id
        self._parent_run_id = parent_run_id
        self._runs: dict[UUID, Run] = {}
        self._nodes: dict[tuple[UUID, str], NodeRun] = {}
        self._inner: dict[UUID, Run] = {}
        """Open calls of models, tools, retrievers and stores."""
        self.wants: int = 0
        for names, mask in _KINDS_OF_METHODS:
            if self._calls.has_any(*names):
                self.wants |= mask | _RUN_KINDS

    @property
    def handlers(self) -> tuple[Any, ...]:
        """The handlers called, in this order."""
        return self._calls.handlers

    @property
    def failure_count(self) -> int:
        """How often a handler raised."""
        return self._calls.failure_count

    def observe(self, event: Event) -> Awaitable[None] | None:
        """Call the methods this event is for; what is returned (async handlers' work) must be awaited.

        Raises:
            FatalObserverError: a handler with ``raise_error`` raised.
        """
        if self._top is not None and not self._is_below_top(event):
            return None
        match event:
            case RunStarted():
                return self._run_started(event)
            case RunEnded():
                return self._run_ended(event)
            case TaskStarted() | TaskEnded() | AttemptStarted() | AttemptEnded() | BranchStarted() | BranchEnded():
                return self._in_node(event)
            case ModelStarted() | ModelToken() | ModelEnded():
                return None if event.is_foreign else self._model(event)
            case ToolStarted() | ToolEnded():
                return None if event.is_foreign else self._tool(event)
            case RetrievalStarted() | RetrievalEnded():
                return None if event.is_foreign else self._retrieval(event)
            case MemoryStarted() | MemoryEnded():
                return self._memory(event)
            case CustomEmitted():
                return self._custom(event)
            case SuperstepStarted() | SuperstepEnded() | CheckpointSaved() | Interrupted() | Resumed():
                return self._of_the_loop(event)
            case StateUpdated() | CheckpointStarted() | CacheLooked() | ErrorHandled() | Drained() | JoinStarved():
                return None
            case UnknownKeyIgnored() | ReportIgnored() | ObserverFailed() | TurnTaken() | CheckpointReached() | MessagePushed():
                return None

    def _is_below_top(self, event: Event) -> bool:
        if isinstance(event, RunStarted):
            return event.run_id == self._top or event.parent_run_id in self._runs
        return event.run_id in self._runs

    # Graph runs

    def _run_started(self, event: RunStarted) -> Awaitable[None] | None:
        is_root = event.parent_task_id is None
        tags = list(event.tags)
        run = Run(event.run_id, self._parent_of(event), tags, tags, {**event.metadata}, is_root)
        run.metadata.setdefault("ls_integration", "langgraph")
        if not is_root and self._branch_around(event) is None:
            run.tags = [BODY_TAG, *tags]
        self._runs[event.run_id] = run
        return self._start(run, event.name, event.input)

    def _branch_around(self, event: RunStarted) -> Run | None:
        node = self._node_around(event)
        return None if node is None else node.branch

    def _node_around(self, event: RunStarted) -> NodeRun | None:
        if event.parent_run_id is None or event.parent_task_id is None:
            return None
        return self._nodes.get((event.parent_run_id, event.parent_task_id))

    def _parent_of(self, event: RunStarted) -> UUID | None:
        if event.parent_task_id is None:
            return event.parent_run_id or self._parent_run_id
        node = self._node_around(event)
        if node is None:
            return self._parent_run_id or event.parent_run_id
        return node.id if node.branch is None else node.branch.id

    def _run_ended(self, event: RunEnded) -> Awaitable[None] | None:
        run = self._runs.pop(event.run_id, None)
        if run is None:
            return None
        # A pause or a command on its way up is no failure; its end at the root is a result, not an error.
        if event.status == "interrupted" or (event.status == "drained" and not run.is_root):
            return self._end(run, event.output) if run.is_root else self._pause(run)
        if event.status in {"completed", "handed_over"}:
            return self._end(run, event.output)
        return self._fail(run, event.error or stand_in(event.status, event.reason))

    # Runs inside a node

    def _in_node(
        self, event: TaskStarted | TaskEnded | AttemptStarted | AttemptEnded | BranchStarted | BranchEnded
    ) -> Awaitable[None] | None:
        if isinstance(event, TaskStarted):
            node = self._nodes[event.run_id, event.task_id] = node_of(event, self._runs.get(event.run_id))
            # The start node is a run only for the sake of the path functions that leave it.
            return None if event.has_attempts or event.name == START else self._open(node)
        found = self._nodes.get((event.run_id, event.task_id))
        if found is None:
            return None
        match event:
            case AttemptStarted():
                found.id = node_run_id(event.run_id, event.task_id, event.attempt)
                return self._open(found)
            case AttemptEnded():
                return self._attempt_ended(found, event)
            case BranchStarted():
                return self._branch_started(found, event)
            case BranchEnded():
                return self._branch_ended(found, event)
            case TaskEnded():
                del self._nodes[event.run_id, event.task_id]
                return self._task_ended(found, event) if found.is_open else None

    def _open(self, node: NodeRun) -> Awaitable[None] | None:
        node.is_open = True
        return self._start(node, node.name, node.input)

    def _attempt_ended(self, node: NodeRun, event: AttemptEnded) -> Awaitable[None] | None:
        # The last attempt's end comes with TaskEnded, which knows the result; control flow is no failure.
        if not node.is_open or event.error is None or isinstance(event.error, GraphBubbleUp):
            return None
        node.is_open = False
        told: Awaitable[None] | None = None
        if event.will_retry:
            state = RetryState(event.attempt, event.delay_s, event.error)
            told = self._calls.call("on_retry", state, run_id=node.id, parent_run_id=node.parent, tags=[*node.tags])
        error = event.error
        return both(told, lambda: self._fail(node, error))

    def _task_ended(self, node: NodeRun, event: TaskEnded) -> Awaitable[None] | None:
        if event.status == "interrupted" or isinstance(event.error, GraphBubbleUp):
            return self._pause(node)
        if event.status in {"failed", "cancelled", "abandoned"}:
            return self._fail(node, event.error or stand_in(event.status, event.reason))
        return self._end(node, node.input if node.name == START else event.result)

    def _branch_started(self, node: NodeRun, event: BranchStarted) -> Awaitable[None] | None:
        opened = None if node.is_open else self._open(node)
        # A node's sequence is body, state write, branches; the start node has no body.
        position = event.position + (2 if node.name == START else 3)
        tags = [f"seq:step:{position}", *node.inherited]
        branch = node.branch = Run(branch_run_id(node.id, event.position), node.id, tags, node.inherited, node.metadata)
        return both(opened, lambda: self._start(branch, event.name, event.input))

    def _branch_ended(self, node: NodeRun, event: BranchEnded) -> Awaitable[None] | None:
        branch, node.branch = node.branch, None
        if branch is None:
            return None
        if event.error is None or isinstance(event.error, GraphBubbleUp):
            return self._end(branch, event.output)
        return self._fail(branch, event.error)

    # Calls of models, tools, retrievers, stores

    def _call_parent(self, event: _CallStarted) -> UUID | None:
        if event.parent_call_id is not None:
            return event.parent_call_id
        return self._run_around(event.run_id, event.task_id)

    def _run_around(self, run_id: UUID, task_id: str) -> UUID | None:
        node = self._nodes.get((run_id, task_id))
        if node is None:
            return self._parent_run_id
        return node.id if node.branch is None else node.branch.id

    def _call_started(self, event: _CallStarted) -> dict[str, Any]:
        run = self._inner[event.call_id] = Run(event.call_id, self._call_parent(event), [*event.tags])
        return {**ids_of(run), "metadata": {**event.metadata}, "name": event.name}

    def _model(self, event: ModelStarted | ModelToken | ModelEnded) -> Awaitable[None] | None:
        call = self._calls.call
        if isinstance(event, ModelStarted):
            named = {**event.params, **self._call_started(event)}
            method = "on_chat_model_start" if event.is_chat else "on_llm_start"
            return call(method, event.serialized, event.messages, **named)
        if isinstance(event, ModelToken):
            return call("on_llm_new_token", event.token, chunk=event.chunk, **ids_of(self._call_of(event)))
        ids = ids_of(self._call_of(event, is_end=True))
        if event.error is not None:
            return call("on_llm_error", event.error, **({} if event.response is None else {"response": event.response}), **ids)
        return call("on_llm_end", event.response, **ids)

    def _tool(self, event: ToolStarted | ToolEnded) -> Awaitable[None] | None:
        call = self._calls.call
        if isinstance(event, ToolStarted):
            inputs = event.input if isinstance(event.input, dict) else None
            named = {"inputs": inputs, "tool_call_id": event.tool_call_id, **self._call_started(event)}
            return call("on_tool_start", event.serialized, str(event.input), **named)
        return self._inner_ended(event, "on_tool_end", "on_tool_error", event.output)

    def _retrieval(self, event: RetrievalStarted | RetrievalEnded) -> Awaitable[None] | None:
        if isinstance(event, RetrievalStarted):
            return self._calls.call("on_retriever_start", event.serialized, event.query, **self._call_started(event))
        return self._inner_ended(event, "on_retriever_end", "on_retriever_error", event.documents)

    def _memory(self, event: MemoryStarted | MemoryEnded) -> Awaitable[None] | None:
        if isinstance(event, MemoryStarted):
            facts = {key: getattr(event, key) for key in ("store_id", "record_id", "namespace", "query", "records")}
            return self._calls.call("on_memory_start", event.operation, **facts, **self._call_started(event))
        return self._inner_ended(event, "on_memory_end", "on_memory_error", event.records, count=event.count)

    def _inner_ended(
        self, event: ToolEnded | RetrievalEnded | MemoryEnded, end: str, error: str, result: Any, **facts: Any
    ) -> Awaitable[None] | None:
        ids = ids_of(self._call_of(event, is_end=True))
        # A tool that asks a person pauses; it has not failed.
        if event.error is None or isinstance(event.error, GraphBubbleUp):
            return self._calls.call(end, result, **facts, **ids)
        return self._calls.call(error, event.error, **ids)

    def _call_of(self, event: ModelToken | ModelEnded | ToolEnded | RetrievalEnded | MemoryEnded, *, is_end: bool = False) -> Run:
        found = self._inner.pop(event.call_id, None) if is_end else self._inner.get(event.call_id)
        return found or Run(event.call_id, event.parent_call_id or self._run_around(event.run_id, event.task_id))

    # The rest

    def _custom(self, event: CustomEmitted) -> Awaitable[None] | None:
        if event.name is None:
            return None
        run_id = self._run_around(event.run_id, event.task_id)
        tags, metadata = [*event.tags], {**(event.metadata or {})}
        return self._calls.call("on_custom_event", event.name, event.data, run_id=run_id, tags=tags, metadata=metadata)

    def _of_the_loop(
        self, event: SuperstepStarted | SuperstepEnded | CheckpointSaved | Interrupted | Resumed
    ) -> Awaitable[None] | None:
        call = self._calls.call
        place = {"run_id": event.run_id, "checkpoint_ns": event.ns}
        match event:
            case SuperstepStarted():
                nodes = tuple(task.name for task in event.tasks)
                return call("on_superstep_start", event.step, nodes=nodes, checkpoint_id=event.checkpoint_id, **place)
            case SuperstepEnded():
                facts: dict[str, Any] = {"status": event.status, "updated": event.updated, "checkpoint_id": event.checkpoint_id}
                return call("on_superstep_end", event.step, **facts, **place)
            case CheckpointSaved():
                facts = {"parent_id": event.parent_id, "source": event.source, "error": event.error}
                return call("on_checkpoint", event.checkpoint_id, step=event.step, **facts, **place)
            case Interrupted():
                run = self._runs.get(event.run_id)
                if run is None or not run.is_root:
                    return None
                ns = segments(event.ns)
                stop = GraphInterruptEvent(event.run_id, event.status, event.checkpoint_id, ns, event.interrupts)
                return call("on_interrupt", stop)
            case Resumed():
                return call("on_resume", GraphResumeEvent(event.run_id, "pending", event.checkpoint_id, segments(event.ns)))

    def _start(self, run: Run, name: str, given: Any) -> Awaitable[None] | None:
        if type(given) is dict:
            # What a node leaves alone is the channel's own; a handler may do with its input what it likes.
            given = {key: isolated(value) for key, value in given.items()}
        return self._calls.call("on_chain_start", None, given, **ids_of(run), metadata={**run.metadata}, name=name)

    def _end(self, run: Run, result: Any) -> Awaitable[None] | None:
        return self._calls.call("on_chain_end", result, **ids_of(run))

    def _pause(self, run: Run) -> Awaitable[None] | None:
        return self._calls.call("on_chain_end", None, is_paused=True, **ids_of(run))

    def _fail(self, run: Run, error: BaseException) -> Awaitable[None] | None:
        return self._calls.call("on_chain_error", error, **ids_of(run))
