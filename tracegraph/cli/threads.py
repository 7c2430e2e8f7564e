"""``tracegraph threads``: what a checkpoint database holds."""

from __future__ import annotations

from typing import Any

from tracegraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, ThreadSummary
from tracegraph.cli.database import default_database, open_for_reading
from tracegraph.cli.output import note, print_data
from tracegraph.cli.saved import address, facts_of, saved_at, stop_style, stopped_by
from tracegraph.cli.tables import print_table

__all__ = ["list_threads"]

_HEADINGS = ("thread", "saved", "step", "checkpoints", "namespaces", "stopped by", "latest checkpoint")


def list_threads(db: str | None, limit: int, *, is_json: bool) -> None:
    """Print the threads of a database, the one that was saved to last first.

    Raises:
        CliError: the database is not there, or cannot be read.
    """
    if db is None and not default_database().exists():
        if is_json:
            print_data([])
        note(f"no threads yet in {str(default_database())!r}; `tracegraph run FILE.py:GRAPH --thread ID` makes one")
        return
    with open_for_reading(db) as (saver, place):
        found = [(thread, _head(saver, thread)) for thread in saver.list_threads(limit=limit)]
    if is_json:
        print_data([_data(thread, head) for thread, head in found])
    elif found:
        rows = [_row(thread, head) for thread, head in found]
        print_table(_HEADINGS, rows, right={"step", "checkpoints", "namespaces"}, free={"thread"}, style=_style)
    else:
        note(f"no threads in {place}")


def _head(saver: BaseCheckpointSaver, thread: ThreadSummary) -> CheckpointTuple | None:
    return None if thread.head_id is None else saver.get_tuple(address(thread.thread_id, thread.head_id))


def _data(thread: ThreadSummary, head: CheckpointTuple | None) -> dict[str, Any]:
    counts = {
        "thread_id": thread.thread_id,
        "checkpoint_count": thread.checkpoint_count,
        "namespace_count": thread.namespace_count,
    }
    return counts | {"latest": None if head is None else facts_of(head)}


def _row(thread: ThreadSummary, head: CheckpointTuple | None) -> tuple[str, ...]:
    counts = (str(thread.checkpoint_count), str(thread.namespace_count))
    if head is None:
        return (thread.thread_id, "-", "-", *counts, "-", "-")
    step = str(head.metadata.get("step", "-"))
    return (thread.thread_id, saved_at(head), step, *counts, stopped_by(head), head.checkpoint["id"])


def _style(heading: str, cell: str) -> str:
    return stop_style(cell) if heading == "stopped by" else ""
