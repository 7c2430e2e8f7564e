"""The saver as a run sees it: addressed to its thread and namespace, told what it can do once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from typing import Any, cast

from tracegraph.checkpoint.base import BaseCheckpointSaver, takes_parameter
from tracegraph.checkpoint.base.id import uuid6
from tracegraph.constants import TRACE
from tracegraph.engine.actions import SaveCheckpoint, SaveWrites
from tracegraph.records import CheckpointTuple, Version

__all__ = ["Newest", "SaverPort"]


class Newest:
    """The newest checkpoint id that a root run, or a run inside it, has seen or made."""

    __slots__ = ("_lock", "id")

    def __init__(self) -> None:
        self.id = ""
        self._lock = threading.Lock()

    def note(self, checkpoint_id: str) -> None:
        """Take note of an id."""
        with self._lock:
            self.id = max(self.id, checkpoint_id)

    def note_of(self, saved: CheckpointTuple | None) -> None:
        """Take note of a checkpoint's id, if there is one."""
        if saved is not None:
            self.note(saved.checkpoint["id"])


class SaverPort:
    """One run's way to its saver."""

    __slots__ = (
        "_checks_head",
        "_configurable",
        "_metadata",
        "_takes_path",
        "does_io",
        "newest",
        "ns",
        "saver",
        "thread_id",
        "trace",
    )

    def __init__(
        self,
        saver: BaseCheckpointSaver,
        *,
        thread_id: str,
        ns: str,
        configurable: Mapping[str, Any],
        metadata: Mapping[str, Any],
        newest: Newest | None = None,
    ) -> None:
        self.saver = saver
        self.thread_id = thread_id
        self.ns = ns
        self.does_io: bool = getattr(saver, "does_io", True)
        self._configurable = {**configurable, "thread_id": thread_id, "checkpoint_ns": ns}
        self._metadata = dict(metadata)
        self.newest = newest or Newest()
        """Shared with the runs around and inside: all of a thread's ids sort by age, whoever's clock made the first."""
        self.trace: tuple[str, ...] = ()
        """Traceparent of the run's root span, kept in checkpoint metadata for whoever goes on from there."""
        self._checks_head, self._takes_path = _abilities(cast("Any", type(saver)))

    def next_version(self, current: Version | None) -> Version:
        """Return the version after *current*."""
        found: Version = self.saver.get_next_version(current, None)
        return found

    def new_checkpoint_id(self, parent_id: str | None, step: int) -> str:
        """Return an id that sorts after the parent's and all others seen, even of a machine whose clock is ahead."""
        made = str(uuid6(clock_seq=step, after=max(parent_id or "", self.newest.id)))
        self.newest.note(made)
        return made

    def config(self, checkpoint_id: str | None) -> dict[str, Any]:
        """Return the config that addresses a checkpoint of this thread and namespace."""
        return {"configurable": {**self._configurable, "checkpoint_id": checkpoint_id}, "metadata": self._metadata}

    def _order(self, action: SaveCheckpoint | SaveWrites) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """Return the saver method, its arguments and keywords for an action."""
        if isinstance(action, SaveWrites):
            arguments = (self.config(action.checkpoint_id), action.writes, action.task_id)
            return "put_writes", arguments, {"task_path": action.path_str} if self._takes_path else {}
        keywords = {"expect_head": action.parent_id} if self._checks_head and action.expect_head else {}
        metadata = {**action.metadata, TRACE: list(self.trace)} if self.trace else action.metadata
        return "put", (self.config(action.parent_id), action.checkpoint, metadata, action.new_versions), keywords

    def store(self, action: SaveCheckpoint | SaveWrites) -> None:
        """Carry a save out, blocking."""
        method, arguments, keywords = self._order(action)
        getattr(self.saver, method)(*arguments, **keywords)

    async def astore(self, action: SaveCheckpoint | SaveWrites) -> None:
        """Carry a save out, awaiting."""
        method, arguments, keywords = self._order(action)
        await getattr(self.saver, f"a{method}")(*arguments, **keywords)


@functools.cache
def _abilities(kind: Any) -> tuple[bool, bool]:
    """Return whether a saver class can check the head at put, and whether it takes a task path."""
    return takes_parameter(kind.put, "expect_head"), takes_parameter(kind.put_writes, "task_path")
