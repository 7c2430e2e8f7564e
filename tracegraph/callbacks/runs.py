"""The tree of runs as handlers see it: ids, parents, tags and metadata of graph runs, node runs and what is inside.

A node run's id is a hash of run, task and attempt, so whoever knows these (the managers handed to node code) knows
the id without asking.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from tracegraph.constants import NS_SEP, TAG_HIDDEN
from tracegraph.engine.identity import derived_uuid_text, task_namespace
from tracegraph.events import TaskStarted

__all__ = ["BODY_TAG", "NodeRun", "Run", "branch_run_id", "ids_of", "node_of", "node_run_id", "segments", "stand_in"]

BODY_TAG: Final = "seq:step:1"
"""Tag of what a node's own body calls."""


def node_run_id(run_id: UUID, task_id: str, attempt: int = 1) -> UUID:
    """Return the id under which handlers know one attempt of a task."""
    return UUID(derived_uuid_text(run_id.bytes, task_id, str(attempt)))


def branch_run_id(node_run: UUID, position: int) -> UUID:
    """Return the id of a path function's run inside a node run."""
    return UUID(derived_uuid_text(node_run.bytes, "branch", str(position)))


@dataclass(slots=True)
class Run:
    """A graph run, or one inside a node: its own tags, and what the runs inside it inherit."""

    id: UUID
    parent: UUID | None
    tags: list[str] = field(default_factory=list)
    inherited: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    is_root: bool = False


@dataclass(slots=True)
class NodeRun(Run):
    """One attempt of a task; ``branch`` is the path function that runs now."""

    name: str = ""
    input: Any = None
    is_open: bool = False
    branch: Run | None = None


def node_of(event: TaskStarted, run: Run | None) -> NodeRun:
    """Return the run of a task that starts inside *run*."""
    run = run or Run(event.run_id, None)
    inherited = [*run.inherited, *(tag for tag in event.tags if tag not in run.inherited)]
    if event.is_hidden and TAG_HIDDEN not in inherited:
        inherited.append(TAG_HIDDEN)
    metadata = {
        **run.metadata,
        "langgraph_step": event.step,
        "langgraph_node": event.name,
        "langgraph_triggers": event.triggers,
        "langgraph_path": event.path,
        "langgraph_checkpoint_ns": task_namespace(event.ns, event.name, event.task_id),
        **(event.metadata or {}),
    }
    tags = [f"graph:step:{event.step}", *inherited]
    own_id = node_run_id(event.run_id, event.task_id)
    return NodeRun(own_id, run.id, tags, inherited, metadata, name=event.name, input=event.input)


def ids_of(run: Run) -> dict[str, Any]:
    """Return the keywords every handler method gets."""
    # A copy of the tags for each call: handlers may change what they are given.
    return {"run_id": run.id, "parent_run_id": run.parent, "tags": [*run.tags]}


def segments(ns: str) -> tuple[str, ...]:
    """Return a checkpoint namespace level by level.

    >>> segments("sub:1|leaf:2"), segments("")
    (('sub:1', 'leaf:2'), ())
    """
    return tuple(ns.split(NS_SEP)) if ns else ()


def stand_in(status: str, reason: str | None) -> BaseException:
    """Return what handlers are given as the error of a run that ended without one."""
    words = [reason] if reason else []
    if status == "abandoned":
        return GeneratorExit(*words)
    if status == "cancelled":
        return asyncio.CancelledError(*words)
    return RuntimeError(reason or f"the run ended: {status}")
