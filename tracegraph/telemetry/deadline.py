"""One deadline for all that is flushed or closed one after the other. Loads no OpenTelemetry."""

from __future__ import annotations

import inspect
import time
from typing import Any

__all__ = ["Deadline", "close_exporter", "flush_exporter"]


class Deadline:
    """A moment from now; each step gets what the steps before it have left.

    >>> Deadline(50).left_ms <= 50, Deadline(-1).left_ms
    (True, 0)
    """

    def __init__(self, timeout_ms: float) -> None:
        self._until = time.monotonic() + timeout_ms / 1e3

    @property
    def left_ms(self) -> int:
        """Milliseconds until then, 0 if it has passed."""
        return max(0, int((self._until - time.monotonic()) * 1e3))


def close_exporter(exporter: Any, timeout_ms: float) -> None:
    """Shut an exporter down, within the time if it is one that takes a time: not all of them do."""
    if "timeout_millis" in inspect.signature(exporter.shutdown).parameters:
        exporter.shutdown(timeout_millis=timeout_ms)
    else:
        exporter.shutdown()


def flush_exporter(exporter: Any, timeout_ms: int) -> bool:
    """Have an exporter send what it holds back; those of log records have no such method in lower versions of the SDK."""
    flush = getattr(exporter, "force_flush", None)
    return flush is None or bool(flush(timeout_ms))
