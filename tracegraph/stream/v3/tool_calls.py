"""Handles of tool calls: their output as it grows, and in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from tracegraph.stream.v3.channel import StreamChannel
from tracegraph.stream.v3.mux import StreamMux
from tracegraph.stream.v3.protocol import ProtocolEvent
from tracegraph.stream.v3.transformer import StreamTransformer

__all__ = ["ToolCallStream", "ToolCallTransformer"]


class ToolCallStream:
    """One call of a tool; iterating it is iterating ``output_deltas``."""

    def __init__(self, tool_call_id: str, tool_name: str, input: Any) -> None:
        self.tool_call_id = tool_call_id
        self.tool_name = tool_name
        self.input = input
        self.output_deltas: StreamChannel[Any] = StreamChannel()
        """What the tool emits before it returns."""
        self.output: Any = None
        """What it returned; of a tool message, the content."""
        self.error: str | None = None
        self.completed = False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.output_deltas)

    def __aiter__(self) -> AsyncIterator[Any]:
        return aiter(self.output_deltas)

    def finish(self, output: Any) -> None:
        """End it with what the tool returned."""
        self.output = output.content if getattr(output, "type", None) == "tool" else output
        self.completed = True
        self.output_deltas.close()

    def fail(self, message: str) -> None:
        """End it with an error, as text; the deltas end like those of a tool that returned."""
        self.error = message
        self.completed = True
        self.output_deltas.close()


class ToolCallTransformer(StreamTransformer):
    """Projection ``tool_calls``: a handle for each tool call of the own graph. Give it to ``transformers=``."""

    _native = True
    required_stream_modes = ("tools",)
    _methods = frozenset(required_stream_modes)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[ToolCallStream] = StreamChannel()
        self._open: dict[str, ToolCallStream] = {}
        self._own_namespace = list(self.scope)
        self._mux: StreamMux | None = None

    def init(self) -> dict[str, Any]:
        """Return the projection."""
        return {"tool_calls": self.channel}

    def _on_register(self, mux: StreamMux) -> None:
        self._mux = mux

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event."""
        if event["method"] == "tools" and event["params"]["namespace"] == self._own_namespace:
            self._take(event["params"]["data"])
        return True

    def _take(self, data: Mapping[str, Any]) -> None:
        call_id = data["tool_call_id"]
        if data["event"] == "tool-started":
            made = self._open[call_id] = ToolCallStream(call_id, data["tool_name"], data.get("input"))
            assert self._mux is not None
            made.output_deltas.bind(self._mux, label=f"output_deltas of {call_id}")
            self.channel.push(made)
        elif (call := self._open.get(call_id)) is not None:
            match data["event"]:
                case "tool-output-delta":
                    call.output_deltas.push(data["delta"])
                case "tool-finished":
                    self._open.pop(call_id).finish(data.get("output"))
                case "tool-error":
                    self._open.pop(call_id).fail(str(data.get("message")))
                case _:
                    pass  # of a later version of the protocol

    def finalize(self) -> None:
        """End what is still open."""
        for call in self._open.values():
            call.finish(None)
        self._open.clear()

    def fail(self, err: BaseException) -> None:
        """End what is still open with the run's error."""
        for call in self._open.values():
            call.fail(str(err))
        self._open.clear()
