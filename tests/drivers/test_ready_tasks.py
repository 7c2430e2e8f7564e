"""Ready tasks are looked at by the driving thread while workers take them."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

from tracegraph.drivers.sync_driver import SyncRun


def test_a_worker_may_take_a_task_while_the_driver_looks_for_time_limits() -> None:
    """It did, and the run ended with "deque mutated during iteration"."""
    ready: deque[Any] = deque()

    class Taken:
        @property
        def task(self) -> Any:
            ready.popleft()  # as a worker does, between two looks of the driver
            return SimpleNamespace(timeout=None)

    ready.extend([Taken(), Taken()])
    run: Any = SimpleNamespace(_ready=ready, is_limited=False)

    assert SyncRun._has_limits(run) is False
    assert not ready
