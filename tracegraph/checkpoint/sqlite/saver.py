"""The saver in a SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from tracegraph.checkpoint.base.arguments import address_of, checkpoint_address_of, config_of, refuse_strategy, refuse_text
from tracegraph.checkpoint.base.metadata import get_checkpoint_metadata
from tracegraph.checkpoint.base.saver import WRITES_IDX_MAP, BaseCheckpointSaver, Config
from tracegraph.checkpoint.base.versions import next_text_version
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import operations
from tracegraph.checkpoint.sqlite.database import BUSY_TIMEOUT_S, Database, Synchronous, connect
from tracegraph.checkpoint.sqlite.history import Scope, addresses
from tracegraph.checkpoint.sqlite.rows import dumped, metadata_text, record_of, short
from tracegraph.constants import MISSING, Missing
from tracegraph.records import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple, ThreadSummary, Version, Write

__all__ = ["SqliteSaver"]

_BATCH = 16


class SqliteSaver(BaseCheckpointSaver):
    """Keeps checkpoints in a SQLite file; for any number of threads on one saver, and of processes on one file.

    The connection must be made with ``check_same_thread=False`` if more than one thread uses the saver, and is the
    saver's while it does. Tables are made or updated at the first call.

    Args:
        serde: :class:`JsonPlusSerializer` if None.
        synchronous: "normal" loses nothing when the process is killed, but a power failure may take the last
            checkpoints (the file stays sound); "full" waits for the disk at each of them.

    >>> from tracegraph.checkpoint.base import empty_checkpoint
    >>> thread = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    >>> with SqliteSaver.from_conn_string(":memory:") as saver:
    ...     saved = saver.put(thread, empty_checkpoint(), {"source": "input", "step": -1}, {})
    ...     saver.get_tuple(thread).metadata
    {'source': 'input', 'step': -1}
    """

    serde: SerializerProtocol

    def __init__(
        self, conn: sqlite3.Connection, *, serde: SerializerProtocol | None = None, synchronous: Synchronous = "normal"
    ) -> None:
        super().__init__(serde=serde or JsonPlusSerializer())
        self._database = Database(conn, synchronous=synchronous)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str | Path,
        *,
        serde: SerializerProtocol | None = None,
        synchronous: Synchronous = "normal",
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> Iterator[SqliteSaver]:
        """Open a file, ":memory:" or a "file:..." URI while the block runs; a new file gets mode 0600."""
        with closing(connect(conn_string, busy_timeout_s=busy_timeout_s)) as connection:
            yield cls(connection, serde=serde, synchronous=synchronous)

    @property
    def conn(self) -> sqlite3.Connection:
        """The connection; leave it alone while the saver is in use."""
        return self._database.connection

    def setup(self) -> None:
        """Make or update the tables now, rather than at the first call."""
        with self._database.transaction("BEGIN"):
            pass

    def get_next_version(self, current: Version | None, channel: None) -> str:
        """Return a text: a counter that decides the order, and a fraction that tells branches of a thread apart."""
        return next_text_version(current)

    def put(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        *,
        expect_head: str | Missing | None = MISSING,
    ) -> Config:
        """Store a checkpoint; see :meth:`BaseCheckpointSaver.put`."""
        thread_id, ns, parent_id = address_of(config)
        values, serde = checkpoint["channel_values"], self.serde
        blobs = [
            (short(version), name, *dumped(serde, name, values[name])) for name, version in new_versions.items() if name in values
        ]
        full = get_checkpoint_metadata(config, metadata)
        run_id = full.get("run_id")
        row = (
            checkpoint["id"],
            parent_id,
            None if run_id is None else str(run_id),
            record_of(checkpoint),
            metadata_text(full),
        )
        with self._database.transaction("BEGIN IMMEDIATE") as cursor:
            operations.put(cursor, thread_id, ns, row, blobs, expect_head)
        return config_of(thread_id, ns, checkpoint["id"])

    def put_writes(self, config: Config, writes: Sequence[Write], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote; see :meth:`BaseCheckpointSaver.put_writes`."""
        thread_id, ns, checkpoint_id = checkpoint_address_of(config)
        rows = [
            (task_id, WRITES_IDX_MAP.get(channel, at), task_path, channel, *dumped(self.serde, channel, value))
            for at, (channel, value) in enumerate(writes)
        ]
        with self._database.transaction("BEGIN IMMEDIATE") as cursor:
            operations.put_writes(cursor, thread_id, ns, checkpoint_id, rows)

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return one checkpoint; see :meth:`BaseCheckpointSaver.get_tuple`."""
        return self._read(*address_of(config))

    def _read(self, thread_id: str, ns: str, checkpoint_id: str | None) -> CheckpointTuple | None:
        with self._database.transaction("BEGIN") as cursor:
            found = operations.read(cursor, thread_id, ns, checkpoint_id or None)
        if found is None:
            return None
        checkpoint, load = found.checkpoint, self.serde.loads_typed
        checkpoint["channel_values"] = {name: load((kind, value)) for name, kind, value in found.values}
        return CheckpointTuple(
            config=config_of(thread_id, ns, checkpoint["id"]),
            checkpoint=checkpoint,
            metadata=found.metadata,
            parent_config=None if found.parent_id is None else config_of(thread_id, ns, found.parent_id),
            pending_writes=[(task_id, channel, load((kind, value))) for task_id, channel, kind, value in found.writes],
        )

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, a page at a time; one that is deleted in the meantime is skipped."""
        wanted = {} if config is None else config["configurable"]
        thread_id = wanted.get("thread_id")
        scope = Scope(
            thread_id=None if thread_id is None else str(thread_id),
            ns=wanted.get("checkpoint_ns"),
            checkpoint_id=wanted.get("checkpoint_id"),
            before=None if before is None else before["configurable"].get("checkpoint_id"),
            filter=filter or {},
        )
        for address in islice(addresses(self._database, scope), limit):
            if (found := self._read(*address)) is not None:
                yield found

    def list_threads(self, *, limit: int | None = None) -> Sequence[ThreadSummary]:
        """Return what there is of each thread; see :meth:`BaseCheckpointSaver.list_threads`."""
        with self._database.transaction("BEGIN") as cursor:
            return operations.threads(cursor, limit)

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread."""
        with self._database.transaction("BEGIN IMMEDIATE") as cursor:
            operations.forget(cursor, str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Forget the checkpoints of these runs."""
        refuse_text("run_ids", run_ids)
        with self._database.transaction("BEGIN IMMEDIATE") as cursor:
            operations.drop_runs(cursor, set(map(str, run_ids)))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; see :meth:`BaseCheckpointSaver.copy_thread`."""
        with self._database.transaction("BEGIN IMMEDIATE") as cursor:
            operations.copy_thread(cursor, str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: Literal["keep_latest", "delete"] = "keep_latest") -> None:
        """Thin out threads; see :meth:`BaseCheckpointSaver.prune`."""
        refuse_text("thread_ids", thread_ids)
        refuse_strategy(strategy)
        for thread_id in map(str, thread_ids):  # a transaction each: others may write in between
            with self._database.transaction("BEGIN IMMEDIATE") as cursor:
                if strategy == "delete":
                    operations.forget(cursor, thread_id)
                else:
                    operations.thin(cursor, thread_id)

    async def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See :meth:`list`; a batch at a time."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while batch := await self._off_loop(lambda: [*islice(found, _BATCH)]):
            for each in batch:
                yield each
