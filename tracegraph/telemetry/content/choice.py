"""Which content policy is in force: the application's own, else what the standard variables ask for.

Loads no OpenTelemetry, for it is asked at the start of every root run.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Final

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.content.capture import CAPTURE_VARIABLE, EMIT_VARIABLE, Capture
from tracegraph.telemetry.content.policy import ContentPolicy
from tracegraph.telemetry.content.presence import ask_again
from tracegraph.telemetry.content.upload import Upload

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = ["active_logger_provider", "active_policy", "policy_from_environment", "use_content"]

_EMIT_WORDS: Final = {"true": True, "false": False, "": None}

logger = logging.getLogger("tracegraph.telemetry")


class _Choice:
    """What was chosen in code, and what the environment was found to ask for."""

    policy: ContentPolicy | None = None
    logger_provider: LoggerProvider | None = None
    read: ContentPolicy | None = None
    lock: threading.Lock = threading.Lock()


def use_content(policy: ContentPolicy | Capture | str | bool | None, *, logger_provider: LoggerProvider | None = None) -> None:
    """Record content of later runs as *policy* says (None: as the environment says, which is read again at the next run).

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
    if policy is None:
        _Choice.read = None
    ask_again(is_chosen=policy is not None)


def active_policy() -> ContentPolicy:
    """Return the policy of runs that start now. A wrong variable is warned of once, and records nothing."""
    if _Choice.policy is not None:
        return _Choice.policy
    return _Choice.read or _read()


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
    emit_event = _emit_event()
    return ContentPolicy(capture=Capture.of(chosen), emit_event=emit_event, upload=Upload.from_environment())


def _emit_event() -> bool | None:
    word = os.environ.get(EMIT_VARIABLE, "").strip().lower()
    if word not in _EMIT_WORDS:
        raise InvalidInputError(f"{EMIT_VARIABLE} is true or false, not {word!r}")
    return _EMIT_WORDS[word]


def _read() -> ContentPolicy:
    with _Choice.lock:
        if _Choice.read is None:
            try:
                _Choice.read = policy_from_environment()
            except InvalidInputError as error:
                logger.warning("no content is recorded: %s", error)
                _Choice.read = ContentPolicy()
        return _Choice.read
