"""Counting checkpoints by thread, for savers that cannot have it done by their database."""

from __future__ import annotations

from collections.abc import Iterable

from tracegraph.records import CheckpointTuple, ThreadSummary

__all__ = ["summarize_threads"]


def summarize_threads(found: Iterable[CheckpointTuple], limit: int | None) -> list[ThreadSummary]:
    """Return what there is of each thread, in the order in which the threads come up.

    Args:
        found: the checkpoints of all threads, newest first.
        limit: how many threads are returned, None: all.
    """
    ids: dict[str, dict[str, list[str]]] = {}
    for saved in found:
        where = saved.config["configurable"]
        by_ns = ids.setdefault(str(where["thread_id"]), {})
        by_ns.setdefault(where.get("checkpoint_ns", ""), []).append(saved.checkpoint["id"])
    return [
        ThreadSummary(thread_id, sum(map(len, by_ns.values())), len(by_ns), max(by_ns.get("", ()), default=None))
        for thread_id, by_ns in list(ids.items())[:limit]
    ]
