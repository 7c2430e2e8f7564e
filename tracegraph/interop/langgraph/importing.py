"""Threads of a LangGraph database, written with a saver of ours.

A thread is read at least twice: first all of it, so that what cannot be imported is found before anything is written; then
again, one checkpoint at a time, to be written, so that a long thread need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from xxhash import xxh3_64_intdigest

from tracegraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, UnsavableValueError
from tracegraph.checkpoint.serde.allowlist import Allowed
from tracegraph.checkpoint.serde.errors import UnserializableValueError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.interop.langgraph.decoder import Decoder
from tracegraph.interop.langgraph.delta import DeltaValues, delta_channels
from tracegraph.interop.langgraph.errors import ThreadRefusedError
from tracegraph.interop.langgraph.old_formats import seen_edges, upgrade
from tracegraph.interop.langgraph.progress import Progress, compared, progress_of
from tracegraph.interop.langgraph.questions import new_question_ids, renumber
from tracegraph.interop.langgraph.source import Source
from tracegraph.interop.langgraph.stored import SNAPSHOT_BUMPS, Place, Stored, StoredWrite
from tracegraph.interop.langgraph.versions import with_text_versions
from tracegraph.pregel import Pregel
from tracegraph.records import Checkpoint, CheckpointMetadata, Increment, NewCheckpoint, TaskWrites, Version

__all__ = ["Outcome", "Rules", "import_thread"]

Address: TypeAlias = tuple[str, str]
"""(namespace, checkpoint id)"""

# What the old programs kept beside the metadata (live state values), and what only LangGraph's delta channels need.
_LEFT_OUT_METADATA = ("writes", "counters_since_delta_snapshot")
_WAY_OUT = "Delete it there first, or import into another database"


@dataclass(frozen=True, slots=True)
class Rules:
    """What an import may do with values.

    Args:
        allowed: classes that are brought to life, beside Python's, LangGraph's and LangChain's messages.
        keeps_unknown: other classes become the plain data they were stored as; else their threads are refused.
        graph: a graph of the source's shape, for edges that threads of the first formats do not show.
    """

    allowed: tuple[Allowed, ...] = ()
    keeps_unknown: bool = False
    graph: Pregel | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a thread.

    ``present`` if all of it was there already; ``checkpoints`` counts those of the source, ``kept_as_data`` says which
    classes became plain data, and where one was first met.
    """

    thread_id: str
    status: Literal["imported", "present"]
    checkpoints: int
    kept_as_data: dict[str, str] = field(default_factory=dict)


def import_thread(source: Source, thread_id: str, saver: BaseCheckpointSaver, rules: Rules | None = None) -> Outcome:
    """Copy a thread: its checkpoints with their ids, and their pending writes; *saver* is one that has ``put_group``.

    What an earlier import has left unfinished is completed, and what is there already is not written again.

    Raises:
        ThreadRefusedError: it has values that cannot be imported, or the target has a thread of this id that differs.
    """
    rules = rules or Rules()
    survey = _Survey.of(source, thread_id, rules)
    if not survey.marks:
        raise ThreadRefusedError(
            thread_id, "the source has no checkpoint under this id; if it lists the thread, the id is damaged"
        )
    kept = {f"{module}.{name}": where for (module, name), where in survey.unknown.items()}
    if kept and not rules.keeps_unknown:
        raise ThreadRefusedError(thread_id, _unknown_classes(survey.unknown))
    there = survey.found_in(saver, thread_id)
    if there == survey.marks.keys():
        return Outcome(thread_id, "present", len(there), kept)
    written: set[tuple[str, str, Version]] = set()
    try:
        for stored, increments in survey.finished(source, thread_id, rules):
            _put(saver, stored, increments, written)
    except (UnserializableValueError, UnsavableValueError) as error:
        if not there:
            saver.delete_thread(thread_id)
        raise ThreadRefusedError(thread_id, str(error)) from error
    return Outcome(thread_id, "imported", len(survey.marks), kept)


def _unknown_classes(unknown: dict[tuple[str, str], str]) -> str:
    listed = "; ".join(f"{module}.{name} ({where})" for (module, name), where in unknown.items())
    options = " ".join(f"--allow {module}:{name}" for module, name in unknown)
    return (
        f"it holds objects of classes that no list allows: {listed}. Give {options} to bring them to life, or "
        "--unknown-as-data to keep them as the plain data they are stored as"
    )


