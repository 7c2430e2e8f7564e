"""What is written on an exception on its way to the caller: notes, and the other failures of its superstep."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.constants import FAILURES
from tracegraph.errors import failures_of

__all__ = ["add_note", "join_failures"]


def add_note(error: BaseException, text: str) -> None:
    """Add a note to an exception, whatever its class makes of it: frozen dataclasses refuse ``add_note()``.

    >>> error = ValueError("x")
    >>> add_note(error, "while testing")
    >>> error.__notes__
    ['while testing']
    """
    try:
        error.add_note(text)
    except Exception:  # noqa: BLE001  # the error is the user's, and so are its attributes
        notes = vars(error).setdefault("__notes__", [])
        if isinstance(notes, list):
            notes.append(text)


def join_failures(error: BaseException, others: Sequence[BaseException], run: object) -> None:
    """Attach to *error* what failed beside it; *run* tells failures of one root run from those an old exception had."""
    before = vars(error).get(FAILURES, (None, ()))
    found = list(before[1]) if before[0] == run else []
    for other in others:
        found += failures_of(other)
        kind = type(other).__name__
        try:
            add_note(error, f"another task of the same step failed too: {kind}: {other}")
        except Exception:  # noqa: BLE001  # see above: its text cannot be printed
            add_note(error, f"another task of the same step failed too: {kind}")
    # By identity: an exception may define what it is equal to. Never itself, which would make it part of a cycle.
    known = {id(other): other for other in found if other is not error}
    if known or before[1]:
        vars(error)[FAILURES] = (run, tuple(known.values()))
