"""Ids that sort by creation time."""

from __future__ import annotations

import os
import threading
import time
from uuid import UUID

__all__ = ["ticks_of", "uuid6", "uuid6_text"]

_EPOCH_TICKS = 0x01B21DD213814000
"""100 ns intervals from 1582-10-15, where UUID time starts, to 1970."""

_TEXT_LENGTH = 36

_lock = threading.Lock()
_last_ticks = 0


def uuid6(node: int | None = None, clock_seq: int | None = None, *, after: str | None = None) -> UUID:
    """Return a version 6 UUID, greater (as text too) than all that this process made before.

    Args:
        node: the last 48 bits; random if None.
        clock_seq: the 14 bits before them, where checkpoint ids show their step; random if None.
        after: an id that the new one sorts after even if the clock that made it was ahead of ours.

    Source: RFC 9562, section 5.6.
    """
    ticks = _ticks(0 if after is None else ticks_of(after))
    # From the system, not `random`: a program that seeds `random` must neither repeat our ids nor see its own
    # numbers shifted.
    noise = int.from_bytes(os.urandom(8))
    node = noise >> 16 if node is None else node & 0xFFFF_FFFF_FFFF
    sequence = (noise if clock_seq is None else clock_seq) & 0x3FFF
    return UUID(int=(ticks >> 12) << 80 | 0x6 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | sequence << 48 | node)


def uuid6_text(step: int, after_ticks: int) -> tuple[str, int]:
    """Return the text of a :func:`uuid6` that shows *step*, and its time, later than *after_ticks*; in a third of the time.

    >>> made, ticks = uuid6_text(3, 0)
    >>> made[19:23], ticks == ticks_of(made), str(UUID(made)) == made
    ('8003', True, True)
    """
    ticks = _ticks(after_ticks)
    time_text = f"{ticks:015x}"
    return f"{time_text[:8]}-{time_text[8:12]}-6{time_text[12:]}-{0x8000 | step & 0x3FFF:04x}-{os.urandom(6).hex()}", ticks


def _ticks(after: int) -> int:
    """Return the time, later than *after* and than all that this process asked for before."""
    global _last_ticks  # noqa: PLW0603  # the one memory of what this process made
    with _lock:
        now = _last_ticks = max(time.time_ns() // 100 + _EPOCH_TICKS, _last_ticks + 1)
    # Not remembered: the clock that was ahead is another machine's, and so are the threads it wrote.
    return now if now > after else after + 1


def ticks_of(made: str) -> int:
    """Return an id's time; 0, so no bound, for an id that is no version 6 UUID (a saver's own, say)."""
    if len(made) != _TEXT_LENGTH or made[14] != "6":
        return 0
    try:
        return int(made[:8] + made[9:13] + made[15:18], 16)
    except ValueError:
        return 0
