"""The dictionaries of the in-memory saver and what can be done with them; knows neither locks nor configs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeAlias

from tracegraph.checkpoint.memory.growth import BlobKey, KeptGrowth, parts_of
from tracegraph.constants import NS_END, Missing
from tracegraph.errors import ConcurrentRunError
from tracegraph.records import Checkpoint, CheckpointMetadata, Growth

__all__ = ["Address", "Group", "KeptCheckpoint", "KeptWrite", "Shelves", "record_of"]

Address: TypeAlias = tuple[str, str, str]
"""(thread, namespace, checkpoint id)"""

Slot: TypeAlias = tuple[str, int]
"""(task id, position); special writes have negative positions"""


class KeptCheckpoint(NamedTuple):
    """A stored checkpoint: its record without values (those are blobs), its metadata, its parent's id."""

    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_id: str | None


KeptWrite: TypeAlias = tuple[str, str, Any, str]
"""(task id, channel, value, task path); not a class of its own, which the garbage collector would visit for ever"""


def record_of(checkpoint: Checkpoint) -> Checkpoint:
    """Return a copy of *checkpoint* without its values."""
    updated = checkpoint.get("updated_channels")
    return Checkpoint(
        v=checkpoint["v"],
        id=checkpoint["id"],
        ts=checkpoint["ts"],
        channel_values={},
        channel_versions=checkpoint["channel_versions"].copy(),
        versions_seen={node: versions.copy() for node, versions in checkpoint["versions_seen"].items()},
        updated_channels=None if updated is None else list(updated),
    )


class Group:
    """What is to be stored in one namespace of a thread."""

    __slots__ = ("bases", "blobs", "checkpoints", "ns", "sizes", "thread_id", "writes")

    def __init__(self, thread_id: str, ns: str) -> None:
        self.thread_id = thread_id
        self.ns = ns
        self.checkpoints: list[tuple[KeptCheckpoint, str | Missing | None, str | None]] = []
        """With the head that each expects, and what it is based on; see :class:`NewCheckpoint`."""
        self.blobs: dict[BlobKey, Any] = {}
        self.bases: list[BlobKey] = []
        """What values among the blobs were added to."""
        self.writes: list[tuple[Address, dict[Slot, KeptWrite]]] = []
        self.sizes: dict[str, int] = {}
        """By checkpoint id, the bytes of its values, if a serialiser makes any."""


