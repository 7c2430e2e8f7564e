"""Carrying out a run's saves: together where the saver can, up to the first that fails, and nothing after that one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from tracegraph.drivers.effects import Flow, Save, ask, run_flow
from tracegraph.drivers.saves import Written
from tracegraph.engine.actions import SaveCheckpoint, SaveWrites
from tracegraph.engine.reports import SaveEnded
from tracegraph.errors import ConcurrentRunError
from tracegraph.events import CheckpointSaved

if TYPE_CHECKING:
    from tracegraph.drivers.run import Run

__all__ = ["GROUP_SIZE", "Saves", "store", "store_at_once"]

logger = logging.getLogger("tracegraph.drivers")

Saves: TypeAlias = Sequence[SaveCheckpoint | SaveWrites]

GROUP_SIZE: Final = 256
"""Saves stored in one go, at most: while a transaction is open, other processes wait."""


def store(run: Run, saves: Saves, *, will_pop: bool) -> Flow[None]:
    """Store in order, and report: in one go if the saver can, else (or if that fails) one by one."""
    assert run.saver is not None
    reason = None
    if len(saves) > 1 and run.save_error is None and run.saver.stores_groups:
        try:
            written = yield from ask(Save(run.saver, saves))
        except Exception as error:  # what comes before the culprit will be stored, and the culprit will tell
            reason = error
        except BaseException as stop:
            _fail(run, stop)
        else:
            _report(run, saves, None, written, will_pop=will_pop)
            return
    yield from _store_each(run, saves, reason, will_pop=will_pop)


def store_at_once(run: Run, saves: Saves, *, will_pop: bool) -> None:
    """Store in order, and report, in a saver that has nothing to wait for."""
    assert run.saver is not None
    reason = None
    if run.save_error is None and run.saver.stores_groups:
        try:
            written = run.saver.store(saves)
        except Exception as error:  # as above
            reason = error
        else:
            _report(run, saves, None, written, will_pop=will_pop)
            return
    run_flow(_store_each(run, saves, reason, will_pop=will_pop))


def _store_each(run: Run, saves: Saves, reason: Exception | None, *, will_pop: bool) -> Flow[None]:
    """Store one by one; *reason* is why that could not be done in one go."""
    assert run.saver is not None
    own = {action.checkpoint["id"] for action in saves if isinstance(action, SaveCheckpoint)} if reason else set()
    for action in saves:
        written: Written = None
        if run.save_error is None:
            try:
                written = yield from ask(Save(run.saver, [action]))
            except BaseException as failure:
                # Where the head is one of the group's own, all of it was stored, and only the answer got lost.
                if not (isinstance(failure, ConcurrentRunError) and failure.found in own):
                    failure.__cause__ = failure.__cause__ or (reason if reason is not failure else None)
                    _fail(run, failure)
        _report(run, [action], run.save_error, written, will_pop=will_pop)


def _report(run: Run, saves: Saves, error: BaseException | None, written: Written, *, will_pop: bool) -> None:
    """Report that saves are stored, or could not be; nothing if nobody would know the difference."""
    for action in saves:
        if error is not None or action.is_awaited or run.hub.wants & CheckpointSaved.bit:
            size = written.get(action.checkpoint["id"]) if written and isinstance(action, SaveCheckpoint) else None
            run.report(SaveEnded(action.order, error, size if type(size) is int else None), will_pop=will_pop)


def _fail(run: Run, failure: BaseException) -> None:
    """Store nothing from now on; log it where nobody would be told: a run that has ended, or is cancelled, shows nothing."""
    run.save_error = failure
    if run.is_ended or not isinstance(failure, Exception):
        logger.error("saves of run %s are not stored, for one of them failed", run.run_id, exc_info=failure)
