"""Transformers that hand on the payloads of one stream mode, of their own graph alone."""

from __future__ import annotations

from typing import Any, ClassVar

from tracegraph.stream.v3.channel import StreamChannel
from tracegraph.stream.v3.protocol import ProtocolEvent
from tracegraph.stream.v3.transformer import StreamTransformer

__all__ = [
    "CheckpointsTransformer",
    "CustomTransformer",
    "DebugTransformer",
    "TasksTransformer",
    "UpdatesTransformer",
    "ValuesTransformer",
]


class _ModeTransformer(StreamTransformer):
    """Projects the payloads of ``mode``."""

    _native = True
    mode: ClassVar[str]
    is_live: ClassVar[bool] = False
    """Nodes emit such payloads while they run."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.required_stream_modes = (cls.mode,)
        if cls.process is _ModeTransformer.process and cls.aprocess is StreamTransformer.aprocess:
            cls._methods = frozenset({cls.mode})

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[Any] = StreamChannel()
        self.channel.is_of_supersteps = not self.is_live
        self._own_namespace = list(self.scope)

    def init(self) -> dict[str, Any]:
        """Return the projection."""
        return {self.mode: self.channel}

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event."""
        if event["method"] == self.mode and event["params"]["namespace"] == self._own_namespace:
            self.take(event)
        return True

    def take(self, event: ProtocolEvent) -> None:
        """Take a payload of the own graph."""
        self.channel.push(event["params"]["data"])


class ValuesTransformer(_ModeTransformer):
    """Projection ``values``: the state after each superstep; built in. It also knows the output and what is asked."""

    mode = "values"

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.latest: Any = None
        self.interrupts: list[Any] = []

    def take(self, event: ProtocolEvent) -> None:
        """Take the values, and what is asked."""
        self.latest = event["params"]["data"]
        self.interrupts.extend(event["params"].get("interrupts", ()))
        super().take(event)


class UpdatesTransformer(_ModeTransformer):
    """Projection ``updates``: what each node wrote."""

    mode = "updates"


class CustomTransformer(_ModeTransformer):
    """Projection ``custom``: what nodes gave to the stream writer."""

    mode = "custom"
    is_live = True


class CheckpointsTransformer(_ModeTransformer):
    """Projection ``checkpoints``: the checkpoints, as they are saved."""

    mode = "checkpoints"


class TasksTransformer(_ModeTransformer):
    """Projection ``tasks``: the start and the result of each task."""

    mode = "tasks"


class DebugTransformer(_ModeTransformer):
    """Projection ``debug``: tasks and checkpoints with their steps."""

    mode = "debug"
