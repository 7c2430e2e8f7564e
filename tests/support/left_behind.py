"""What a run may leave behind: threads, file descriptors, hubs, complaints. A fault must leave none of it."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from event_log import Recorder
from small_graphs import PATIENCE_S

from tracegraph.callbacks.hub import Hub
from tracegraph.drivers import workers
from tracegraph.pregel import launch

_FDS = Path("/dev/fd")


class Surroundings:
    """What is there before a run, and what has been complained of since."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._fds = open_files()
        self._hubs: list[weakref.ref[Hub]] = []
        self.complaints: list[Any] = []

    def hub(self, observers: Any = ()) -> Hub:
        """Make a hub that is watched."""
        made = _WatchedHub(observers)
        self._hubs.append(weakref.ref(made))
        return made

    def assert_threads_ended(self, but: Iterable[threading.Thread] = ()) -> None:
        """Assert that all threads made since have ended, *but* those still alive."""
        spared = set(but)
        while others := set(threading.enumerate()) - self._threads - spared:  # one that ends may have started another
            for thread in others:
                if thread.ident is not None:  # else it is just being started
                    thread.join(PATIENCE_S)
                    assert not thread.is_alive(), f"{thread} was left behind"
        assert all(thread.is_alive() for thread in spared)

    def assert_nothing_left(self) -> None:
        """Assert that no thread, file or run is left, and that nobody complained."""
        self.assert_threads_ended()
        gc.collect()
        assert open_files() == self._fds
        assert self._hubs, "no run was watched"
        assert [found for found in (made() for made in self._hubs) if found is not None] == []
        assert self.complaints == []


class _WatchedHub(Hub):
    __slots__ = ("__weakref__",)


def open_files() -> set[str]:
    """Return the numbers of the open file descriptors, with what they are, where the system tells."""
    found = set()
    for descriptor in _FDS.iterdir() if _FDS.is_dir() else ():
        try:
            found.add(f"{descriptor.name} {descriptor.readlink()}")
        except OSError:  # the listing's own
            continue
    return found


@contextmanager
def watched() -> Iterator[Surroundings]:
    """Watch runs started in the block; workers end as soon as they are idle, so that they can be waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "IDLE_S", 0.0)
        _end_idle_workers()
        found = Surroundings()
        patch.setattr(launch, "Hub", found.hub)
        patch.setattr(sys, "unraisablehook", lambda said: found.complaints.append((repr(said.object), said.exc_value)))
        patch.setattr(threading, "excepthook", lambda said: found.complaints.append(said.exc_value))
        yield found


def _end_idle_workers() -> None:
    # Those of earlier tests wait for a job a little longer; after it they will not.
    idle = list(workers._idle)
    for _ in idle:
        workers.submit(lambda: None)
    for thread in idle:
        thread.join(PATIENCE_S)


@contextmanager
def recorded(surroundings: Surroundings) -> Iterator[Recorder]:
    """Let a recorder see all events of the root runs inside the block."""
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "Hub", lambda observers=(): surroundings.hub([*observers, recorder]))
        yield recorder
