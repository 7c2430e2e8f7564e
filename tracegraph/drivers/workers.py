"""Worker threads: process-wide, made on demand, daemon, unbounded, expiring when idle.

Unbounded, because a bounded shared pool starves nested runs: every thread may hold a node that waits for one more
thread. How many nodes run at once is the engine's business (``max_concurrency``), not the pool's.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Callable
from typing import Final

__all__ = ["submit"]

IDLE_S: Final = 10.0
"""How long a worker waits for another job before it ends."""

_lock = threading.Lock()
_idle: list[_Worker] = []
_numbers = itertools.count(1)

Job = Callable[[], None]


class _Worker(threading.Thread):
    def __init__(self, job: Job) -> None:
        super().__init__(name=f"tracegraph-worker-{next(_numbers)}", daemon=True)
        self.inbox: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.inbox.put(job)

    def run(self) -> None:
        while (job := self._next()) is not None:
            job()
            del job  # an idle worker must not keep a finished run alive
            with _lock:
                _idle.append(self)

    def _next(self) -> Job | None:
        try:
            return self.inbox.get(timeout=IDLE_S)
        except queue.Empty:
            with _lock:
                if self in _idle:
                    _idle.remove(self)
                    return None
            # Somebody took this worker off the list just now: its job is on the way.
            return self.inbox.get()


def submit(job: Job) -> None:
    """Run *job* in a worker thread, now. It must not raise."""
    with _lock:
        # The most recently used one: its stack is warm, and the others get to expire.
        worker = _idle.pop() if _idle else None
    if worker is None:
        _Worker(job).start()
    else:
        worker.inbox.put(job)


def _forget_all() -> None:
    """Start without workers in a forked child: the parent's threads do not exist there."""
    global _lock  # noqa: PLW0603  # another thread may have held it when the process forked
    _lock = threading.Lock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
