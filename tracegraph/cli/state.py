"""``tracegraph state``: a thread's state, its history, and what changed from checkpoint to checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tracegraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from tracegraph.cli.changes import Change, changes_between, changes_data
from tracegraph.cli.database import attached, open_for_reading
from tracegraph.cli.loading import load_graph
from tracegraph.cli.output import json_line, print_data, print_line, to_plain_data
from tracegraph.cli.saved import (
    address,
    error_text,
    errors_of,
    facts_of,
    find_checkpoint,
    plain_questions,
    saved_at,
    stop_style,
    stopped_by,
    values_of,
    with_parents,
)
from tracegraph.cli.tables import print_table
from tracegraph.drivers.loading import pending_interrupts
from tracegraph.pregel import Pregel
from tracegraph.pregel.snapshot import saver_of, snapshot
from tracegraph.types import PregelTask, StateSnapshot

__all__ = ["show_state"]


@dataclass(frozen=True, slots=True)
class _View:
    """A checkpoint, and what was asked for beside it: the graph's reading of it, the changes since its parent."""

    saved: CheckpointTuple
    snapshot: StateSnapshot | None
    changes: dict[str, Change]

    @property
    def values(self) -> Any:
        return values_of(self.saved) if self.snapshot is None else self.snapshot.values

    @property
    def next(self) -> str:
        return ", ".join(self.snapshot.next) or "-" if self.snapshot is not None else ""

    def line(self) -> str:
        """Return what the checkpoint is, on one line."""
        found, metadata = self.saved, self.saved.metadata
        return f"{found.checkpoint['id']}  step {metadata.get('step')}  {metadata.get('source')}  {saved_at(found)}"


def show_state(
    thread_id: str, *, db: str | None, at: str | None, target: str | None, has_history: bool, has_diff: bool, is_json: bool
) -> None:
    """Print a thread's state at its head or at a checkpoint, or one line for each checkpoint.

    Args:
        at: a checkpoint's id, or how it begins; with *has_history* only it and its ancestors are listed.
        target: the graph, which tells what is next; everything else is read from the saver alone.

    Raises:
        CliError: there is no such database, thread, checkpoint or graph.
    """
    with _source(db, target) as (saver, place, graph):
        start = find_checkpoint(saver, thread_id, at, place)
        if has_history:
            found = _lineage(saver, start) if at is not None else saver.list(address(thread_id))
            views = [
                _View(saved, _read(graph, saved, is_live=False), changes_between(parent, saved))
                for saved, parent in with_parents(saver, found)
            ]
            _print_history(views, has_diff=has_diff, is_json=is_json)
            return
        _, parent = next(with_parents(saver, [start]))
        view = _View(start, _read(graph, start, is_live=at is None), changes_between(parent, start))
    if is_json:
        print_data({"thread_id": thread_id} | _data(view, has_diff=has_diff) | {"values": to_plain_data(view.values)})
    else:
        print_line(f"thread {thread_id}  checkpoint {view.line()}")
        _print_view(view, has_diff=has_diff)


@contextmanager
def _source(db: str | None, target: str | None) -> Iterator[tuple[BaseCheckpointSaver, str, Pregel | None]]:
    if target is None:
        with open_for_reading(db) as (saver, place):
            yield saver, place, None
        return
    with attached(load_graph(target), db) as found:
        yield saver_of(found.graph), found.place, found.graph


def _lineage(saver: BaseCheckpointSaver, saved: CheckpointTuple | None) -> Iterator[CheckpointTuple]:
    while saved is not None:
        yield saved
        saved = None if saved.parent_config is None else saver.get_tuple(saved.parent_config)


def _read(graph: Pregel | None, saved: CheckpointTuple, *, is_live: bool) -> StateSnapshot | None:
    return None if graph is None else snapshot(graph, saved, is_live=is_live, nested={})


def _data(view: _View, *, has_diff: bool) -> dict[str, Any]:
    found = facts_of(view.saved)
    if view.snapshot is not None:
        found |= {"next": list(view.snapshot.next), "tasks": [_task_data(task) for task in view.snapshot.tasks]}
    return found | {"changes": changes_data(view.changes)} if has_diff else found


def _task_data(task: PregelTask) -> dict[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "error": None if task.error is None else error_text(task.error),
        "interrupts": plain_questions(task.interrupts),
        "result": to_plain_data(task.result),
    }


def _print_view(view: _View, *, has_diff: bool) -> None:
    if view.snapshot is not None:
        print_line(f"next {view.next}")
    values = view.values if isinstance(view.values, dict) else {"value": view.values}
    _print_section("values", [f"{name} = {json_line(to_plain_data(value))}" for name, value in values.items()])
    questions = plain_questions(pending_interrupts(view.saved))
    _print_section("questions", [f"{question['id']}  {json_line(question['value'])}" for question in questions])
    _print_section("errors", errors_of(view.saved))
    if view.snapshot is not None:
        _print_section("tasks", [f"{task.name}  {_task_status(task)}  {task.id}" for task in view.snapshot.tasks])
    if has_diff:
        _print_section("changes", _change_lines(view) or ["none"])


def _task_status(task: PregelTask) -> str:
    if task.result is not None:
        return "finished"
    # The error first: a question stays stored beside its answer until the task that asked it has finished.
    return "failed" if task.error is not None else "asks" if task.interrupts else "waits"


def _print_section(title: str, lines: list[str]) -> None:
    for line in [title, *(f"  {line}" for line in lines)] if lines else ():
        print_line(line)


def _change_lines(view: _View) -> list[str]:
    return [change.line(name) for name, change in view.changes.items()]


def _print_history(views: list[_View], *, has_diff: bool, is_json: bool) -> None:
    if is_json:
        print_data([_data(view, has_diff=has_diff) for view in views])
    elif has_diff:
        for view in views:
            _print_section(view.line(), _change_lines(view) or ["no change"])
    else:
        has_next = any(view.snapshot is not None for view in views)
        headings = ("checkpoint", "saved", "step", "source", *["next"] * has_next, "changed", "stopped by")
        print_table(headings, [_row(view) for view in views], right={"step"}, free={"changed", "next"}, style=_style)


def _row(view: _View) -> tuple[str, ...]:
    saved = view.saved
    facts = (saved.checkpoint["id"], saved_at(saved), str(saved.metadata.get("step")), str(saved.metadata.get("source")))
    upcoming = () if view.snapshot is None else (view.next,)
    return (*facts, *upcoming, ", ".join(view.changes) or "-", stopped_by(saved))


def _style(heading: str, cell: str) -> str:
    return stop_style(cell) if heading == "stopped by" else ""
