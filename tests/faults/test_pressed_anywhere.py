"""Ctrl-C reaches the main thread at the entry of whichever function it calls next: at each of them, one run after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from event_log import Recorder, assert_numbered, assert_well_nested
from small_graphs import State
from spans import Trace

import tracegraph
from tracegraph.callbacks.hub import Hub
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.events import BranchEnded, BranchStarted, CheckpointSaved, CheckpointStarted, Event, RunEnded
from tracegraph.graph import START, StateGraph

ROOMS = tuple(str(Path(tracegraph.__file__).parent / room) for room in ("engine", "drivers", "channels", "graph", "pregel"))
"""Where the key is pressed. Not in what observes: an observer that is interrupted is told apart by the Hub (see its tests)."""

HUB = str(Path(tracegraph.__file__).parent / "callbacks" / "hub.py")


def graph() -> Any:
    inside = StateGraph(State)
    inside.add_node("b", lambda _: {"xs": ["b"]})
    inside.add_node("c", lambda _: {"xs": ["c"]})
    inside.add_edge(START, "b")
    inside.add_edge(START, "c")
    outside = StateGraph(State)
    outside.add_node("a", lambda _: {"xs": ["a"]})
    outside.add_node("inside", inside.compile())
    outside.add_edge(START, "a")
    outside.add_conditional_edges("a", lambda _: "inside")
    return outside.compile(checkpointer=InMemorySaver())


class Presser:
    """Calls a function, and raises KeyboardInterrupt at the entry of the n-th one that it calls in our rooms."""

    def __init__(self, at: int, *, only: str = "") -> None:
        self._left = at
        self._only = only

    def call(self, function: Callable[[], Any]) -> BaseException | None:
        """Return what came out of it."""
        before = sys.gettrace()
        sys.settrace(self._entered)
        try:
            function()
        except KeyboardInterrupt as pressed:
            return pressed
        finally:
            sys.settrace(before)
        return None

    def _entered(self, frame: FrameType, _event: str, _argument: Any) -> None:
        # An exception out of a generator expression that is being dropped goes nowhere.
        name = frame.f_code.co_name
        if frame.f_code.co_filename.startswith(ROOMS) and name != "<genexpr>" and (not self._only or name == self._only):
            self._left -= 1
            if self._left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt


class ReturnPresser(Presser):
    """Presses when the n-th function written in C that our rooms call returns: the other places where a signal is looked at."""

    def call(self, function: Callable[[], Any]) -> BaseException | None:
        """Return what came out of it."""
        before = sys.getprofile()
        sys.setprofile(self._returned)
        try:
            function()
        except KeyboardInterrupt as pressed:
            return pressed
        finally:
            sys.setprofile(before)
        return None

    def _returned(self, frame: FrameType, event: str, _argument: Any) -> None:
        room = frame.f_code.co_filename
        if event == "c_return" and room.startswith((*ROOMS, HUB)) and frame.f_code.co_name != "<genexpr>":
            self._left -= 1
            if self._left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt


def without_unseen_ends(events: list[Event]) -> list[Event]:
    """Return the events without those of routing, and without saves whose end the run did not see: are they stored?"""
    seen = {event.checkpoint_id for event in events if isinstance(event, CheckpointSaved)}
    told = [event for event in events if not isinstance(event, BranchStarted | BranchEnded)]
    return [event for event in told if not isinstance(event, CheckpointStarted) or event.checkpoint_id in seen]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    """The recorders of the runs to come, one for each root run."""
    recorders: list[Recorder] = []
    make = Hub.__init__

    def __init__(self: Hub, observers: Any = (), answers: Any = None) -> None:
        recorders.append(Recorder())
        make(self, [*observers, recorders[-1]], answers)

    monkeypatch.setattr(Hub, "__init__", __init__)
    return recorders


@pytest.mark.parametrize("presser", [Presser, ReturnPresser])
def test_wherever_it_is_pressed_what_began_ends_and_the_thread_goes_on(
    presser: type[Presser], watched: list[Recorder], trace: Trace
) -> None:
    app = graph()
    pressed, at = 0, 0
    while True:
        at += 1
        config: Any = {"configurable": {"thread_id": str(at)}}
        watched.clear()
        interrupt = presser(at).call(lambda: app.invoke({"xs": []}, config))  # noqa: B023  # called at once
        assert not trace.open, at
        assert not trace.ended_twice, at
        events = watched[0].events if watched else []
        assert_numbered(events)
        assert_well_nested(without_unseen_ends(events))
        statuses = [event.status for event in events if isinstance(event, RunEnded) and event.ns == ""]
        if interrupt is None:
            assert statuses == ["completed"]
            break
        assert statuses in ([], ["cancelled"], ["completed"]), at
        pressed += statuses == ["cancelled"]
        saved = app.get_state(config)
        assert app.invoke(None if saved.next else {"xs": []}, config)["xs"][-3:] == ["a", "b", "c"]
    assert pressed > 500


def test_pressed_while_the_reader_takes_a_part_the_run_ends_as_cancelled(watched: list[Recorder], trace: Trace) -> None:
    """Taking one lets those go on who wait for room, which is ours, too: the run is not one that was left."""
    app = graph()
    pressed, at = 0, 0
    while True:
        at += 1
        config: Any = {"configurable": {"thread_id": str(at)}}
        watched.clear()
        presser = Presser(at, only="popleft")
        interrupt = presser.call(lambda: list(app.stream({"xs": []}, config, buffer=(5, "block"))))  # noqa: B023  # called at once
        assert trace.is_complete(), at
        statuses = [event.status for event in watched[0].events if isinstance(event, RunEnded) and event.ns == ""]
        if interrupt is None:
            assert statuses == ["completed"]
            break
        assert statuses in (["cancelled"], ["completed"]), at
        pressed += statuses == ["cancelled"]
    assert pressed == 1  # of two parts, the last of which is read when the run is over
