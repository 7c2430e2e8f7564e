"""Is there any content to record? Asked at the start of every root run, so the answer is kept, and found with few imports."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tracegraph.telemetry.content.capture import CAPTURE_VARIABLE, HOOK_VARIABLE

if TYPE_CHECKING:
    from tracegraph.telemetry.content.policy import ContentPolicy

__all__ = ["ask_again", "policy_in_force"]

_CHOICE = "tracegraph.telemetry.content.choice"


class _Answer:
    """What was found out, if anything was asked since the last choice."""

    is_known = False
    policy: ContentPolicy | None = None


def policy_in_force() -> ContentPolicy | None:
    """Return the policy of a run that starts now, None if it records nothing."""
    if not _Answer.is_known:
        _Answer.policy = _policy()
        _Answer.is_known = True
    return _Answer.policy


def ask_again() -> None:
    """Forget the answer: something else was chosen."""
    _Answer.is_known = False


def _policy() -> ContentPolicy | None:
    # For an application that has neither chosen a policy nor set a variable nothing is loaded.
    if _CHOICE not in sys.modules and CAPTURE_VARIABLE not in os.environ and HOOK_VARIABLE not in os.environ:
        return None
    from tracegraph.telemetry.content.choice import active_policy

    policy = active_policy()
    return None if policy.is_off else policy
