"""``tracegraph run``: one run of a graph, traced, and saved if it has a thread."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from tracegraph.cli.database import OWN_SAVER, Attached, attached
from tracegraph.cli.ending import report_ending
from tracegraph.cli.execution import Ended, run_config, run_traced, thread_of
from tracegraph.cli.lines import Lines
from tracegraph.cli.loading import load_graph, read_json
from tracegraph.cli.output import CliError, ExitCode, RunOptions, command_line, fail
from tracegraph.errors import EmptyInputError, InvalidInputError

__all__ = ["resume_command", "run_graph"]


def run_graph(
    target: str,
    *,
    input_text: str | None,
    thread_id: str | None,
    db: str | None,
    config_text: str | None,
    stream: str | None,
    options: RunOptions,
) -> ExitCode:
    """Run the graph, print how it ended, and return the exit code; *stream* are the modes whose parts are written meanwhile.

    Raises:
        CliError: there is nothing to run: a bad argument, a graph that does not load, a database that cannot be used.
    """
    config = run_config(config_text, thread_id)
    lines = None if stream is None else Lines.of(stream, is_json=options.is_json)
    thread_id = thread_of(config)
    graph_input = read_json(input_text, "--input")
    graph = load_graph(target)
    if db is not None and thread_id is None:
        fail("--db needs a thread to save the run under: give --thread ID")
    without = nullcontext(Attached(graph, OWN_SAVER, False))
    with without if thread_id is None else attached(graph, db, may_create=input_text is not None) as found:
        ended = run_traced(found.graph, graph_input, config, has_store=options.has_store, lines=lines)
    _refuse_nothing(ended, found, thread_id, has_input=input_text is not None)
    hint = partial(resume_command, target, thread_id, db) if found.is_ours and thread_id is not None else None
    return report_ending(ended, options, thread_id=thread_id, answer_hint=hint, lines=lines)


def resume_command(target: str, thread_id: str, db: str | None, answer: Sequence[str] = ()) -> str:
    """Return the command line that goes on with a thread; a URL may hold a password, so it is left out."""
    where = [] if db is None else ["--db", "URL" if "://" in db else shlex.quote(db)]
    return command_line("resume", [target, thread_id], [*where, *answer])


def _refuse_nothing(ended: Ended, found: Attached, thread_id: str | None, *, has_input: bool) -> None:
    """Raise if the run could not even begin for want of an input or a thread."""
    error = ended.outcome.error
    if isinstance(error, EmptyInputError) and not has_input:
        if thread_id is None:
            fail("there is nothing to run: give --input, or the --thread of a run to continue")
        text = f"thread {thread_id!r} has nothing to continue: it has no checkpoint in {found.place}; give --input to begin"
        raise CliError(text, ExitCode.NOT_FOUND)
    if isinstance(error, InvalidInputError) and thread_id is None and found.graph.checkpointer is not None:
        fail("the graph has a checkpointer, so its runs need a thread to be saved under: give --thread ID", error)
