"""The saver in dictionaries."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from tracegraph.checkpoint.base.arguments import address_of, config_of, refuse_strategy, refuse_text
from tracegraph.checkpoint.base.grouping import GroupingSaver
from tracegraph.checkpoint.base.growth import with_increment
from tracegraph.checkpoint.base.saver import WRITES_IDX_MAP, Config, QueuePlace
from tracegraph.checkpoint.memory.growth import KeptGrowth, grown_on, size_of
from tracegraph.checkpoint.memory.isolation import isolated
from tracegraph.checkpoint.memory.queues import Queues
from tracegraph.checkpoint.memory.shelves import Address, Group, KeptCheckpoint, Shelves, record_of
from tracegraph.checkpoint.memory.values import kept_value, restored_value
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.constants import MISSING
from tracegraph.errors import InvalidInputError
from tracegraph.records import Checkpoint, CheckpointTuple, Growth, Increment, NewCheckpoint, TaskWrites

__all__ = ["InMemorySaver"]

Result = TypeVar("Result")


class InMemorySaver(GroupingSaver):
    """Keeps checkpoints in this process; for any number of threads and event loops at once.

    Values are copied on the way in and on the way out, so that nothing a node does later changes history.
    With *serde* they are kept as bytes instead, which shows what a database would make of them.

    >>> from tracegraph.checkpoint.base import empty_checkpoint
    >>> saver = InMemorySaver()
    >>> thread = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    >>> saved = saver.put(thread, empty_checkpoint(), {"source": "input", "step": -1}, {})
    >>> saver.get_tuple(thread).metadata
    {'source': 'input', 'step': -1}
    """

    does_io = False

    def __init__(self, *, serde: SerializerProtocol | None = None, factory: Callable[..., Any] = defaultdict) -> None:
        super().__init__(serde=serde)
        self._shelves = Shelves(factory)
        # Re-entrant: a reader that is dropped may save from inside the garbage collector, which may run anywhere.
        self._lock = threading.RLock()
        self._queues = Queues()
        self.storage = self._shelves.storage
        """thread -> namespace -> checkpoint id -> record"""
        self.writes = self._shelves.writes
        """(thread, namespace, checkpoint id) -> slot -> write"""
        self.blobs = self._shelves.blobs
        """(thread, namespace, channel, version) -> value, ``MISSING`` if the channel was empty then"""

    def put_group(self, config: Config, saves: Sequence[NewCheckpoint | TaskWrites]) -> dict[str, int] | None:
        """Store what a run saved; see :meth:`BaseCheckpointSaver.put_group`."""
        thread_id, ns, _ = address_of(config)
        is_stored = False
        while not is_stored:
            # Copied outside the lock, for copying runs the user's code.
            group = Group(thread_id, ns)
            for save in saves:
                if isinstance(save, NewCheckpoint):
                    self._keep_checkpoint(group, save)
                else:
                    self._keep_writes(group, save)
            with self._lock:
                # Not, if somebody deleted in the meantime what a value was to be added to.
                is_stored = self._shelves.add_group(group)
        return group.sizes if self.serde is not None else None

    def _keep_checkpoint(self, group: Group, save: NewCheckpoint) -> None:
        values, serde = save.checkpoint["channel_values"], self.serde
        size = 0
        for name, version in save.new_versions.items():
            key = (group.thread_id, group.ns, name, version)
            if name in save.increments and (grown := self._grown(group, name, save.increments[name])) is not None:
                group.blobs[key] = grown
            else:
                group.blobs[key] = kept_value(serde, name, values[name]) if name in values else MISSING
            if serde is not None:
                size += size_of(group.blobs[key])
        group.sizes[save.checkpoint["id"]] = size
        record: Checkpoint = {**save.checkpoint, "channel_values": {}}
        group.checkpoints.append((KeptCheckpoint(record, save.metadata, save.parent_id), save.expect_head, save.based_on))

    def _grown(self, group: Group, name: str, increment: Increment) -> KeptGrowth | None:
        growth, version, items = increment
        key = (group.thread_id, group.ns, name, version)
        base = group.blobs[key] if key in group.blobs else self._shelves.blobs.get(key, MISSING)
        grown = grown_on(key, base, growth, kept_value(self.serde, name, items), self.serde)
        if grown is not None:
            group.bases.append(key)
        return grown

    def _keep_writes(self, group: Group, save: TaskWrites) -> None:
        task_id, task_path, serde = save.task_id, save.task_path, self.serde
        kept = {
            (task_id, WRITES_IDX_MAP.get(channel, at)): (task_id, channel, kept_value(serde, channel, value), task_path)
            for at, (channel, value) in enumerate(save.writes)
        }
        group.writes.append(((group.thread_id, group.ns, save.checkpoint_id), kept))

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return one checkpoint; see :meth:`BaseCheckpointSaver.get_tuple`."""
        thread_id, ns, checkpoint_id = address_of(config)
        with self._lock:
            checkpoint_id = checkpoint_id or self._shelves.heads.get((thread_id, ns))
        return None if checkpoint_id is None else self._read((thread_id, ns, checkpoint_id))

    def _read(self, address: Address) -> CheckpointTuple | None:
        with self._lock:
            found = self._shelves.checkpoint(address)
            if found is None:
                return None
            values, writes = self._shelves.values(address), self._shelves.pending(address)
        # What is kept is never changed, so it is copied when others may go on.
        checkpoint = record_of(found.checkpoint)
        checkpoint["channel_values"] = {name: self._restored(parts) for name, parts in values.items()}
        return CheckpointTuple(
            config_of(*address),
            checkpoint,
            isolated(found.metadata),
            None if found.parent_id is None else config_of(address[0], address[1], found.parent_id),
            [(task_id, channel, restored_value(self.serde, value)) for task_id, channel, value, _path in writes],
        )

    def _restored(self, parts: Sequence[tuple[Growth | None, Any]]) -> Any:
        (_, whole), *rest = parts
        value = restored_value(self.serde, whole)
        for growth, items in rest:
            assert growth is not None
            value = with_increment(value, growth, restored_value(self.serde, items))
        return value

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; one that is deleted in the meantime is skipped."""
        wanted = {} if config is None else config["configurable"]
        only, bound = wanted.get("checkpoint_id"), None if before is None else before["configurable"].get("checkpoint_id")
        thread_id = wanted.get("thread_id")
        with self._lock:
            kept = self._shelves.addresses(None if thread_id is None else str(thread_id), wanted.get("checkpoint_ns"))
        found = [
            address
            for address, (_record, metadata, _parent) in kept
            if (only is None or address[2] == only)
            and (bound is None or address[2] < bound)
            and all(key in metadata and metadata[key] == value for key, value in (filter or {}).items())  # type: ignore[literal-required]  # any key
        ]
        found.sort(key=lambda address: address[2], reverse=True)
        for address in found[:limit]:
            if (read := self._read(address)) is not None:
                yield read

    def join_queue(self, thread_id: str, ticket: str, *, lease_s: float) -> None:  # valid as long as the process
        """Queue up for a thread; see :meth:`BaseCheckpointSaver.join_queue`."""
        with self._lock:
            self._queues.join(thread_id, ticket)

    def place_in_queue(self, ticket: str) -> QueuePlace:
        """Say where a ticket is; see :meth:`BaseCheckpointSaver.place_in_queue`."""
        with self._lock:
            return self._queues.place(ticket)

    def keep_turn(self, ticket: str, *, lease_s: float) -> bool:
        """Say whether a ticket is in line: it is valid as long as the process."""
        with self._lock:
            return self._queues.has(ticket)

    def leave_queue(self, ticket: str) -> None:
        """Give a ticket back."""
        with self._lock:
            self._queues.leave(ticket)

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread."""
        with self._lock:
            self._shelves.forget(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Forget the checkpoints of these runs."""
        refuse_text("run_ids", run_ids)
        wanted = set(map(str, run_ids))
        with self._lock:
            kept = self._shelves.addresses(None, None)
            self._shelves.drop([address for address, found in kept if str(found.metadata.get("run_id")) in wanted])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; see :meth:`BaseCheckpointSaver.copy_thread`."""
        source, target = str(source_thread_id), str(target_thread_id)
        with self._lock:
            if self.storage.get(target):
                raise InvalidInputError(f"thread {target!r} has checkpoints already; copy to a new id, or delete it first")
            self._shelves.copy(source, target)

    def prune(self, thread_ids: Sequence[str], *, strategy: Literal["keep_latest", "delete"] = "keep_latest") -> None:
        """Thin out threads; see :meth:`BaseCheckpointSaver.prune`."""
        refuse_text("thread_ids", thread_ids)
        refuse_strategy(strategy)
        with self._lock:
            for thread_id in map(str, thread_ids):
                if strategy == "delete":
                    self._shelves.forget(thread_id)
                else:
                    self._shelves.thin(thread_id)

    async def _off_loop(self, call: Callable[[], Result]) -> Result:
        return call()  # nothing here waits

    async def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See :meth:`list`."""
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found
