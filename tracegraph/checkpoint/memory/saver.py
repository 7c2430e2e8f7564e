"""The saver in dictionaries."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from tracegraph.checkpoint.base.arguments import address_of, config_of, refuse_strategy, refuse_text
from tracegraph.checkpoint.base.grouping import GroupingSaver
from tracegraph.checkpoint.base.growth import with_increment
from tracegraph.checkpoint.base.metadata import get_checkpoint_metadata
from tracegraph.checkpoint.base.saver import WRITES_IDX_MAP, Config
from tracegraph.checkpoint.base.versions import next_text_version
from tracegraph.checkpoint.memory.growth import BlobKey, grown_on
from tracegraph.checkpoint.memory.isolation import isolated
from tracegraph.checkpoint.memory.shelves import Address, KeptCheckpoint, KeptWrite, Shelves, record_of
from tracegraph.checkpoint.memory.values import kept_value, restored_value
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.constants import MISSING, Missing
from tracegraph.errors import InvalidInputError, ThreadConflictError
from tracegraph.records import CheckpointTuple, Growth, NewCheckpoint, TaskWrites, Version

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
        self.storage = self._shelves.storage
        """thread -> namespace -> checkpoint id -> record"""
        self.writes = self._shelves.writes
        """(thread, namespace, checkpoint id) -> slot -> write"""
        self.blobs = self._shelves.blobs
        """(thread, namespace, channel, version) -> value, ``MISSING`` if the channel was empty then"""

    def get_next_version(self, current: Version | None, channel: None) -> str:
        """Return a text: a counter that decides the order, and a fraction that tells branches of a thread apart."""
        return next_text_version(current)

    def put_group(self, config: Config, saves: Sequence[NewCheckpoint | TaskWrites]) -> None:
        """Store what a run saved; see :meth:`BaseCheckpointSaver.put_group`."""
        thread_id, ns, _ = address_of(config)
        records: list[KeptCheckpoint | list[tuple[int, KeptWrite]]] = [
            self._kept_checkpoint(config, save) if isinstance(save, NewCheckpoint) else self._kept_writes(save) for save in saves
        ]
        while True:
            # Copied outside the lock, for copying runs the user's code.
            blobs: dict[BlobKey, Any] = {}
            for save in saves:
                if isinstance(save, NewCheckpoint):
                    self._keep_values(blobs, thread_id, ns, save)
            with self._lock:
                self._check_heads(thread_id, ns, saves)
                if not self._shelves.has_bases_of(blobs):
                    continue  # somebody deleted one in the meantime
                self._shelves.blobs.update(blobs)
                for save, record in zip(saves, records, strict=True):
                    if isinstance(record, KeptCheckpoint):
                        self._shelves.add(thread_id, ns, record)
                    elif isinstance(save, TaskWrites):
                        self._shelves.add_writes((thread_id, ns, save.checkpoint_id), record)
                return

    @staticmethod
    def _kept_checkpoint(config: Config, save: NewCheckpoint) -> KeptCheckpoint:
        return KeptCheckpoint(save.checkpoint, isolated(get_checkpoint_metadata(config, save.metadata)), save.parent_id)

    def _keep_values(self, blobs: dict[BlobKey, Any], thread_id: str, ns: str, save: NewCheckpoint) -> None:
        values, increments, serde = save.checkpoint["channel_values"], save.increments, self.serde
        for name, version in save.new_versions.items():
            key = (thread_id, ns, name, version)
            if name in increments:
                growth, version_below, items = increments[name]
                below = (thread_id, ns, name, version_below)
                base = blobs[below] if below in blobs else self._shelves.blobs.get(below, MISSING)
                grown = grown_on(below, base, growth, kept_value(serde, name, items), serde)
                if grown is not None:
                    blobs[key] = grown
                    continue
            blobs[key] = kept_value(serde, name, values[name]) if name in values else MISSING

    def _kept_writes(self, save: TaskWrites) -> list[tuple[int, KeptWrite]]:
        task_id, task_path, serde = save.task_id, save.task_path, self.serde
        return [
            (WRITES_IDX_MAP.get(channel, at), KeptWrite(task_id, channel, kept_value(serde, channel, value), task_path))
            for at, (channel, value) in enumerate(save.writes)
        ]

    def _check_heads(self, thread_id: str, ns: str, saves: Sequence[NewCheckpoint | TaskWrites]) -> None:
        head = self._shelves.heads.get((thread_id, ns))
        for save in saves:
            if isinstance(save, NewCheckpoint):
                if not isinstance(save.expect_head, Missing) and save.expect_head != head:
                    raise ThreadConflictError(thread_id, expected=save.expect_head, found=head)
                made = save.checkpoint["id"]
                head = made if head is None else max(head, made)

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
            [(write.task_id, write.channel, restored_value(self.serde, write.value)) for write in writes],
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
