"""Who has spans open in the store, and whether that process still lives.

On Linux a process is known by its boot, its PID namespace, its id and when it started, so a reused id is no puzzle.
Where that cannot be compared (another machine or container, another system), a process counts as dead that has
not been heard of for :data:`LEASE_S`; should it live after all, it takes its spans back.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["HEARTBEAT_S", "LEASE_S", "Writer", "this_process"]

HEARTBEAT_S: Final = 5
"""How often a process with open spans lets hear of itself; a killed one's spans end at its last word."""

LEASE_S: Final = 60


@dataclass(frozen=True, slots=True)
class Writer:
    """A process: ``place`` is where its id means something, ``started`` is empty where the system does not tell."""

    place: str
    pid: int
    started: str

    def is_dead(self, here: str, silent_ns: int) -> bool:
        """Say whether the process has ended, as seen from the place *here*, after that much silence."""
        if self.place == here:
            if self.started:
                return _start_of(self.pid) != self.started
            if os.name == "posix" and not _exists(self.pid):
                return True
        return silent_ns > LEASE_S * 1_000_000_000


def this_process() -> Writer:
    """Return the running process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        place = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return Writer(platform.node(), os.getpid(), "")
    return Writer(place, os.getpid(), _start_of(os.getpid()))


def _start_of(pid: int) -> str:
    """Return when a process started, in ticks since the boot; empty if there is none, or only what is left of a dead one."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    # The second field is the command in brackets, which may hold anything.
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in {"Z", "X"} else fields[18]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
