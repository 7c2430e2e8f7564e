"""``tracegraph fork``: goes back to a checkpoint, changes the state there, or does so in a copy of the thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.cli.database import attached
from tracegraph.cli.execution import needs_async
from tracegraph.cli.loading import describe_error, load_graph, read_json
from tracegraph.cli.output import CliError, ExitCode, fail, note, print_data, print_line
from tracegraph.cli.run import resume_command
from tracegraph.cli.saved import address, find_checkpoint
from tracegraph.constants import ROOT
from tracegraph.engine.nesting import NestedField
from tracegraph.errors import ConcurrentRunError, InvalidInputError, InvalidUpdateError
from tracegraph.graph.compile import CompiledStateGraph
from tracegraph.graph.schema import nested_fields
from tracegraph.pregel import Pregel
from tracegraph.pregel.snapshot import saver_of, snapshot
from tracegraph.types import Overwrite

__all__ = ["fork_thread"]

_COPY = "__copy__"


def fork_thread(
    target: str,
    thread_id: str,
    *,
    db: str | None,
    at: str | None,
    values_text: str | None,
    as_node: str | None,
    to: str | None,
    is_json: bool,
) -> None:
    """Make a branch of a thread, which is its newest state from then on, and print where that is.

    Args:
        at: the checkpoint to branch from, the head if None.
        values_text: JSON to write there, as if *as_node* had returned it.
        to: a new thread; the old one is copied to it, and stays as it is.

    Raises:
        CliError: there is nothing to do, no such database, thread, checkpoint or node, or *to* exists.
    """
    if at is None and values_text is None and as_node is None and to is None:
        fail("there is nothing to do: give --at to go back, --values to change the state, or --to for a copy of the thread")
    values = read_json(values_text, "--values")
    with attached(load_graph(target), db) as found, _refusals():
        graph, saver = found.graph, saver_of(found.graph)
        _refuse_unknown_keys(graph, values)
        start = find_checkpoint(saver, thread_id, at, found.place)
        with _copied(saver, thread_id, to) as thread:
            if at is not None or values_text is not None or as_node is not None:
                config = address(thread, None if at is None else start.checkpoint["id"])
                is_copy = values_text is None and as_node is None
                _update(graph, config, values, _COPY if is_copy else as_node)
            made = find_checkpoint(saver, thread, None, found.place)
            following = list(snapshot(graph, made, is_live=True, nested={}).next)
    facts = {
        "thread_id": thread,
        "checkpoint_id": made.checkpoint["id"],
        "branched_from": {"thread_id": thread_id, "checkpoint_id": start.checkpoint["id"]},
        "step": made.metadata.get("step"),
        "next": following,
    }
    if is_json:
        print_data(facts)
        return
    next_nodes = ", ".join(following) or "-"
    print_line(f"thread {thread}  checkpoint {facts['checkpoint_id']}  step {facts['step']}  next {next_nodes}")
    if following and found.is_ours:
        note(f"to go on: {resume_command(target, thread, db)}")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (InvalidInputError, InvalidUpdateError, ConcurrentRunError) as error:
        fail(str(error), error)


def _refuse_unknown_keys(graph: Pregel, values: Any) -> None:
    """Raise if a key is misspelt: what a node returns beside the state's keys is ignored, and nothing would be changed."""
    if not isinstance(graph, CompiledStateGraph) or not isinstance(values, dict):
        return
    known = {name: field for name, field in graph.builder.schemas.tree.items() if not isinstance(field, type)}
    if ROOT in known:
        return
    if unknown := [key for key in values if key not in known]:
        fail(f"--values has {', '.join(map(repr, unknown))}, but the state's keys are {', '.join(map(repr, known))}")
    for name, field in nested_fields(known).items():
        if name in values:
            _refuse_unknown_parts(field, values[name])


def _refuse_unknown_parts(nested: NestedField, given: Any) -> None:
    """Raise if a key inside a nested field is misspelt; a value that is no dict at all is refused when it is written."""
    _, parts = Overwrite.unwrap(given)
    if not isinstance(parts, dict):
        return
    if unknown := [key for key in parts if key not in nested.parts]:
        keys = ", ".join(map(repr, nested.parts))
        fail(f"--values has {', '.join(map(repr, unknown))} in {nested.key!r}, but the keys there are {keys}")
    for name, field in nested_fields(nested.parts).items():
        if name in parts:
            _refuse_unknown_parts(field, parts[name])


@contextmanager
def _copied(saver: BaseCheckpointSaver, thread_id: str, to: str | None) -> Iterator[str]:
    """Yield the thread to work on; a copy is taken back if the work on it fails."""
    if to is None:
        yield thread_id
        return
    saver.copy_thread(thread_id, to)
    try:
        yield to
    except BaseException:
        saver.delete_thread(to)
        raise


def _update(graph: Pregel, config: Any, values: Any, as_node: str | None) -> None:
    try:
        if needs_async(graph):
            asyncio.run(graph.aupdate_state(config, values, as_node))
        else:
            graph.update_state(config, values, as_node)
    except (InvalidInputError, InvalidUpdateError, ConcurrentRunError):
        raise
    except Exception as error:
        # A reducer or the function of a conditional edge.
        raise CliError(f"the update failed: {describe_error(error)}", ExitCode.FAILED) from error
