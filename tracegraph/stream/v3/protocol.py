"""The envelope in which parts of a stream travel, and the union of what lifecycle events say."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict

__all__ = ["GRAPH_TASKS", "MESSAGE_EVENTS", "LifecyclePayload", "ProtocolEvent", "SubgraphStatus", "event_of", "own_event"]

MESSAGE_EVENTS: Final = "message-events"
"""Stream mode of the runs here: ``messages`` as message events instead of chunks."""

GRAPH_TASKS: Final = "graph-tasks"
"""Stream mode of the runs here: of ``tasks`` what tells of the graphs inside."""

SubgraphStatus: TypeAlias = Literal["started", "completed", "failed", "interrupted", "drained"]


_METHODS: Final = {MESSAGE_EVENTS: "messages", GRAPH_TASKS: "tasks"}
"""What the stream modes of these runs alone are called in events."""


class EventParams(TypedDict):
    """What an event is about: the graph's namespace, the time in milliseconds, and the payload of its method."""

    namespace: list[str]
    timestamp: int
    data: Any
    interrupts: NotRequired[tuple[Any, ...]]


class ProtocolEvent(TypedDict):
    """One event of a run.

    ``method`` is a stream mode, ``lifecycle``, or ``custom:<channel>``; ``seq`` counts from 1 in a run's main log and is
    what events are ordered by. It is missing as long as the event has not got there.
    """

    type: Literal["event"]
    method: str
    params: EventParams
    seq: NotRequired[int]


class LifecyclePayload(TypedDict, total=False):
    """The start or the end of a graph inside the run."""

    event: SubgraphStatus
    namespace: list[str]
    graph_name: str
    trigger_call_id: str
    cause: Mapping[str, Any]
    error: str


def event_of(part: Mapping[str, Any], scope: tuple[str, ...] = ()) -> ProtocolEvent:
    """Return the event that carries one part of ``stream(version="v2")`` of the graph at *scope*.

    >>> event = event_of({"type": "values", "ns": ("sub:1",), "data": {"n": 1}, "interrupts": ()})
    >>> event["method"], event["params"]["namespace"], event["params"]["data"]
    ('values', ['sub:1'], {'n': 1})
    """
    mode = part["type"]
    event = own_event(_METHODS.get(mode, mode), part["data"])
    event["params"]["namespace"] = [*scope, *part["ns"]]
    if mode == "values":
        event["params"]["interrupts"] = tuple(part.get("interrupts", ()))
    return event


def own_event(method: str, data: Any) -> ProtocolEvent:
    """Return an event of the run's own graph."""
    return {
        "type": "event",
        "method": method,
        "params": {"namespace": [], "timestamp": time.time_ns() // 1_000_000, "data": data},
    }
