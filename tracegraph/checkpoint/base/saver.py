"""What a saver is."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from tracegraph.checkpoint.base.delta_history import delta_history
from tracegraph.checkpoint.base.threads import summarize_threads
from tracegraph.checkpoint.serde.allowlist import Allowed
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.constants import ASKED, ERROR, INTERRUPT, MISSING, RESUME, TRACE, Missing
from tracegraph.records import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    NewCheckpoint,
    TaskWrites,
    ThreadSummary,
    Version,
    Write,
)

__all__ = ["WRITES_IDX_MAP", "BaseCheckpointSaver", "Config", "QueuePlace", "takes_parameter"]

Result = TypeVar("Result")

Config: TypeAlias = dict[str, Any]
"""A ``RunnableConfig``; savers read ``thread_id``, ``checkpoint_ns`` and ``checkpoint_id`` of its ``configurable``."""

QueuePlace: TypeAlias = Literal["first", "waiting", "gone"]
"""Where a run is in the queue of its thread."""

WRITES_IDX_MAP: Final[dict[str, int]] = {ERROR: -1, "__scheduled__": -2, INTERRUPT: -3, RESUME: -4, TRACE: -5, ASKED: -6}
"""Slots of the writes that a task has at most one of: a later one replaces it. All others keep the first value."""


def takes_parameter(function: Callable[..., Any], name: str) -> bool:
    """Say whether *function* has a parameter of that name: how a saver written before it existed is recognised."""
    return name in inspect.signature(function).parameters


class BaseCheckpointSaver:
    """Stores checkpoints by thread, namespace and id, and the writes of the tasks that ran from each.

    Subclass it and write the sync methods, or their async twins, or both; a twin that you do not write runs
    the sync method in a worker thread. Everything a saver is given or hands out belongs to the other side
    afterwards, so it stores and returns copies.
    """

    does_io: ClassVar[bool] = True
    """Whether calls wait for something outside the process: then async runs keep them off the loop, and
    supersteps that wait for them are worth a span."""

    serde: SerializerProtocol | None

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        self.serde = serde
        self._storage_key: object = object()

    @property
    def storage_key(self) -> object:
        """The same object in all savers that were copied from one another, as :meth:`with_allowlist` does."""
        return getattr(self, "_storage_key", self)  # a saver need not call __init__ of this class

    @property
    def config_specs(self) -> list[Any]:
        """Fields of ``configurable`` that the saver reads beside thread, namespace and id."""
        return []

    def get_next_version(self, current: Version | None, channel: None) -> Any:
        """Return the version after *current* (None: the first one); it must compare greater. *channel* is always None.

        Called under the run's lock, so it must not wait.

        Raises:
            NotImplementedError: *current* is text, whose order only the saver that made it knows.
        """
        if isinstance(current, str):
            raise NotImplementedError(f"{type(self).__name__} counts versions in numbers, but the thread has {current!r}")
        return 1 if current is None else current + 1

    def get(self, config: Config) -> Checkpoint | None:
        """Return the checkpoint of :meth:`get_tuple` alone."""
        found = self.get_tuple(config)
        return None if found is None else found.checkpoint

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return the checkpoint that *config* names, or the thread's latest in that namespace; None if there is none.

        Its pending writes are sorted by task path, task id and slot.
        """
        raise self._lacks("get_tuple")

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first.

        A *config* without ``checkpoint_ns`` means all namespaces of its thread, None means all threads. *filter*
        gives metadata keys and the values they must have; *before* asks for smaller ids than this config's.
        """
        raise self._lacks("list")

    def list_threads(self, *, limit: int | None = None) -> Sequence[ThreadSummary]:
        """Return what there is of each thread, the one that was saved to last first.

        Unless it is overridden, every checkpoint is read for it.
        """
        return summarize_threads(self.list(None), limit)

    def put(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        *,
        expect_head: str | Missing | None = MISSING,
    ) -> Config:
        """Store a checkpoint; return the config that names it.

        The ``checkpoint_id`` in *config* is the parent's. *new_versions* are the channels that changed since
        the parent: a saver need store no other values, and one of them without a value is empty.
        *expect_head* is the id that must be the latest of this thread and namespace now (None: there is none).

        Raises:
            ConcurrentRunError: it is not; nothing was stored.
        """
        raise self._lacks("put")

    def put_writes(self, config: Config, writes: Sequence[Write], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote, below the checkpoint that *config* names; see :data:`WRITES_IDX_MAP` for repeats."""
        raise self._lacks("put_writes")

    def put_group(self, config: Config, saves: Sequence[NewCheckpoint | TaskWrites]) -> dict[str, int] | None:
        """Store what a run saved, in this order; if it raises, nothing of it is stored.

        *config* addresses the thread and namespace that all of it belongs to. Checkpoints and metadata, to which nothing
        of the config's is added any more, are the saver's from now on; channel values and writes are not. A saver without
        this method gets :meth:`put` and :meth:`put_writes` instead; one with it saves itself a transaction each.

        Returns:
            By checkpoint id, how many bytes were written for it: metadata, record and values. None: not told.
        """
        raise self._lacks("put_group")

    def get_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        """Return what these delta channels were made from by the time of the checkpoint that *config* names.

        For each: ``seed``, the newest value stored before it, and ``writes`` since then, oldest first; those below the
        checkpoint itself are not among them.
        """
        walk = delta_history(config, channels)
        at = next(walk)
        while True:
            try:
                at = walk.send(self.get_tuple(at))
            except StopIteration as stop:
                found: dict[str, DeltaChannelHistory] = stop.value
                return found

    def join_queue(self, thread_id: str, ticket: str, *, lease_s: float) -> None:
        """Queue up for a thread, behind all others, with a ticket that nobody else has; it is valid for *lease_s* seconds.

        With the next three methods it lets runs on one thread take turns; a saver without them refuses such graphs.
        """
        raise self._lacks("join_queue")

    def place_in_queue(self, ticket: str) -> QueuePlace:
        """Say where a ticket is: "first" if no valid one of the thread is older; "gone" if it ran out, for others passed it."""
        raise self._lacks("place_in_queue")

    def keep_turn(self, ticket: str, *, lease_s: float) -> bool:
        """Make a ticket valid for *lease_s* more seconds from now; say whether it was still valid, else nothing is done."""
        raise self._lacks("keep_turn")

    def leave_queue(self, ticket: str) -> None:
        """Give a ticket back; one that is not there any more is no mistake."""
        raise self._lacks("leave_queue")

    def with_allowlist(self, extra_allowlist: Iterable[Allowed]) -> Self:
        """Return a saver on the same storage whose serialiser also revives these classes; itself if it has no such list."""
        extend = getattr(self.serde, "with_msgpack_allowlist", None)
        if extend is None:
            return self
        made = copy(self)
        made._storage_key = self.storage_key  # noqa: SLF001  # it is one of us
        made.serde = extend(extra_allowlist)
        return made

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread: all namespaces, checkpoints, writes and values."""
        raise self._lacks("delete_thread")

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Forget the checkpoints whose metadata names one of these runs as ``run_id``."""
        raise self._lacks("delete_for_runs")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, history and pending writes included, to an id that has no checkpoints yet."""
        raise self._lacks("copy_thread")

    def prune(self, thread_ids: Sequence[str], *, strategy: Literal["keep_latest", "delete"] = "keep_latest") -> None:
        """Thin out threads: keep the newest checkpoint of each namespace, without parent, or delete everything.

        Namespaces of subgraph calls go with the root checkpoint whose tasks they belong to.

        Raises:
            ValueError: the strategy is unknown.
            TypeError: *thread_ids* is one string.
        """
        raise self._lacks("prune")

    async def _off_loop(self, call: Callable[[], Result]) -> Result:
        """Run the sync method that an async twin stands for; here in a worker thread."""
        return await asyncio.to_thread(call)

    async def aget(self, config: Config) -> Checkpoint | None:
        """See :meth:`get`."""
        found = await self.aget_tuple(config)
        return None if found is None else found.checkpoint

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """See :meth:`get_tuple`."""
        return await self._off_loop(lambda: self.get_tuple(config))

    async def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See :meth:`list`. Unless it is overridden, everything is read before the first item is yielded."""
        for found in await self._off_loop(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield found

    async def alist_threads(self, *, limit: int | None = None) -> Sequence[ThreadSummary]:
        """See :meth:`list_threads`."""
        if self._is_own("list_threads"):
            return await self._off_loop(lambda: self.list_threads(limit=limit))
        return summarize_threads([found async for found in self.alist(None)], limit)

    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        *,
        expect_head: str | Missing | None = MISSING,
    ) -> Config:
        """See :meth:`put`."""
        check = {} if expect_head is MISSING else {"expect_head": expect_head}
        return await self._off_loop(lambda: self.put(config, checkpoint, metadata, new_versions, **check))

    async def aput_writes(self, config: Config, writes: Sequence[Write], task_id: str, task_path: str = "") -> None:
        """See :meth:`put_writes`."""
        path = (task_path,) if takes_parameter(self.put_writes, "task_path") else ()
        await self._off_loop(lambda: self.put_writes(config, writes, task_id, *path))

    async def aput_group(self, config: Config, saves: Sequence[NewCheckpoint | TaskWrites]) -> dict[str, int] | None:
        """See :meth:`put_group`."""
        return await self._off_loop(lambda: self.put_group(config, saves))

    async def aget_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        """See :meth:`get_delta_channel_history`."""
        walk = delta_history(config, channels)
        at = next(walk)
        while True:
            try:
                at = walk.send(await self.aget_tuple(at))
            except StopIteration as stop:
                found: dict[str, DeltaChannelHistory] = stop.value
                return found

    async def ajoin_queue(self, thread_id: str, ticket: str, *, lease_s: float) -> None:
        """See :meth:`join_queue`."""
        await self._off_loop(lambda: self.join_queue(thread_id, ticket, lease_s=lease_s))

    async def aplace_in_queue(self, ticket: str) -> QueuePlace:
        """See :meth:`place_in_queue`."""
        return await self._off_loop(lambda: self.place_in_queue(ticket))

    async def akeep_turn(self, ticket: str, *, lease_s: float) -> bool:
        """See :meth:`keep_turn`."""
        return await self._off_loop(lambda: self.keep_turn(ticket, lease_s=lease_s))

    async def aleave_queue(self, ticket: str) -> None:
        """See :meth:`leave_queue`."""
        await self._off_loop(lambda: self.leave_queue(ticket))

    async def adelete_thread(self, thread_id: str) -> None:
        """See :meth:`delete_thread`."""
        await self._off_loop(lambda: self.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See :meth:`delete_for_runs`."""
        await self._off_loop(lambda: self.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See :meth:`copy_thread`."""
        await self._off_loop(lambda: self.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: Literal["keep_latest", "delete"] = "keep_latest") -> None:
        """See :meth:`prune`."""
        await self._off_loop(lambda: self.prune(thread_ids, strategy=strategy))

    def _lacks(self, method: str) -> NotImplementedError:
        hint = (
            f"it has a{method}(): use the async methods of the graph" if self._is_async(method) else "the saver does not offer it"
        )
        return NotImplementedError(f"{type(self).__name__} has no {method}(); {hint}")

    def _is_async(self, method: str) -> bool:
        return self._is_own(f"a{method}")

    def _is_own(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(BaseCheckpointSaver, method)
