"""May there be any content to record? Asked at the start of every root run, so the answer is kept, and needs no imports."""

from __future__ import annotations

import os

from tracegraph.telemetry.content.capture import VARIABLES

__all__ = ["ask_again", "may_have_content"]


class _Answer:
    """What was found out; None if nobody has asked since the last choice."""

    may_have: bool | None = None
    is_chosen: bool = False


def may_have_content() -> bool:
    """Say whether a policy was chosen in code, or a variable is set; the variables are looked at once."""
    if _Answer.may_have is None:
        # One look costs microseconds, which the shortest runs would notice.
        _Answer.may_have = _Answer.is_chosen or any(variable in os.environ for variable in VARIABLES)
    return _Answer.may_have


def ask_again(*, is_chosen: bool) -> None:
    """Forget the answer: a policy was chosen, or given up."""
    _Answer.is_chosen = is_chosen
    _Answer.may_have = None
