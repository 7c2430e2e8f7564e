"""The savers in SQL databases but for their connections, in either colour."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from tracegraph.checkpoint.base.arguments import address_of, config_of, refuse_strategy, refuse_text
from tracegraph.checkpoint.base.grouping import AsyncGroupingSaver, GroupingSaver
from tracegraph.checkpoint.base.saver import Config, QueuePlace
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sql.dialect import Dialect
from tracegraph.checkpoint.sql.operations import Found, Operations, Place
from tracegraph.checkpoint.sql.orders import Operation
from tracegraph.checkpoint.sql.prepared import prepared
from tracegraph.checkpoint.sql.rows import values_of
from tracegraph.checkpoint.sql.walk import Scope, Walk
from tracegraph.records import CheckpointTuple, NewCheckpoint, TaskWrites, ThreadSummary

__all__ = ["AsyncSqlSaver", "SqlSaver", "SyncSqlSaver"]

T = TypeVar("T")

Batch: TypeAlias = list[tuple[Place, Found]]

_BATCH = 16
"""Checkpoints read in one transaction of a listing."""


class SqlSaver(GroupingSaver):
    """What both colours share: every call as an operation, for the colour to carry out in one transaction."""

    serde: SerializerProtocol

    def __init__(self, dialect: Dialect, serde: SerializerProtocol | None) -> None:
        super().__init__(serde=serde or JsonPlusSerializer())
        self._operations = Operations(dialect)

    def _storing(self, config: Config, saves: Sequence[NewCheckpoint | TaskWrites]) -> Operation[dict[str, int]]:
        thread_id, ns, _ = address_of(config)
        return self._operations.put_group(thread_id, ns, prepared(self.serde, saves))

    def _reading(self, config: Config) -> Operation[Found | None]:
        thread_id, ns, checkpoint_id = address_of(config)
        return self._operations.read(thread_id, ns, checkpoint_id or None)

    def _tuple_of(self, thread_id: str, ns: str, found: Found) -> CheckpointTuple:
        checkpoint, load = found.checkpoint, self.serde.loads_typed
        if checkpoint["channel_values"] and not getattr(self.serde, "accept_plain", True):
            raise UnreadableBytesError("a checkpoint has values that are not encrypted, and the serialiser does not accept those")
        checkpoint["channel_values"] |= values_of(self.serde, found.values)
        return CheckpointTuple(
            config=config_of(thread_id, ns, checkpoint["id"]),
            checkpoint=checkpoint,
            metadata=found.metadata,
            parent_config=None if found.parent_id is None else config_of(thread_id, ns, found.parent_id),
            pending_writes=[(task_id, channel, load((kind, value))) for task_id, channel, kind, value in found.writes],
        )

    def _dropping(self, run_ids: Sequence[str]) -> Operation[None]:
        refuse_text("run_ids", run_ids)
        return self._operations.drop_runs(set(map(str, run_ids)))

    def _pruning(self, thread_ids: Sequence[str], strategy: str) -> Iterable[Operation[None]]:
        """Return an operation for each thread, for transactions of their own: others may write in between."""
        refuse_text("thread_ids", thread_ids)
        refuse_strategy(strategy)
        prune = self._operations.forget if strategy == "delete" else self._operations.thin
        return (prune(str(thread_id)) for thread_id in thread_ids)

    async def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, newest first, a batch at a time; one that is deleted in the meantime is skipped."""
        walk = Walk(self._operations, Scope.of(config, filter, before))
        for count in _batches(limit):
            batch = await self._atake(walk, count)
            for place, found in batch:
                yield self._tuple_of(place.thread_id, place.ns, found)
            if len(batch) < count:
                return

    @abstractmethod
    async def _atake(self, walk: Walk, count: int) -> Batch:
        """Return the next checkpoints of a walk."""


