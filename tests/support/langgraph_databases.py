"""Databases that LangGraph's own savers write, and comparing what is in them with what we made of it."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracegraph.types import Interrupt, Overwrite, Send

THREAD = {"configurable": {"thread_id": "t1"}}


@dataclass(frozen=True)
class Database:
    """A LangGraph database; ``address`` is what the command is given."""

    address: str

    def saver(self, **options: Any) -> AbstractContextManager[Any]:
        """Open it with LangGraph's saver."""
        if "://" in self.address:
            from langgraph.checkpoint.postgres import PostgresSaver

            return PostgresSaver.from_conn_string(self.address, **options)
        from langgraph.checkpoint.sqlite import SqliteSaver

        return SqliteSaver.from_conn_string(self.address, **options)


def fingerprint(path: Path) -> dict[str, str]:
    """Return the files of a folder and their digests: a database and all that may lie beside it."""
    return {found.name: hashlib.sha256(found.read_bytes()).hexdigest() for found in sorted(path.parent.iterdir())}


def as_ours(value: Any) -> Any:
    """Return a value with LangGraph's own types replaced by ours."""
    if isinstance(value, dict):
        return {key: as_ours(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return [as_ours(item) for item in value]
    match type(value).__name__:
        case "Interrupt":
            return Interrupt(value.value, value.id)
        case "Send":
            return Send(value.node, as_ours(value.arg))
        case "Overwrite":
            return Overwrite(as_ours(value.value))
    return value


def history(app: Any, config: Any = None) -> list[Any]:
    """Return all that a graph says of a thread's past, in one form for both libraries."""
    return [
        {
            "values": as_ours(found.values),
            "next": found.next,
            "config": _address(found.config),
            "parent": _address(found.parent_config),
            "created_at": found.created_at,
            # Ours need not count towards a snapshot: each checkpoint holds the whole value.
            "metadata": {key: held for key, held in found.metadata.items() if key != "counters_since_delta_snapshot"},
            "tasks": [
                [task.id, task.name, task.path, task.error, as_ours(task.interrupts), as_ours(task.result)]
                for task in found.tasks
            ],
        }
        for found in app.get_state_history(config or THREAD)
    ]


def _address(config: Any) -> Any:
    """Return thread, namespace and id; LangGraph adds the parents of a subgraph's checkpoint, which are in its metadata."""
    if config is None:
        return None
    return {key: held for key, held in config["configurable"].items() if key != "checkpoint_map"}


def without_ids(value: Any) -> Any:
    """Return results of runs without the ids of questions, which name checkpoints, and so differ from run to run.

    The questions are sorted: LangGraph gives those of parallel tasks in the order in which the tasks happened to stop.
    """
    if isinstance(value, dict):
        found = {key: without_ids(item) for key, item in value.items()}
        return {key: sorted(item, key=repr) if key == "__interrupt__" else item for key, item in found.items()}
    if isinstance(value, (list, tuple)):
        return [without_ids(item) for item in value]
    return ("a question", value.value) if type(value).__name__ == "Interrupt" else value
