"""The attempt whose code is running: what ``interrupt()``, ``get_config()``, a nested ``invoke()`` or ``task()`` finds."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tracegraph.callbacks.foreign import ForeignCalls, TappingForeignCalls
from tracegraph.callbacks.manager import CallbackManager
from tracegraph.callbacks.observed_store import observed_store
from tracegraph.callbacks.place import Place
from tracegraph.config import RunSpec
from tracegraph.constants import NS_SEP
from tracegraph.drivers.answers import AnswerSchema
from tracegraph.drivers.room import yield_to_readers
from tracegraph.engine.identity import interrupt_id, task_namespace
from tracegraph.engine.reports import AnswerTaken, TaskCalled
from tracegraph.engine.task import Task
from tracegraph.errors import GraphInterrupt, InvalidAnswerError, InvalidUpdateError
from tracegraph.events import CALL_KINDS, MEMORY_KINDS, CustomEmitted, Event, MessagePushed, RunStatus
from tracegraph.runtime import ExecutionInfo, Runtime
from tracegraph.types import Interrupt

if TYPE_CHECKING:
    from tracegraph.drivers.run import Run
    from tracegraph.drivers.unread import BlockingUnread
    from tracegraph.engine.node import Node

__all__ = ["HereNow"]


_numbering = threading.Lock()
"""A node's own threads may call at once, and no two calls may have one number. One for all, for it is held for no time."""


def _unless_over(attempt: Callable[[], HereNow | None]) -> HereNow | None:
    here = attempt()
    return None if here is None or here.is_over else here


class AttemptHub:
    """The Hub as the calls of models and tools in one attempt see it: closed, once the attempt is given up.

    It does not hold the attempt, whose config leads here.
    """

    __slots__ = ("_hub", "attempt", "publish")

    def __init__(self, here: HereNow) -> None:
        self._hub = here.run.hub
        self.attempt = weakref.ref(here)
        self.publish: Callable[[Event], None] = self._publish_and_yield if self._hub.gates else self._hub.publish
        """Hands an event to whoever wants it."""

    @property
    def wants(self) -> int:
        """Kinds somebody listens to; asked before an event is made."""
        here = self.attempt()
        return 0 if here is not None and here.is_given_up else self._hub.wants

    def _publish_and_yield(self, event: Event) -> None:
        self._hub.publish(event)
        if (here := self.attempt()) is not None:
            yield_to_readers(here, event.seq)

    def note_progress(self) -> None:
        """Take note that the attempt's code did something."""
        if self._hub.is_watched and (here := self.attempt()) is not None:
            here.note_progress()


