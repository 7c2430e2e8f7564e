"""What savers are called with: read and checked in one way by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegraph.errors import InvalidInputError

__all__ = ["address_of", "checkpoint_address_of", "config_of", "refuse_strategy", "refuse_text"]


def address_of(config: dict[str, Any]) -> tuple[str, str, str | None]:
    """Return thread, namespace and checkpoint id (None: the newest) that *config* names.

    Raises:
        InvalidInputError: it names no thread.

    >>> address_of({"configurable": {"thread_id": 1}})
    ('1', '', None)
    """
    wanted = config["configurable"]
    if "thread_id" not in wanted:
        raise InvalidInputError("a saver needs to know the thread; give config={'configurable': {'thread_id': ...}}")
    return str(wanted["thread_id"]), wanted.get("checkpoint_ns", ""), wanted.get("checkpoint_id")


def checkpoint_address_of(config: dict[str, Any]) -> tuple[str, str, str]:
    """Return thread, namespace and checkpoint id that *config* names, for writes to be stored under.

    Raises:
        InvalidInputError: it names no thread, or no checkpoint.
    """
    thread_id, ns, checkpoint_id = address_of(config)
    if checkpoint_id is None:
        raise InvalidInputError(f"put_writes() needs a config that names a checkpoint, not {config['configurable']!r}")
    return thread_id, ns, checkpoint_id


def config_of(thread_id: str, ns: str, checkpoint_id: str) -> dict[str, Any]:
    """Return the config that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def refuse_text(parameter: str, given: Sequence[str]) -> None:
    """Refuse one text where a list of ids belongs: its letters would be taken for ids, and nothing would happen.

    Raises:
        TypeError: *given* is a text.
    """
    if isinstance(given, str):
        raise TypeError(f"{parameter} is a list of ids; write [{given!r}]")


def refuse_strategy(strategy: str) -> None:
    """Refuse a way of pruning that nobody knows.

    Raises:
        InvalidInputError: it is unknown.
    """
    if strategy not in ("keep_latest", "delete"):
        raise InvalidInputError(f"prune strategy {strategy!r} is unknown; give 'keep_latest' or 'delete'")
