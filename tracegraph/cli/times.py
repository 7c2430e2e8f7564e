"""Times on the command line: how long, and since when."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from tracegraph.cli.output import fail, local_time
from tracegraph_exporters.durations import parse_duration

__all__ = ["duration_ns", "since_ns", "time_text"]

_LAST_NS: Final = 2**63 - 1
"""The last time that the store can tell of, in the year 2262."""


def duration_ns(option: str, text: str) -> int:
    """Return a duration in nanoseconds.

    Raises:
        CliError: it is none.
    """
    try:
        return parse_duration(text)
    except ValueError as error:
        fail(f"{option}: {error}", error)


def since_ns(text: str) -> int:
    """Return a time in nanoseconds since the epoch: so long ago, or a date and time, where the user is if it does not say.

    Raises:
        CliError: it is neither.
    """
    try:
        return time.time_ns() - parse_duration(text)
    except ValueError as error:
        try:
            return min(_LAST_NS, int(datetime.fromisoformat(text).astimezone().timestamp() * 1e9))
        except (ValueError, OverflowError, OSError):
            fail(f"--since: {error}; or a date and time as 2026-10-05T14:00", error)


def time_text(at_ns: int) -> str:
    """Return a time as lists show it."""
    return local_time(datetime.fromtimestamp(at_ns / 1e9, UTC))