class SyncSqlSaver(SqlSaver):
    """The sync methods, over :meth:`_run`."""

    @abstractmethod
    def _run(self, operation: Operation[T], *, writes: bool) -> T:
        """Carry an operation out in one transaction."""

    def put_group(self, config: Config, saves: Sequence[NewCheckpoint | TaskWrites]) -> dict[str, int]:
        """Store what a run saved; see :meth:`BaseCheckpointSaver.put_group`."""
        return self._run(self._storing(config, saves), writes=True)

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return one checkpoint; see :meth:`BaseCheckpointSaver.get_tuple`."""
        found = self._run(self._reading(config), writes=False)
        return None if found is None else self._tuple_of(*address_of(config)[:2], found)

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, a batch at a time; one that is deleted in the meantime is skipped."""
        walk = Walk(self._operations, Scope.of(config, filter, before))
        for count in _batches(limit):
            batch = self._run(walk.take(count), writes=False)
            for place, found in batch:
                yield self._tuple_of(place.thread_id, place.ns, found)
            if len(batch) < count:
                return

    def list_threads(self, *, limit: int | None = None) -> Sequence[ThreadSummary]:
        """Return what there is of each thread; see :meth:`BaseCheckpointSaver.list_threads`."""
        return self._run(self._operations.threads(limit), writes=False)

    def join_queue(self, thread_id: str, ticket: str, *, lease_s: float) -> None:
        """Queue up for a thread; see :meth:`BaseCheckpointSaver.join_queue`."""
        self._run(self._operations.join_queue(thread_id, ticket, lease_s), writes=True)

    def place_in_queue(self, ticket: str) -> QueuePlace:
        """Say where a ticket is; see :meth:`BaseCheckpointSaver.place_in_queue`."""
        return self._run(self._operations.place_in_queue(ticket), writes=False)

    def keep_turn(self, ticket: str, *, lease_s: float) -> bool:
        """Make a ticket valid for longer; see :meth:`BaseCheckpointSaver.keep_turn`."""
        return self._run(self._operations.keep_turn(ticket, lease_s), writes=True)

    def leave_queue(self, ticket: str) -> None:
        """Give a ticket back."""
        self._run(self._operations.leave_queue(ticket), writes=True)

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread."""
        self._run(self._operations.forget(str(thread_id)), writes=True)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Forget the checkpoints of these runs."""
        self._run(self._dropping(run_ids), writes=True)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; see :meth:`BaseCheckpointSaver.copy_thread`."""
        self._run(self._operations.copy_thread(str(source_thread_id), str(target_thread_id)), writes=True)

    def prune(self, thread_ids: Sequence[str], *, strategy: Literal["keep_latest", "delete"] = "keep_latest") -> None:
        """Thin out threads; see :meth:`BaseCheckpointSaver.prune`."""
        for operation in self._pruning(thread_ids, strategy):
            self._run(operation, writes=True)

    async def _atake(self, walk: Walk, count: int) -> Batch:
        return await self._off_loop(lambda: self._run(walk.take(count), writes=False))


class AsyncSqlSaver(SqlSaver, AsyncGroupingSaver):
    """The async methods, over :meth:`_arun`."""

    @abstractmethod
    async def _arun(self, operation: Operation[T], *, writes: bool) -> T:
        """Carry an operation out in one transaction."""

    async def aput_group(self, config: Config, saves: Sequence[NewCheckpoint | TaskWrites]) -> dict[str, int]:
        """See :meth:`BaseCheckpointSaver.put_group`."""
        return await self._arun(self._storing(config, saves), writes=True)

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """See :meth:`BaseCheckpointSaver.get_tuple`."""
        found = await self._arun(self._reading(config), writes=False)
        return None if found is None else self._tuple_of(*address_of(config)[:2], found)

    async def _atake(self, walk: Walk, count: int) -> Batch:
        return await self._arun(walk.take(count), writes=False)

    async def alist_threads(self, *, limit: int | None = None) -> Sequence[ThreadSummary]:
        """See :meth:`BaseCheckpointSaver.list_threads`."""
        return await self._arun(self._operations.threads(limit), writes=False)

    async def ajoin_queue(self, thread_id: str, ticket: str, *, lease_s: float) -> None:
        """See :meth:`BaseCheckpointSaver.join_queue`."""
        await self._arun(self._operations.join_queue(thread_id, ticket, lease_s), writes=True)

    async def aplace_in_queue(self, ticket: str) -> QueuePlace:
        """See :meth:`BaseCheckpointSaver.place_in_queue`."""
        return await self._arun(self._operations.place_in_queue(ticket), writes=False)

    async def akeep_turn(self, ticket: str, *, lease_s: float) -> bool:
        """See :meth:`BaseCheckpointSaver.keep_turn`."""
        return await self._arun(self._operations.keep_turn(ticket, lease_s), writes=True)

    async def aleave_queue(self, ticket: str) -> None:
        """Give a ticket back."""
        await self._arun(self._operations.leave_queue(ticket), writes=True)

    async def adelete_thread(self, thread_id: str) -> None:
        """Forget a thread."""
        await self._arun(self._operations.forget(str(thread_id)), writes=True)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Forget the checkpoints of these runs."""
        await self._arun(self._dropping(run_ids), writes=True)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; see :meth:`BaseCheckpointSaver.copy_thread`."""
        await self._arun(self._operations.copy_thread(str(source_thread_id), str(target_thread_id)), writes=True)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: Literal["keep_latest", "delete"] = "keep_latest") -> None:
        """Thin out threads; see :meth:`BaseCheckpointSaver.prune`."""
        for operation in self._pruning(thread_ids, strategy):
            await self._arun(operation, writes=True)


def _batches(limit: int | None) -> Iterator[int]:
    """Yield how many checkpoints to take next; few at first, for most who list want the newest."""
    size, left = 1, limit
    while left is None or left > 0:
        count = size if left is None else min(size, left)
        yield count
        left = None if left is None else left - count
        size = min(size * 4, _BATCH)