@dataclass(slots=True)
class _Survey:
    """What has to be known of a whole thread before its first checkpoint is written."""

    marks: dict[Address, _Mark] = field(default_factory=dict)
    delta: dict[str, set[str]] = field(default_factory=dict)
    edges: dict[str, set[str]] = field(default_factory=dict)
    question_ids: dict[str, str] = field(default_factory=dict)
    unknown: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source, thread_id: str, rules: Rules) -> _Survey:
        made = cls()
        decoder = Decoder(rules.allowed)
        pairs: set[tuple[str, str]] = set(getattr(getattr(rules.graph, "builder", None), "edges", ()))
        nodes: set[str] = set()
        for stored in source.read(thread_id, decoder):
            made.marks[stored.place.ns, stored.place.checkpoint_id] = _Mark.of(stored)
            made.delta.setdefault(stored.place.ns, set()).update(delta_channels(stored))
            pairs |= seen_edges(stored.checkpoint)
            nodes.update(stored.checkpoint["versions_seen"])
            made.question_ids |= new_question_ids(stored, decoder.old_question_ids)
            _trim(stored)  # here for what it refuses
        for channel, node in sorted(pairs):
            if channel in nodes:
                made.edges.setdefault(channel, set()).add(node)
        made.unknown = decoder.unknown
        if any(made.delta.values()):
            for _ in made.finished(source, thread_id, rules):
                pass  # what is missing is found on the way
        return made

    def finished(self, source: Source, thread_id: str, rules: Rules) -> Iterator[tuple[Stored, dict[str, Increment]]]:
        """Yield the checkpoints in our form, and what their delta channels grew by."""
        decoder = Decoder(rules.allowed)
        parents: dict[str, list[str | None]] = {}
        for (ns, _checkpoint_id), mark in self.marks.items():
            parents.setdefault(ns, []).append(mark.parent_id)
        deltas = {ns: DeltaValues(names, parents[ns]) for ns, names in self.delta.items()}
        for stored in source.read(thread_id, decoder):
            upgrade(stored.checkpoint, stored.sends, self.edges)
            renumber(stored, self.question_ids)
            delta = deltas[stored.place.ns]
            delta.complete(stored)
            _trim(stored)
            yield stored, delta.increments(stored)

    def found_in(self, saver: BaseCheckpointSaver, thread_id: str) -> set[Address]:
        """Return which of the thread's checkpoints the target has, with all that their tasks have come to.

        Raises:
            ThreadRefusedError: it has another thread of this id, or this one went on both there and in the source.
        """
        found: set[Address] = set()
        others = 0
        for there in saver.list({"configurable": {"thread_id": thread_id}}):
            place = Place(thread_id, there.config["configurable"]["checkpoint_ns"], there.checkpoint["id"])
            expected = self.marks.get((place.ns, place.checkpoint_id))
            parent_id = None if there.parent_config is None else there.parent_config["configurable"]["checkpoint_id"]
            if expected is None:
                others += 1
                continue
            if _identity(there.checkpoint, parent_id, there.metadata) != expected.identity:
                raise ThreadRefusedError(thread_id, f"the target has {place} too, but with other content")
            match compared(progress_of(there.pending_writes or ()), expected.progress):
                case "same" | "ahead":
                    found.add((place.ns, place.checkpoint_id))
                case "apart":
                    raise ThreadRefusedError(
                        thread_id, f"both here and in the source, tasks of {place} have gone on since. {_WAY_OUT}"
                    )
                case "behind":
                    pass
        if others and len(found) < len(self.marks):
            raise ThreadRefusedError(
                thread_id,
                f"the target has a thread of this id, with {others} checkpoints that are not in the source, while "
                f"{len(self.marks) - len(found)} of those that are lack there, or went on in the source. {_WAY_OUT}",
            )
        return found


class _Mark(NamedTuple):
    """What tells a checkpoint from another one of the same id, and how far its tasks have come."""

    parent_id: str | None
    identity: Any
    progress: Progress

    @classmethod
    def of(cls, stored: Stored) -> _Mark:
        progress = progress_of((write.task_id, write.channel, write.value) for write in stored.writes)
        return cls(stored.parent_id, _identity(stored.checkpoint, stored.parent_id, stored.metadata), progress)


def _identity(checkpoint: Any, parent_id: str | None, metadata: Any) -> Any:
    return parent_id, checkpoint["ts"], metadata.get("source"), metadata.get("step")


def _trim(stored: Stored) -> None:
    """Bring versions and metadata into the form that our savers continue."""
    checkpoint = stored.checkpoint
    checkpoint["versions_seen"].pop(SNAPSHOT_BUMPS, None)
    try:
        with_text_versions(checkpoint, lambda channel: _digest(checkpoint["channel_values"].get(channel)))
    except (ValueError, UnserializableValueError) as error:
        raise ThreadRefusedError(stored.place.thread_id, f"{stored.place}: {error}") from error
    stored.metadata = {key: value for key, value in stored.metadata.items() if key not in _LEFT_OUT_METADATA}


def _digest(value: Any) -> int:
    return xxh3_64_intdigest(JsonPlusSerializer().dumps_typed(value)[1])


def _put(
    saver: BaseCheckpointSaver, stored: Stored, increments: dict[str, Increment], written: set[tuple[str, str, Version]]
) -> None:
    thread_id, ns, checkpoint_id = stored.place
    made = stored.checkpoint
    # All that no checkpoint before has brought: a parent may have been pruned away.
    fresh = {name: at for name, at in made["channel_versions"].items() if (ns, name, at) not in written}
    saves: list[NewCheckpoint | TaskWrites] = [
        NewCheckpoint(
            checkpoint=Checkpoint(
                v=made["v"],
                id=checkpoint_id,
                ts=made["ts"],
                channel_values=made["channel_values"],
                channel_versions=made["channel_versions"],
                versions_seen=made["versions_seen"],
                updated_channels=made.get("updated_channels"),
            ),
            metadata=cast("CheckpointMetadata", stored.metadata),
            new_versions=fresh,
            parent_id=stored.parent_id,
            increments={name: grown for name, grown in increments.items() if name in fresh and (ns, name, grown.base) in written},
        )
    ]
    for (path, task_id, _is_special), writes in groupby(sorted(stored.writes, key=_call), key=_call):
        pairs = [(write.channel, write.value) for write in writes]
        saves.append(TaskWrites(checkpoint_id=checkpoint_id, task_id=task_id, task_path=path, writes=pairs))
    saver.put_group({"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}, saves)
    written.update((ns, name, at) for name, at in fresh.items())


def _call(write: StoredWrite) -> tuple[str, str, bool]:
    """Return what is stored in one call: special writes go apart, since only a call of nothing else replaces them."""
    return write.path, write.task_id, write.channel in WRITES_IDX_MAP
