"""Starts and ends of the graphs inside a run, at every depth."""

from __future__ import annotations

from typing import Any

from tracegraph.stream.v3.channel import StreamChannel
from tracegraph.stream.v3.graphs_inside import Ended, GraphsInside, Started
from tracegraph.stream.v3.protocol import LifecyclePayload, ProtocolEvent
from tracegraph.stream.v3.transformer import StreamTransformer

__all__ = ["LifecycleTransformer"]


class LifecycleTransformer(StreamTransformer):
    """Projection ``lifecycle``: one payload for each start and end of a graph below the own one; built in.

    It reads the mode ``tasks``, whose events it keeps out of the main log.
    """

    _native = True
    required_stream_modes = ("tasks",)
    _methods = frozenset(required_stream_modes)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[LifecyclePayload] = StreamChannel("lifecycle")
        self._graphs = GraphsInside(self.scope)

    def init(self) -> dict[str, Any]:
        """Return the projection."""
        return {"lifecycle": self.channel}

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event."""
        if event["method"] != "tasks":
            return True
        for change in self._graphs.take(event):
            self.channel.push(_payload(change))
        return False

    def finalize(self) -> None:
        """End what is still open."""
        for change in self._graphs.all_ended(None):
            self.channel.push(_payload(change))

    def fail(self, err: BaseException) -> None:
        """End what is still open with the run's error."""
        for change in self._graphs.all_ended(err):
            self.channel.push(_payload(change))


def _payload(change: Started | Ended) -> LifecyclePayload:
    if isinstance(change, Ended):
        ended: LifecyclePayload = {"event": change.status, "namespace": list(change.namespace)}
        if change.error is not None:
            ended["error"] = change.error
        return ended
    started: LifecyclePayload = {
        "event": "started",
        "namespace": list(change.namespace),
        "graph_name": change.graph_name,
        "trigger_call_id": change.trigger_call_id,
    }
    if change.cause is not None:
        started["cause"] = change.cause
    return started
