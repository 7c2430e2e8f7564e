"""One answer of a chat model, as it is written: text, reasoning, tool calls, and the message in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from tracegraph.stream.v3.messages.assembly import assembled
from tracegraph.stream.v3.messages.projection import AsyncProjection, Projection, SyncProjection, SyncText
from tracegraph.stream.v3.pulling import AsyncPump, Pump

__all__ = ["AsyncChatModelStream", "ChatModelStream", "MessageStream"]

_GROWING: Final = {"text-delta": "text", "reasoning-delta": "reasoning", "tool-call-delta": "args", "data-delta": "data"}
"""Kinds of deltas that are added to a text -> its key in the block."""

P = TypeVar("P", bound=Projection[Any])


class MessageStream(Generic[P]):
    """What both colours do with message events."""

    def __init__(self, text: P, reasoning: P, tool_calls: P, events: P, *, node: str | None, message_id: str | None) -> None:
        self.node = node
        self.message_id = message_id
        self.namespace: list[str] = []
        """Always that of the graph whose projection this is an item of."""
        self._text = text
        self._reasoning = reasoning
        self._tool_calls = tool_calls
        self._events = events
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        """What deltas have added to a block's text since it was last put together; doing so each time would take the square
        of the time."""
        self._family: str | None = None
        self.hold: Any = None
        """Keeps the run going until the message is complete."""

    @property
    def done(self) -> bool:
        """Whether the message is complete, or will never be."""
        return self._events.done

    @property
    def error(self) -> BaseException | None:
        """What cut it short."""
        return self._events.error

    @property
    def output_message(self) -> Any:
        """The message if it is complete, else None; nothing is waited for."""
        return self._events.final

    @property
    def text(self) -> P:
        """The answer's text."""
        return self._text

    @property
    def reasoning(self) -> P:
        """What the model thought aloud."""
        return self._reasoning

    @property
    def tool_calls(self) -> P:
        """Pieces of the tool calls; as a whole, the list of those that could be parsed."""
        return self._tool_calls

    def _all(self) -> tuple[P, ...]:
        return self._text, self._reasoning, self._tool_calls, self._events

    def dispatch(self, event: Mapping[str, Any]) -> None:
        """Take a message event."""
        if self.done:
            return
        self._events.push(event)
        match event["event"]:
            case "message-start":
                self.message_id = event.get("id") or self.message_id
                self._family = (event.get("metadata") or {}).get("family")
            case "content-block-start":
                self._begin(event["index"], dict(event["content"]))
            case "content-block-delta":
                self._grow(event["index"], event["delta"])
            case "content-block-finish":
                self._finish_block(event["index"], dict(event["content"]))
            case "message-finish":
                self.finish(usage=event.get("usage"), details=event.get("metadata") or {})
            case "error":
                self.fail(RuntimeError(event["message"]))
            case _:
                pass  # of a later version of the protocol

    def _begin(self, index: int, block: dict[str, Any]) -> None:
        self._blocks[index] = block
        if block.get("type") == "text" and block.get("text"):
            self._text.push(block["text"])
        elif block.get("type") == "reasoning" and block.get("reasoning"):
            self._reasoning.push(block["reasoning"])
        elif block.get("type") == "tool_call_chunk" and block.get("args"):
            self._push_call(block, block["args"])

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = delta["type"]
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _empty(kind)
        if kind == "block-delta":
            self._joined(index).update(delta["fields"])
        elif (key := _GROWING.get(kind)) is not None:
            self._pieces.setdefault((index, key), []).append(delta[key])
            if kind == "text-delta":
                self._text.push(delta["text"])
            elif kind == "reasoning-delta":
                self._reasoning.push(delta["reasoning"])
            elif kind == "tool-call-delta":
                self._push_call(block, delta["args"])

    def _joined(self, index: int) -> dict[str, Any]:
        """Return a block with what its deltas have added so far."""
        block = self._blocks.get(index, {})
        for key in _GROWING.values():
            if (pieces := self._pieces.pop((index, key), None)) is not None:
                block[key] = (block.get(key) or "") + "".join(pieces)
        return block

    def _push_call(self, block: Mapping[str, Any], args: str) -> None:
        piece = {"type": "tool_call_chunk", "id": block.get("id"), "name": block.get("name"), "args": args}
        self._tool_calls.push({**piece, "index": block["index"]} if "index" in block else piece)

    def _finish_block(self, index: int, block: dict[str, Any]) -> None:
        shown = self._joined(index)
        # The finished block has the last word, and readers of deltas must come to the same text.
        for kind, projection in (("text", self._text), ("reasoning", self._reasoning)):
            if block.get("type") == kind:
                rest = block.get(kind, "").removeprefix(shown.get(kind, ""))
                if rest and block[kind] != shown.get(kind):
                    projection.push(rest)
        self._blocks[index] = block

    def finish(self, *, usage: Any = None, details: Mapping[str, Any] | None = None) -> None:
        """End it: the message is put together of the blocks there are."""
        if self.done:
            return
        blocks = [(index, self._joined(index)) for index in sorted(self._blocks)]
        message = assembled(blocks, message_id=self.message_id, usage=usage, details=details or {}, family=self._family)
        for kind, projection in (("text", self._text), ("reasoning", self._reasoning)):
            projection.complete("".join(block.get(kind, "") for _, block in blocks if block.get("type") == kind))
        self._tool_calls.complete([block for block in message.content if block.get("type") == "tool_call"])
        self._events.complete(message)
        self.hold = None

    def fail(self, error: BaseException) -> None:
        """End it with an error, for every reader of every projection."""
        for projection in self._all():
            projection.fail(error)
        self.hold = None


class ChatModelStream(MessageStream[SyncProjection[Any]]):
    """An answer in a sync run; reading it moves the run on. ``str(stream.text)`` is the whole text."""

    def __init__(self, pump: Pump | None = None, *, node: str | None = None, message_id: str | None = None) -> None:
        pieces: tuple[SyncProjection[Any], SyncProjection[Any]] = SyncProjection(pump), SyncProjection(pump)
        super().__init__(SyncText(pump), SyncText(pump), *pieces, node=node, message_id=message_id)

    @property
    def output(self) -> Any:
        """The message, once it is complete; its ``usage_metadata`` has the token counts."""
        return self._events.get()

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield the message events, from the first."""
        return iter(self._events)


class AsyncChatModelStream(MessageStream[AsyncProjection[Any]]):
    """An answer in an async run; ``await stream.text`` is the whole text, ``await stream`` the message."""

    def __init__(self, pump: AsyncPump | None = None, *, node: str | None = None, message_id: str | None = None) -> None:
        made: list[AsyncProjection[Any]] = [AsyncProjection(pump) for _ in range(4)]
        super().__init__(*made, node=node, message_id=message_id)

    @property
    def output(self) -> AsyncProjection[Any]:
        """The message, to be awaited; its ``usage_metadata`` has the token counts."""
        return self._events

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the message events, from the first."""
        return aiter(self._events)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._events.__await__()

    async def aclose(self) -> None:
        """Take no more events: what there is by now is the message."""
        self.finish()


def _empty(delta_type: str) -> dict[str, Any]:
    kinds = {"text-delta": "text", "reasoning-delta": "reasoning", "tool-call-delta": "tool_call_chunk"}
    return {"type": kinds[delta_type]} if delta_type in kinds else {}
