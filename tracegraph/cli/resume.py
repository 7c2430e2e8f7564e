"""``tracegraph resume``: goes on with a thread that waits for answers, stopped at a breakpoint, or failed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tracegraph.cli.database import attached, no_thread
from tracegraph.cli.ending import report_ending
from tracegraph.cli.execution import run_config, run_traced
from tracegraph.cli.loading import load_graph, read_json
from tracegraph.cli.output import CliError, ExitCode, RunOptions, fail
from tracegraph.cli.pending import Stopped, read_stopped
from tracegraph.cli.run import resume_command
from tracegraph.types import Command

__all__ = ["resume_thread"]


def resume_thread(
    target: str,
    thread_id: str,
    *,
    value_text: str | None,
    answer_texts: Sequence[str],
    db: str | None,
    config_text: str | None,
    options: RunOptions,
) -> ExitCode:
    """Go on with a thread, print how that ended as ``tracegraph run`` does, and return the exit code.

    Args:
        value_text: JSON that answers the only question.
        answer_texts: answers by question, as ``ID=JSON``.

    Raises:
        CliError: there is no such thread, nothing of it is left to run, or the answers do not fit the questions.
    """
    if value_text is not None and answer_texts:
        fail("--value answers the only question and --id one of several: give one or the other")
    config = run_config(config_text, thread_id)
    value = read_json(value_text, "--value", hint=_QUOTES)
    answers = _read_answers(answer_texts)
    graph = load_graph(target)
    with attached(graph, db) as found:
        stopped = read_stopped(found.graph, config)
        if stopped is None:
            raise no_thread(thread_id, found.place)
        chosen = _chosen(stopped, thread_id, answers)
        if value_text is not None:
            chosen = {_only_question(stopped, thread_id): value}
        elif not answers:
            _refuse_no_answer(stopped, thread_id)
        # Always by id: a plain answer that is an object with ids as keys would be taken for several answers.
        ended = run_traced(found.graph, Command(resume=chosen) if chosen else None, config, has_store=options.has_store)
    hint = partial(resume_command, target, thread_id, db) if found.is_ours else None
    return report_ending(ended, options, thread_id=thread_id, answer_hint=hint)


_QUOTES = """; a text needs quotes of its own: '"yes"'"""


def _read_answers(texts: Sequence[str]) -> dict[str, Any]:
    """Return the answers of ``--id`` by what was given of each id."""
    answers: dict[str, Any] = {}
    for text in texts:
        question, is_pair, value = text.partition("=")
        if not is_pair or not question:
            fail(f"--id takes ID=JSON, not {text!r}")
        if question in answers:
            fail(f"--id answers {question!r} twice")
        answers[question] = read_json(value, "--id", hint=_QUOTES)
    return answers


def _chosen(stopped: Stopped, thread_id: str, answers: dict[str, Any]) -> dict[str, Any]:
    """Return the answers by full id.

    Raises:
        CliError: nobody asks that, or several questions begin so.
    """
    pending = [question.id for question in stopped.questions]
    if answers and not pending:
        raise _asks_nothing(stopped, thread_id)
    chosen: dict[str, Any] = {}
    for given, answer in answers.items():
        meant = [known for known in pending if known.startswith(given)]
        if len(meant) != 1 or meant[0] in chosen:
            what = f"{len(meant)} questions have an id that begins so" if meant else "no question has this id"
            what = "another --id answers this question" if len(meant) == 1 else what
            raise CliError(f"--id {given}: {what}; pending: {', '.join(pending)}", ExitCode.WRONG_ANSWER)
        chosen[meant[0]] = answer
    return chosen


def _only_question(stopped: Stopped, thread_id: str) -> str:
    pending = [question.id for question in stopped.questions]
    if not pending:
        raise _asks_nothing(stopped, thread_id)
    if len(pending) > 1:
        ids = " ".join(f"--id {known}=JSON" for known in pending)
        raise CliError(
            f"thread {thread_id!r} asks {len(pending)} questions, so --value is ambiguous: answer by id, {ids}",
            ExitCode.WRONG_ANSWER,
        )
    return pending[0]


def _asks_nothing(stopped: Stopped, thread_id: str) -> CliError:
    state = stopped.state
    if not state.tasks:
        return _at_end(thread_id)
    waiting = ", ".join(map(repr, state.next or [task.name for task in state.tasks]))
    return CliError(
        f"thread {thread_id!r} asks nothing, but stopped at {waiting}: leave the answer out to go on", ExitCode.NOT_PENDING
    )


def _at_end(thread_id: str) -> CliError:
    return CliError(
        f"thread {thread_id!r} is at its end, so there is nothing to resume; "
        "`tracegraph run` with the --thread and an --input begins the next run on it",
        ExitCode.NOT_PENDING,
    )


def _refuse_no_answer(stopped: Stopped, thread_id: str) -> None:
    """Raise unless something can go on without an answer: what failed, a breakpoint, a process that was killed."""
    # Not state.next: after a kill every task may have finished and yet the next step not have begun.
    if not stopped.state.tasks:
        raise _at_end(thread_id)
    if stopped.only_waits:
        ids = ", ".join(question.id for question in stopped.questions)
        raise CliError(
            f"thread {thread_id!r} waits for an answer: give --value JSON, or --id ID=JSON for one of several; pending: {ids}",
            ExitCode.WRONG_ANSWER,
        )
