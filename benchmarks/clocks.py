"""The two clocks of a measurement."""

from __future__ import annotations

import time
from typing import NamedTuple

__all__ = ["Clocks"]


class Clocks(NamedTuple):
    """A moment on both clocks, or what has passed since one, in seconds."""

    wall: float
    cpu: float
    """Processor time of all threads."""

    @classmethod
    def now(cls) -> Clocks:
        """Read both clocks."""
        return cls(time.perf_counter(), time.process_time())

    def passed(self) -> Clocks:
        """Return what has passed since this moment."""
        now = Clocks.now()
        return Clocks(now.wall - self.wall, now.cpu - self.cpu)
