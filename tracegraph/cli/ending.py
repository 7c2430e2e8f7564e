"""How a run ended, as the command prints it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tracegraph.cli.execution import Ended, Outcome
from tracegraph.cli.lines import Lines
from tracegraph.cli.loading import describe_error
from tracegraph.cli.output import ExitCode, RunOptions, note, print_data, print_text, to_plain_data
from tracegraph.cli.progress import Progress

__all__ = ["report_ending"]

AnswerHint: TypeAlias = Callable[[Sequence[str]], str]
"""Returns the command that goes on with a thread, with the options that give the answers."""

_EXIT_CODES = {
    "completed": ExitCode.COMPLETED,
    "failed": ExitCode.FAILED,
    "interrupted": ExitCode.INTERRUPTED,
    "cancelled": ExitCode.KEYBOARD,
    "drained": ExitCode.TERMINATED,
    "terminated": ExitCode.TERMINATED,
}


def report_ending(
    ended: Ended,
    options: RunOptions,
    *,
    thread_id: str | None,
    answer_hint: Callable[[Sequence[str]], str] | None,
    lines: Lines | None = None,
) -> ExitCode:
    """Print how a run ended and return the exit code.

    Args:
        answer_hint: the command that goes on with a paused run, None if its state is not kept for one.
        lines: get the JSON as their last, if parts were written as lines.
    """
    outcome, progress, trace = ended.outcome, ended.progress, ended.trace
    result = outcome.result
    questions = []
    if outcome.status == "completed" and progress.pause is not None:
        outcome.status = "interrupted"
        questions = [{"id": found.id, "value": to_plain_data(found.value)} for found in progress.pause.interrupts]
        if isinstance(result, dict):
            result = {key: value for key, value in result.items() if key != "__interrupt__"}
    message = None if outcome.error is None else _error_text(outcome, progress)
    if options.is_json:
        shown: dict[str, Any] = {"status": outcome.status, "result": to_plain_data(result), "interrupts": questions}
        if outcome.error is not None:
            shown["error"] = {"type": type(outcome.error).__name__, "message": message}
        shown |= {"thread_id": thread_id, "trace_id": None if trace is None else trace.trace_id}
        print_data(shown) if lines is None else lines.end(shown)
    elif outcome.status == "interrupted":
        _print_pause(questions, progress, answer_hint)
    elif isinstance(result, str):
        print_text(result)
    elif outcome.status == "completed":
        print_data(to_plain_data(result))
    if outcome.error is not None:
        if options.shows_traceback:
            traceback.print_exception(outcome.error)
        note(f"error: {message}" if outcome.status == "failed" else f"{outcome.status}: {message}")
    if trace is not None and (trace.is_lost or not options.is_json):
        note(f"trace {trace.trace_id}{' could not be stored' if trace.is_lost else ''}")
    return _EXIT_CODES[outcome.status]


def _print_pause(questions: list[dict[str, Any]], progress: Progress, answer_hint: Callable[[Sequence[str]], str] | None) -> None:
    many = len(questions) > 1
    if questions:
        print_data(questions)
        note(f"interrupted: the run waits for {len(questions)} answer{'s' if many else ''}")
    elif progress.pause is not None:
        note(f"interrupted: the run stopped at a breakpoint ({progress.pause.status})")
    if answer_hint is not None:
        answer = [] if not questions else ["--id", "ID=JSON", "..."] if many else ["--value", "JSON"]
        note(f"to go on: {answer_hint(answer)}")


def _error_text(outcome: Outcome, progress: Progress) -> str:
    match outcome.status:
        case "drained":
            return "SIGTERM stopped the run between two supersteps"
        case "terminated":
            return "a second SIGTERM stopped the run"
        case "cancelled":
            return "the keyboard stopped the run"
        case _:
            assert outcome.error is not None  # a failed run has an error
            node = progress.failed[0] if progress.failed is not None and progress.failed[1] is outcome.error else None
            return describe_error(outcome.error, node)
