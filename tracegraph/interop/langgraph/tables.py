"""The tables by which a LangGraph database is recognised."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["CHECKPOINT_COLUMNS", "WRITE_COLUMNS", "missing_columns"]


CHECKPOINT_COLUMNS: Final = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata")
WRITE_COLUMNS: Final = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type")


def missing_columns(table: str, wanted: Iterable[str], found: Iterable[str]) -> str:
    """Return what keeps a table from being LangGraph's, empty if nothing does."""
    found = {*found}
    if not found:
        return f"it has no table {table!r}"
    missing = [name for name in wanted if name not in found]
    return f"its table {table!r} lacks {', '.join(missing)}" if missing else ""
