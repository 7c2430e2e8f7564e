"""What a thread that stopped waits for: which questions are open, and whether anything can go on without an answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from tracegraph.cli.execution import needs_async
from tracegraph.constants import ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME, UNFINISHED_WRITES
from tracegraph.drivers.loading import pending_interrupts
from tracegraph.engine.identity import handler_suffix, interrupt_id, task_id, task_namespace
from tracegraph.pregel import Pregel
from tracegraph.pregel.addressing import graph_at
from tracegraph.pregel.snapshot import saver_of
from tracegraph.records import CheckpointTuple, Write
from tracegraph.types import Interrupt, PregelTask, StateSnapshot

__all__ = ["Stopped", "read_stopped"]


@dataclass(frozen=True, slots=True)
class Stopped:
    """A thread's checkpoint as its graph reads it, and as it is stored: a snapshot does not show what error handlers do."""

    graph: Pregel
    state: StateSnapshot
    saved: CheckpointTuple

    @property
    def questions(self) -> list[Interrupt]:
        """What can be answered; at an addressed checkpoint that is also what was answered once."""
        return list({asked.id: asked for asked in (*self.state.interrupts, *pending_interrupts(self.saved))}.values())

    @property
    def only_waits(self) -> bool:
        """Whether nothing could go on without an answer."""
        found = {self._status(task) for task in self.state.tasks}
        return "asks" in found and "ready" not in found

    def _status(self, task: PregelTask) -> Literal["asks", "ready", "finished"]:
        if task.result is not None:
            return "asks" if task.interrupts else "finished"
        where = self.saved.config["configurable"]
        ns, name, subject = where.get("checkpoint_ns", ""), task.name, task.id
        if any(channel == ERROR_SOURCE_NODE for channel, _ in self._writes(subject)):
            # It failed for good: what is left to do is its error handler's.
            handler = graph_at(self.graph, ns).nodes[name].error_handler
            if handler is not None:
                checkpoint, step = UUID(self.saved.checkpoint["id"]).bytes, self.saved.metadata.get("step", -1) + 1
                name, subject = handler, task_id(checkpoint, ns, step, handler, handler_suffix(handler, subject))
        writes = self._writes(subject)
        if any(channel not in UNFINISHED_WRITES for channel, _ in writes):
            return "finished"
        if any(channel == ERROR for channel, _ in writes):
            return "ready"
        return "asks" if _open_questions(writes, task_namespace(ns, name, subject)) else "ready"

    def _writes(self, subject: str) -> list[Write]:
        return [(channel, value) for task, channel, value in self.saved.pending_writes or () if task == subject]


def _open_questions(writes: list[Write], ns: str) -> set[str]:
    """Return the ids of a task's questions that have no answer yet: one is stored before the task goes on with it."""
    asked = {question.id for channel, value in writes if channel == INTERRUPT for question in value}
    answers = next((value for channel, value in writes if channel == RESUME), ())
    return asked - {interrupt_id(ns, count) for count in range(len(answers))}


def read_stopped(graph: Pregel, config: Any) -> Stopped | None:
    """Return the state that *config* addresses, None if there is none."""
    if needs_async(graph):
        # In one event loop, for a saver's connections may belong to it.
        return asyncio.run(_aread_stopped(graph, config))
    state = graph.get_state(config)
    saved = None if state.created_at is None else saver_of(graph).get_tuple(state.config)
    return None if saved is None else Stopped(graph, state, saved)


async def _aread_stopped(graph: Pregel, config: Any) -> Stopped | None:
    state = await graph.aget_state(config)
    saved = None if state.created_at is None else await saver_of(graph).aget_tuple(state.config)
    return None if saved is None else Stopped(graph, state, saved)