class Shelves:
    """Checkpoints, writes and values by address; *factory* makes the dictionaries, as ``defaultdict`` would."""

    def __init__(self, factory: Callable[..., Any] = defaultdict) -> None:
        self.storage: dict[str, dict[str, dict[str, KeptCheckpoint]]] = factory(dict)
        self.writes: dict[Address, dict[Slot, KeptWrite]] = factory(dict)
        self.blobs: dict[BlobKey, Any] = factory()
        self.heads: dict[tuple[str, str], str] = {}

    def add_group(self, group: Group) -> bool:
        """Store a group, or nothing of it; False if something that its values were added to is gone.

        Raises:
            ConcurrentRunError: the latest checkpoint is not the expected one.
        """
        for base in group.bases:
            if base not in group.blobs and base not in self.blobs:
                return False
        thread_id, ns = group.thread_id, group.ns
        if group.checkpoints:
            self._check_heads(group)
            self.blobs.update(group.blobs)
            for kept, _head, _base in group.checkpoints:
                self._share_seen(thread_id, ns, kept)
                self._shelve(thread_id, ns, kept)
        for address, writes in group.writes:
            self._add_writes(address, writes)
        return True

    def _share_seen(self, thread_id: str, ns: str, kept: KeptCheckpoint) -> None:
        """Keep what nodes have seen once where that is as in the parent: over a long thread it would be most of what is kept."""
        checkpoints = self.storage[thread_id].get(ns)
        parent = None if checkpoints is None or kept.parent_id is None else checkpoints.get(kept.parent_id)
        if parent is None:
            return
        seen, before = kept.checkpoint["versions_seen"], parent.checkpoint["versions_seen"]
        for node, versions in seen.items():
            old = before.get(node)
            if old is not versions and old == versions:
                seen[node] = old

    def _check_heads(self, group: Group) -> None:
        head = self.heads.get((group.thread_id, group.ns))
        for kept, expected, based_on in group.checkpoints:
            if not isinstance(expected, Missing) and expected != head:
                raise ConcurrentRunError(group.thread_id, expected=expected, found=head)
            if based_on is not None and self.checkpoint((group.thread_id, group.ns, based_on)) is None:
                raise ConcurrentRunError(group.thread_id, expected=based_on, found=head)
            made = kept.checkpoint["id"]
            head = made if head is None else max(head, made)

    def _shelve(self, thread_id: str, ns: str, kept: KeptCheckpoint) -> None:
        checkpoint_id = kept.checkpoint["id"]
        self.storage[thread_id].setdefault(ns, {})[checkpoint_id] = kept
        head = self.heads.get((thread_id, ns))
        if head is None or checkpoint_id > head:
            self.heads[thread_id, ns] = checkpoint_id

    def _add_writes(self, address: Address, writes: dict[Slot, KeptWrite]) -> None:
        """Store a task's writes: special ones replace what is in their slot, others leave it."""
        kept = self.writes[address]
        if not kept:
            kept.update(writes)
            return
        for slot, write in writes.items():
            if slot[1] < 0:
                kept[slot] = write
            else:
                kept.setdefault(slot, write)

    def checkpoint(self, address: Address) -> KeptCheckpoint | None:
        """Return a stored checkpoint."""
        thread_id, ns, checkpoint_id = address
        return self.storage.get(thread_id, {}).get(ns, {}).get(checkpoint_id)

    def values(self, address: Address) -> dict[str, list[tuple[Growth | None, Any]]]:
        """Return the stored values of a checkpoint's channels, in parts."""
        thread_id, ns, checkpoint_id = address
        versions = self.storage[thread_id][ns][checkpoint_id].checkpoint["channel_versions"]
        found = ((name, parts_of(self.blobs, (thread_id, ns, name, version))) for name, version in versions.items())
        return {name: parts for name, parts in found if parts}

    def pending(self, address: Address) -> list[KeptWrite]:
        """Return the stored writes below a checkpoint, by task path, task id and position."""
        kept = self.writes.get(address)
        if not kept:
            return []
        return [write for _slot, write in sorted(kept.items(), key=lambda item: (item[1][3], *item[0]))]

    def addresses(self, thread_id: str | None, ns: str | None) -> list[tuple[Address, KeptCheckpoint]]:
        """Return all checkpoints of a thread (None: of all) in a namespace (None: in all), in no order."""
        threads = self.storage if thread_id is None else {thread_id: self.storage.get(thread_id, {})}
        return [
            ((thread, place, checkpoint_id), kept)
            for thread, places in threads.items()
            for place, checkpoints in places.items()
            if ns is None or place == ns
            for checkpoint_id, kept in checkpoints.items()
        ]

    def copy(self, source: str, target: str) -> None:
        """Copy all of thread *source* to *target*."""
        for (_thread, ns, checkpoint_id), kept in self.addresses(source, None):
            self._shelve(target, ns, kept)
            if writes := self.writes.get((source, ns, checkpoint_id)):
                self.writes[target, ns, checkpoint_id] = dict(writes)
        for key, kept in [(key, kept) for key, kept in self.blobs.items() if key[0] == source]:
            is_grown = type(kept) is KeptGrowth
            self.blobs[target, *key[1:]] = kept._replace(base=(target, *kept.base[1:])) if is_grown else kept

    def drop(self, gone: Collection[Address]) -> None:
        """Forget checkpoints with their writes, and the values that only they had."""
        threads = {address[0] for address in gone}
        for thread_id, ns, checkpoint_id in gone:
            del self.storage[thread_id][ns][checkpoint_id]
            self.writes.pop((thread_id, ns, checkpoint_id), None)
        for thread_id in threads:
            self._tidy(thread_id)
        used: set[BlobKey] = set()
        for thread_id in threads:
            for (thread, ns, _id), kept in self.addresses(thread_id, None):
                for channel in kept.checkpoint["channel_versions"].items():
                    self._note_used(used, (thread, ns, *channel))
        for key in [key for key in self.blobs if key[0] in threads and key not in used]:
            del self.blobs[key]

    def _note_used(self, used: set[BlobKey], key: BlobKey) -> None:
        """Add a value, and those it was added to."""
        while key not in used:
            used.add(key)
            kept = self.blobs.get(key)
            if type(kept) is not KeptGrowth:
                return
            key = kept.base

    def _tidy(self, thread_id: str) -> None:
        places = self.storage[thread_id]
        for ns in list(places):
            if places[ns]:
                self.heads[thread_id, ns] = max(places[ns])
            else:
                del places[ns], self.heads[thread_id, ns]
        if not places:
            del self.storage[thread_id]

    def forget(self, thread_id: str) -> None:
        """Forget a thread, writes stored below checkpoints that never came included."""
        self.drop([address for address, _kept in self.addresses(thread_id, None)])
        for address in [address for address in self.writes if address[0] == thread_id]:
            del self.writes[address]

    def thin(self, thread_id: str) -> None:
        """Keep the newest checkpoint of each namespace, without parent; see :meth:`BaseCheckpointSaver.prune`."""
        roots = {*self.storage.get(thread_id, {}).get("", ())} - {self.heads.get((thread_id, ""))}
        gone: list[Address] = []
        for address, kept in self.addresses(thread_id, None):
            _thread, ns, checkpoint_id = address
            # A namespace with a task's id in it was made for that task; others hold state from call to call. It goes with
            # the root checkpoint that it names, which may be saved only after it: then both stay.
            is_orphan = NS_END in ns and kept.metadata.get("parents", {}).get("") in roots
            if is_orphan or checkpoint_id != self.heads[thread_id, ns]:
                gone.append(address)
            else:
                self.storage[thread_id][ns][checkpoint_id] = kept._replace(parent_id=None)
        self.drop(gone)
