"""Which content policy is in force: the application's own, else what the standard variables ask for.

Loads no OpenTelemetry, for it is asked at the start of every root run.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Final

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.content.capture import CAPTURE_VARIABLE, HOOK_VARIABLE, Capture
from tracegraph.telemetry.content.policy import ContentPolicy
from tracegraph.telemetry.content.upload import Upload

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = ["active_logger_provider", "active_policy", "policy_from_environment", "use_content"]

logger = logging.getLogger("tracegraph.telemetry")

_VARIABLES: Final = (CAPTURE_VARIABLE, HOOK_VARIABLE)


class _Choice:
    """What was chosen in code, and what was last read from the environment (with the text that it was read from)."""

    policy: ContentPolicy | None = None
    logger_provider: LoggerProvider | None = None
    read: tuple[tuple[str | None, ...], ContentPolicy] = ((None, None), ContentPolicy())
    lock: threading.Lock = threading.Lock()


def use_content(policy: ContentPolicy | Capture | str | bool | None, *, logger_provider: LoggerProvider | None = None) -> None:
    """Record content of later runs as *policy* says (None: as the environment says again).

    Args:
        policy: what is recorded, and where.
        logger_provider: what log events go to; else the global one.

    >>> use_content("SPAN_ONLY")
    >>> use_content(None)

    Raises:
        InvalidInputError: it is no policy and no word for one.
    """
    _Choice.policy = None if policy is None else ContentPolicy.of(policy)
    _Choice.logger_provider = logger_provider


def active_policy() -> ContentPolicy:
    """Return the policy of runs that start now. A wrong variable is warned of once, and records nothing."""
    if _Choice.policy is not None:
        return _Choice.policy
    read, policy = _Choice.read
    if tuple(map(os.environ.get, _VARIABLES)) == read:
        return policy
    return _read_again()


def active_logger_provider() -> LoggerProvider | None:
    """Return what log events of runs that start now go to; None: to the global one."""
    return _Choice.logger_provider


def policy_from_environment(capture: ContentPolicy | Capture | str | bool | None = None) -> ContentPolicy:
    """Return what the standard variables ask for, the upload hook included; *capture* goes before them, a policy in all.

    Raises:
        InvalidInputError: a variable says something it cannot say.
    """
    if isinstance(capture, ContentPolicy):
        return capture
    chosen = os.environ.get(CAPTURE_VARIABLE, "") if capture is None else capture
    return ContentPolicy(capture=chosen, upload=Upload.from_environment())


def _read_again() -> ContentPolicy:
    with _Choice.lock:
        now = tuple(map(os.environ.get, _VARIABLES))
        if _Choice.read[0] == now:
            return _Choice.read[1]
        try:
            policy = policy_from_environment()
        except InvalidInputError as error:
            logger.warning("no content is recorded: %s", error)
            policy = ContentPolicy()
        _Choice.read = (now, policy)
        return policy
