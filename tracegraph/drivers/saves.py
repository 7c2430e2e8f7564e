"""The saver as a run sees it: addressed to its thread and namespace, told what it can do once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from tracegraph.checkpoint.base import BaseCheckpointSaver, takes_parameter
from tracegraph.checkpoint.base.grouping import GroupingSaver
from tracegraph.checkpoint.base.id import ticks_of, uuid6_text
from tracegraph.checkpoint.base.metadata import get_checkpoint_metadata
from tracegraph.constants import ASKED, MISSING, TRACE
from tracegraph.engine.actions import SaveCheckpoint, SaveWrites
from tracegraph.records import CheckpointTuple, Version

__all__ = ["Newest", "SaverPort", "Written"]

Written: TypeAlias = "Mapping[str, int] | None"
"""By checkpoint id, how many bytes a saver wrote for it; None if it does not tell."""

_SINGLE: Final = ("put", "put_writes", "aput", "aput_writes")
"""What a saver stores one thing with; who overrides one of these wants to see each."""

_OURS: Final = frozenset({TRACE, ASKED})
"""What is stored beside a pause for telemetry. A saver of another make may give these the slots of a task's first writes,
and keep them there when the task, once it was answered, writes its results: those must not get lost for that."""


class Newest:
    """The time of the newest checkpoint id that a root run, or a run inside it, has seen or made."""

    __slots__ = ("_lock", "_made", "_ticks")

    def __init__(self) -> None:
        self._ticks = 0
        self._made: str | None = None
        self._lock = threading.Lock()

    def note(self, checkpoint_id: str) -> None:
        """Take note of an id."""
        with self._lock:
            self._ticks = max(self._ticks, ticks_of(checkpoint_id))

    def note_of(self, saved: CheckpointTuple | None) -> None:
        """Take note of a checkpoint's id, if there is one."""
        if saved is not None:
            self.note(saved.checkpoint["id"])

    def next_id(self, parent_id: str | None, step: int) -> str:
        """Return an id that sorts after all that were noted or made."""
        if parent_id is not None and parent_id != self._made:
            self.note(parent_id)
        with self._lock:
            self._made, self._ticks = made, _ = uuid6_text(step, self._ticks)
        return made


class SaverPort:
    """One run's way to its saver."""

    __slots__ = (
        "_checks_head",
        "_configurable",
        "_keeps_slots",
        "_metadata",
        "_place",
        "_takes_path",
        "does_io",
        "extras",
        "newest",
        "ns",
        "saver",
        "stores_groups",
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
        self._place = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}
        config = {"configurable": self._configurable, "metadata": self._metadata}
        self.extras: Mapping[str, Any] = get_checkpoint_metadata(config, {})
        """What checkpoints take over of the run's metadata, looked up once."""
        self.newest = newest or Newest()
        """Shared with the runs around and inside: all of a thread's ids sort by age, whoever's clock made the first."""
        self.trace: tuple[str, ...] = ()
        """Traceparent of the run's root span, kept in checkpoint metadata for whoever goes on from there."""
        self._keeps_slots = isinstance(saver, GroupingSaver)
        self.stores_groups, self._checks_head, self._takes_path = _abilities(saver)

    def next_version(self, current: Version | None) -> Version:
        """Return the version after *current*."""
        found: Version = self.saver.get_next_version(current, None)
        return found

    def new_checkpoint_id(self, parent_id: str | None, step: int) -> str:
        """Return an id that sorts after the parent's and all others seen, even of a machine whose clock is ahead."""
        return self.newest.next_id(parent_id, step)

    def config(self, checkpoint_id: str | None) -> dict[str, Any]:
        """Return the config that addresses a checkpoint of this thread and namespace."""
        return {"configurable": {**self._configurable, "checkpoint_id": checkpoint_id}, "metadata": self._metadata}

    def store(self, saves: Sequence[SaveCheckpoint | SaveWrites]) -> Written:
        """Carry saves out, blocking: one, or all of a group or none."""
        method, arguments, keywords = self._call(saves)
        return self._told(getattr(self.saver, method)(*arguments, **keywords))

    async def astore(self, saves: Sequence[SaveCheckpoint | SaveWrites]) -> Written:
        """Carry saves out, awaiting."""
        method, arguments, keywords = self._call(saves)
        return self._told(await getattr(self.saver, f"a{method}")(*arguments, **keywords))

    def _told(self, answer: Any) -> Written:
        """Return the bytes that a saver says it wrote: one of another make may return anything."""
        return answer if self.stores_groups and isinstance(answer, dict) else None

    def _call(self, saves: Sequence[SaveCheckpoint | SaveWrites]) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """Return the saver method that stores *saves*, its arguments and keywords."""
        for save in saves:
            if isinstance(save, SaveCheckpoint) and self.trace:
                save.metadata[TRACE] = list(self.trace)
        if self.stores_groups:
            return "put_group", (self._place, saves), {}
        (save,) = saves
        if isinstance(save, SaveWrites):
            writes = save.writes if self._keeps_slots else [write for write in save.writes if write[0] not in _OURS]
            arguments = (self.config(save.checkpoint_id), writes, save.task_id)
            return "put_writes", arguments, {"task_path": save.task_path} if self._takes_path else {}
        keywords = {"expect_head": save.expect_head} if self._checks_head and save.expect_head is not MISSING else {}
        return "put", (self.config(save.parent_id), save.checkpoint, save.metadata, save.new_versions), keywords


def _abilities(saver: BaseCheckpointSaver) -> tuple[bool, bool, bool]:
    """Return whether a saver stores groups, can check the head at put, and takes a task path."""
    kind: Any = type(saver)
    is_patched = not vars(saver).keys().isdisjoint(_SINGLE) if hasattr(saver, "__dict__") else False
    # By the functions, for a class can be patched between two runs.
    stores_groups = not is_patched and _stores_groups(kind, *(getattr(kind, name, None) for name in _SINGLE))
    return stores_groups, _takes(kind.put, "expect_head"), _takes(kind.put_writes, "task_path")


# Bounded, for a process may make saver classes without end.
_takes = functools.lru_cache(maxsize=256)(takes_parameter)


@functools.lru_cache(maxsize=256)
def _stores_groups(kind: Any, *_single: Any) -> bool:
    """Say whether a saver class takes groups; not one that overrides how a saver which does stores a single thing."""

    def owner(method: str) -> int:
        return next((at for at, base in enumerate(kind.__mro__) if method in vars(base)), len(kind.__mro__))

    if BaseCheckpointSaver not in kind.__mro__:
        return False
    own = [owner(name) for name in ("put_group", "aput_group") if owner(name) < kind.__mro__.index(BaseCheckpointSaver)]
    return bool(own) and min(own) < min(map(owner, _SINGLE))
