"""The projection of model answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from tracegraph.stream.v3.channel import StreamChannel
from tracegraph.stream.v3.messages.assembly import events_of_message, family_of
from tracegraph.stream.v3.messages.message_stream import AsyncChatModelStream, ChatModelStream
from tracegraph.stream.v3.mux import StreamMux
from tracegraph.stream.v3.protocol import ProtocolEvent
from tracegraph.stream.v3.pulling import AsyncPump, Pump
from tracegraph.stream.v3.transformer import StreamTransformer

__all__ = ["MessagesTransformer"]


class MessagesTransformer(StreamTransformer):
    """Projection ``messages``: one stream for each model call of the own graph; built in.

    Payloads of mode ``messages`` are ``(message event, metadata)``, routed by ``metadata["run_id"]``. A message that a
    node returned becomes a stream that is complete already; tool messages and chunks are passed over.
    """

    _native = True
    required_stream_modes = ("messages",)
    _methods = frozenset(required_stream_modes)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[ChatModelStream | AsyncChatModelStream] = StreamChannel()
        # Weakly: an answer that nobody has is not put together, and does not keep the run going.
        self._open: WeakValueDictionary[str, ChatModelStream | AsyncChatModelStream] = WeakValueDictionary()
        self._own_namespace = list(self.scope)
        self._mux: StreamMux | None = None
        self._pump: Pump | None = None
        self._apump: AsyncPump | None = None

    def init(self) -> dict[str, Any]:
        """Return the projection."""
        return {"messages": self.channel}

    def _on_register(self, mux: StreamMux) -> None:
        self._mux = mux

    def _bind_pump(self, pump: Pump) -> None:
        self._pump = pump

    def _bind_apump(self, apump: AsyncPump) -> None:
        self._apump = apump

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event."""
        if event["method"] == "messages" and event["params"]["namespace"] == self._own_namespace:
            message, metadata = event["params"]["data"]
            if isinstance(message, Mapping) and "event" in message:
                self._route(message, metadata)
            elif getattr(message, "type", None) == "ai" and not type(message).__name__.endswith("Chunk"):
                self._take_whole(message, metadata)
        return True

    def _route(self, message: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        run_id = str(metadata.get("run_id"))
        if message["event"] == "message-start":
            if message.get("role") != "tool":
                made = self._open[run_id] = self._make(metadata, message.get("id"))
                made.dispatch(message)
                self.channel.push(made)
        elif (stream := self._open.get(run_id)) is not None:
            stream.dispatch(message)
            if stream.done:
                self._open.pop(run_id, None)

    def _take_whole(self, message: Any, metadata: Mapping[str, Any]) -> None:
        made = self._make(metadata, message.id)
        for event in events_of_message(message):
            if event["event"] == "message-start" and (family := family_of(message)) is not None:
                event["metadata"] = {"family": family}
            made.dispatch(event)
        self.channel.push(made)

    def _make(self, metadata: Mapping[str, Any], message_id: str | None) -> ChatModelStream | AsyncChatModelStream:
        node = metadata.get("langgraph_node")
        assert self._mux is not None
        made: ChatModelStream | AsyncChatModelStream
        if self._mux.is_async:
            made = AsyncChatModelStream(self._apump, node=node, message_id=message_id)
        else:
            made = ChatModelStream(self._pump, node=node, message_id=message_id)
        made.hold = self._mux.hold()
        return made

    def finalize(self) -> None:
        """End what is still open."""
        for stream in list(self._open.values()):
            stream.finish()
        self._open.clear()

    def fail(self, err: BaseException) -> None:
        """End what is still open with the run's error."""
        for stream in list(self._open.values()):
            stream.fail(err)
        self._open.clear()
