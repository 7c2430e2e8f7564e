"""What tests of time limits share: the kinds of limits, nodes that nothing can stop, and a recorder that rings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from event_log import Recorder
from small_graphs import State, bounded

from tracegraph.errors import RunDeadlineError, StepTimeoutError
from tracegraph.events import Event
from tracegraph.runtime import RunControl

LIMIT_S = 0.05
ENOUGH_S = 0.4
"""Time in which nodes begin, and quick ones are done, for certain."""


class Limit:
    """One kind of limit: how a graph is compiled, or a run is called, to have it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.error: Any = StepTimeoutError if kind == "step" else RunDeadlineError
        self.reason = "step_timeout" if kind == "step" else "run_deadline"
        self.seconds = ENOUGH_S

    def options(self, seconds: Any = None, **more: Any) -> dict[str, Any]:
        """Return the options of ``compile``."""
        return {**more, **({"step_timeout": seconds or self.seconds} if self.kind == "step" else {})}

    def call(self, seconds: Any = None) -> dict[str, Any]:
        """Return the options of ``invoke``."""
        return {} if self.kind == "step" else {"control": RunControl(deadline_s=seconds or self.seconds)}


def stuck_until(event: threading.Event) -> Callable[[State], State]:
    """Return a sync node that nothing can stop."""

    def stuck(state: State) -> State:
        event.wait()
        return {"xs": ["late"]}

    return stuck


def failure(run: Callable[[], Any], kind: Any) -> Any:
    """Return what *run* raises, which must not hang."""
    with pytest.raises(kind) as raised:
        bounded(run)
    return raised.value


class Watch(Recorder):
    """Rings a bell when an event of one kind comes."""

    def __init__(self, kind: type[Event]) -> None:
        super().__init__()
        self.bell = threading.Event()
        self._kind = kind

    def observe(self, event: Event) -> None:
        """Keep the event."""
        super().observe(event)
        if isinstance(event, self._kind):
            self.bell.set()

    def of(self, kind: type[Event]) -> list[Any]:
        """Return the events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]
