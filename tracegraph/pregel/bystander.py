"""The place of user code that is called outside a run: a path function that an update follows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from tracegraph.callbacks.hub import Hub
from tracegraph.config import RunSpec
from tracegraph.drivers.checks import is_checking
from tracegraph.drivers.here import HereNow
from tracegraph.drivers.run import Run
from tracegraph.drivers.saves import SaverPort
from tracegraph.engine.task import Task
from tracegraph.runtime import Runtime

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["bystander"]


def bystander(
    graph: Pregel, spec: RunSpec, port: SaverPort, checkpoint_id: str | None, parents: Mapping[str, str], task: Task
) -> HereNow:
    """Return what code of *task* finds as its surroundings: config, runtime and store, with nobody listening.

    A graph it calls runs inside it and, for want of a run to resume, is not saved.
    """
    at = {} if checkpoint_id is None else {port.ns: checkpoint_id}
    run = SimpleNamespace(
        spec=spec,
        metadata=spec.metadata,
        run_id=spec.run_id or uuid4(),
        ns=port.ns,
        thread_id=port.thread_id,
        hub=Hub(),
        handlers=(),
        saver=None,
        has_saver=False,
        parent=None,
        finish=None,
        attempts={},
        default_retry=(),
        is_checked=is_checking(),
        runtime=Runtime(context=None, store=graph.store),
        launch=SimpleNamespace(durability=None, travel=None, origin=None),
        engine=SimpleNamespace(is_resuming=False, saving=SimpleNamespace(checkpoint_id=checkpoint_id)),
        checkpoint_map=lambda: {**parents, **at},
        first_attempt_time=lambda _task: time.time(),
    )
    return HereNow(cast("Run", run), task)
