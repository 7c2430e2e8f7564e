"""Lets a test see every event of the root runs it starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from event_log import Recorder

from tracegraph.callbacks.hub import Hub
from tracegraph.pregel import launch


@contextmanager
def recording(recorder: Recorder | None = None) -> Iterator[Recorder]:
    """Let a recorder see all events of the root runs inside the block."""
    recorder = recorder or Recorder()

    def hub(observers: Any = ()) -> Hub:
        return Hub([*observers, recorder])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "Hub", hub)
        yield recorder