class HereNow:
    """One attempt of one task. Counters start anew with every attempt, so a retry finds its children and child runs again."""

    asked = 0
    """How many questions this attempt has come to."""
    interrupted: tuple[Interrupt, ...] | None = None
    """Questions raised in this attempt, also by a child run; seen even if user code swallows the exception."""
    refused: InvalidAnswerError | None = None
    """What is wrong with an answer, in this attempt or in a child run; seen even if user code swallows the exception."""
    is_over = False
    is_given_up = False
    """It is out of time, or its run is: what its code still reports, calls or starts is dropped."""
    progress_ns: int | None = None
    """When it last gave a sign of progress; kept for attempts with an idle limit alone."""
    is_told_to_stop = False
    """The engine ordered its end: a cancellation that nobody ordered is the node's own."""
    is_in_thread = False
    """An async run waits for its body in a worker thread."""
    owed: BlockingUnread[Any] | None = None
    """What has no room for a part that its code, on an event loop, has emitted."""
    _calls = 0
    _child_runs = 0
    _config: dict[str, Any] | None = None
    _log_fields: dict[str, Any] | None = None
    _runtime: Runtime[Any] | None = None
    _writer: Callable[[Any], None] | None = None

    def __init__(self, run: Run, task: Task) -> None:
        self.run = run
        self.task = task
        self.attempt = task.attempt
        self.child_runs: list[Run] = []
        """Runs this attempt's code has started that have not ended."""

    @property
    def namespace(self) -> str:
        """The task's own checkpoint namespace, which its child runs live in."""
        return task_namespace(self.task.ns, self.task.node.name, self.task.id)

    @property
    def origin_namespace(self) -> str | None:
        """The namespace that the task had in a superstep of the past that is done again; None for any other task."""
        origin = self.run.launch.origin
        if origin is None or not self.run.engine.is_resuming:
            return None
        return self.task.namespace_at(origin.checkpoint, origin.ns, origin.step)

    def ask(self, value: Any, response_schema: Any) -> Any:
        """Return the answer to this attempt's next question, or pause the run."""
        number = self.asked
        self.asked += 1
        schema = None if response_schema is None else AnswerSchema(response_schema, self.task.node.name)
        answers = self.task.answers
        question = interrupt_id(self.namespace, len(answers))
        if number >= len(answers) and not self.run.has_saver and question in self.run.hub.answers:
            # Of a run that stores nothing, what was answered is known to the resumed root alone.
            answers = self.task.answers = (*answers, self.run.hub.answers[question])
        if number < len(answers):
            return self._take(number, schema)
        known = self.interrupted or ()
        if all(one.id != question for one in known):
            # The first to ask is the one to be answered: code that caught its exception may go on to ask others.
            self.interrupted = (*known, Interrupt(value, question, response_schema=None if schema is None else schema.json))
        raise GraphInterrupt(self.interrupted or ())

    def _take(self, number: int, schema: AnswerSchema | None) -> Any:
        """Return an answer as the node gets it."""
        task, answers = self.task, self.task.answers
        answer, is_newest = answers[number], number == len(answers) - 1
        if schema is not None:
            try:
                answer = schema.validated(answer)
            except ValueError as reason:
                if is_newest and not self.is_over:  # else another attempt may be about to take it
                    task.answers, task.is_answer_held = answers[:number], False
                question = interrupt_id(self.namespace, number)
                self.refused = InvalidAnswerError(task.node.name, interrupt_id=question, answer=answer, reason=reason)
                raise self.refused from reason
        if is_newest and task.is_answer_held:
            self.run.report(AnswerTaken(task, self.attempt))
        return answer

    def child_namespace(self) -> str:
        """Return the namespace of the next child run: the task's, plus ``|k`` from the second one on."""
        with _numbering:
            number = self._child_runs
            self._child_runs += 1
        return f"{self.namespace}{NS_SEP}{number}" if number else self.namespace

    @property
    def is_cut_off(self) -> bool:
        """Whether nothing may start here any more: this attempt, or one around it, was given up, or its run has ended."""
        here: HereNow | None = self
        while here is not None:
            if here.is_given_up or here.run.finish is not None:
                return True
            here = here.run.parent
        return False

    def give_up(self, status: RunStatus, reason: str) -> None:
        """Leave the attempt to itself: nothing it does counts any more, nor what its calls do; runs it has started end."""
        self.is_over = self.is_given_up = True
        for task, other in tuple(self.run.attempts.items()):
            if task.caller is self.task:
                other.give_up(status, reason)
        self.close_child_runs(status, reason)

    # --- signs of progress ---------------------------------------------------------------------------------

    def watch_progress(self) -> None:
        """Keep the time of its signs of progress from now on, if it has an idle limit."""
        timeout = self.task.timeout
        if timeout is not None and timeout.idle_timeout is not None:
            self.run.hub.is_watched = True
            self.progress_ns = self.run.hub.now_ns()

    def note_progress(self) -> None:
        """Take note that this attempt's code did something."""
        if self.run.hub.is_watched:
            self._note(is_heartbeat=False)

    def heartbeat(self) -> None:
        """Tell idle limits that the code is alive; from any thread, until the attempt is over."""
        if self.run.hub.is_watched:
            self._note(is_heartbeat=True)

    def _note(self, *, is_heartbeat: bool) -> None:
        """Set the time of the last sign of this attempt and of those it runs in: caller, and task of the enclosing run."""
        now_ns = self.run.hub.now_ns()
        here: HereNow | None = self
        while here is not None and not here.is_over:
            timeout = here.task.timeout
            if here.progress_ns is not None and timeout is not None and (is_heartbeat or timeout.refresh_on == "auto"):
                here.progress_ns = now_ns
            caller = here.task.caller
            here = here.run.parent if caller is None else here.run.attempts.get(caller)

    # --- what its code starts ------------------------------------------------------------------------------

    def close_child_runs(self, status: RunStatus, reason: str) -> None:
        """End the runs started here, wherever they are driven: they must not outlive the task, nor be told of after it."""
        for child in tuple(self.child_runs):
            child.request_close(status, reason)
            child.end()
        for unread in self.run.hub.gates:
            unread.room.ring()  # whoever waits there for this attempt's sake waits no more

    def call(self, node: Node, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Start a called task and return its future at once."""
        self.note_progress()
        with _numbering:
            index = self._calls
            self._calls += 1
        return self.run.call(TaskCalled(self.task, self.attempt, index, node, (function, args, kwargs)))

    def config(self) -> dict[str, Any]:
        """Return the task's config: the run's, plus what says where it stands. Built once, when somebody asks."""
        if self._config is None:
            self._config = self._build_config()
        return self._config

    def _metadata(self) -> dict[str, Any]:
        task, node = self.task, self.task.node
        return {
            **self.run.metadata,
            "langgraph_step": task.step,
            "langgraph_node": node.name,
            "langgraph_triggers": task.triggers,
            "langgraph_path": task.path,
            "langgraph_checkpoint_ns": self.namespace,
            **(node.metadata or {}),
        }

    def _configurable(self) -> dict[str, Any]:
        run = self.run
        return {
            **run.spec.configurable,
            **({"thread_id": run.thread_id} if run.thread_id is not None else {}),
            "checkpoint_id": None,
            "checkpoint_ns": self.namespace,
            "checkpoint_map": run.checkpoint_map(),
        }

    def inherited_spec(self) -> RunSpec:
        """Return what a run called without a config of its own inherits: what :meth:`config` says, without building it."""
        outer, metadata, configurable = self.run.spec, self._metadata(), self._configurable()
        for key in ("thread_id", "checkpoint_ns"):
            if (value := configurable.get(key)) and key not in metadata:
                metadata[key] = value
        return RunSpec(
            tags=(*outer.tags, *self.task.node.tags),
            metadata=metadata,
            callbacks=None,
            run_name=None,
            run_id=None,
            max_concurrency=outer.max_concurrency,
            recursion_limit=outer.recursion_limit,
            is_limit_set=outer.is_limit_set,
            configurable=configurable,
            thread_id=self.run.thread_id,
            checkpoint_ns=self.namespace,
            checkpoint_id=None,
            checkpoint_map=configurable["checkpoint_map"],
        )

    def _build_config(self) -> dict[str, Any]:
        node, spec = self.task.node, self.run.spec
        metadata = self._metadata()
        config: dict[str, Any] = {
            "metadata": metadata,
            "callbacks": self._manager(metadata),
            "configurable": self._configurable(),
        }
        if tags := [*spec.tags, *node.tags]:
            config["tags"] = tags
        if spec.is_limit_set:
            config["recursion_limit"] = spec.recursion_limit
        if spec.max_concurrency is not None:
            config["max_concurrency"] = spec.max_concurrency
        return config

    def _manager(self, metadata: dict[str, Any]) -> CallbackManager:
        run, task = self.run, self.task
        heard = tuple(run.handlers)
        hub = AttemptHub(self)
        place = Place(
            hub,
            run.run_id,
            run.ns,
            task.step,
            task.id,
            task.node.name,
            self.attempt,
            heard,
            run.hub.now_ns,
            hub.note_progress,
            attempt_here=hub.attempt,
        )
        foreign: ForeignCalls | None = None
        if run.hub.hears_foreign_calls:
            foreign = TappingForeignCalls(place) if run.hub.reads_tokens else ForeignCalls(place)
        return CallbackManager.at(place, tags=[*run.spec.tags, *task.node.tags], metadata=metadata, foreign=foreign)

    @property
    def log_fields(self) -> dict[str, Any]:
        """What a log line says of where it comes from. Built once, when somebody logs."""
        if self._log_fields is None:
            run, task = self.run, self.task
            fields: dict[str, Any] = {"run_id": str(run.run_id)}
            if run.thread_id is not None:
                fields["thread_id"] = run.thread_id
            self._log_fields = fields | {"node": task.node.name, "superstep": task.step, "attempt": self.attempt}
        return self._log_fields

    def share_config(self) -> None:
        """Let what LangChain's runnables find in their ContextVar be this task's config, if somebody hears of their calls.

        Called in the task's own Context, which is thrown away afterwards.
        """
        langchain = sys.modules.get("langchain_core.runnables.config")
        if langchain is not None and self.run.hub.wants & CALL_KINDS:
            langchain.var_child_runnable_config.set(self.config())

    def push(self, message: Any, state_key: str | None) -> None:
        """Put a message on the stream, and into the state under *state_key*."""
        run, task = self.run, self.task
        if state_key is not None and (task.call is not None or state_key not in task.topology.channels):
            where = "a called task writes to no state" if task.call is not None else f"the state has no key {state_key!r}"
            raise InvalidUpdateError(
                f"push_message() cannot store the message: {where}; give state_key=None", node=task.node.name
            )
        self.note_progress()
        if self.is_over:
            return
        if run.hub.wants & MessagePushed.bit:
            metadata = self.config()["metadata"]
            facts = (run.run_id, run.ns, task.step, run.hub.now_ns(), task.id, task.node.name)
            event = MessagePushed(*facts, message, metadata)
            run.hub.publish(event)
            if run.hub.gates:
                yield_to_readers(self, event.seq)
        if state_key is not None:
            task.writes.append((state_key, message))

    @property
    def runtime(self) -> Runtime[Any]:
        """The task's Runtime, built once, when somebody asks."""
        if self._runtime is None:
            run, task = self.run, self.task
            store = run.runtime.store
            if store is not None and run.hub.wants & MEMORY_KINDS:
                store = observed_store(store, partial(_unless_over, weakref.ref(self)))
            self._runtime = run.runtime.override(
                store=store,
                stream_writer=self.writer,
                heartbeat=self.heartbeat,
                previous=task.view.get("__previous__"),
                execution_info=ExecutionInfo(
                    checkpoint_id=run.engine.saving.checkpoint_id,
                    checkpoint_ns=self.namespace,
                    task_id=task.id,
                    thread_id=run.thread_id,
                    run_id=None if run.spec.run_id is None else str(run.spec.run_id),
                    node_attempt=self.attempt,
                    node_first_attempt_time=run.first_attempt_time(task),
                ),
            )
        return self._runtime

    @property
    def writer(self) -> Callable[[Any], None]:
        """Emits ``custom`` chunks. Bound to this attempt, so it works in plain threads; mute once the attempt is over."""
        if self._writer is None:
            run, task = self.run, self.task

            def write(chunk: Any) -> None:
                self.note_progress()
                if run.hub.wants & CustomEmitted.bit and not self.is_over:
                    event = CustomEmitted(run.run_id, run.ns, task.step, run.hub.now_ns(), task.id, task.node.name, None, chunk)
                    run.hub.publish(event)
                    if run.hub.gates:
                        yield_to_readers(self, event.seq)

            self._writer = write
        return self._writer
