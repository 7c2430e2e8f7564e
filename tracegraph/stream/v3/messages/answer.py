"""From the chunks that a chat model streams to message events: starts, deltas and ends of content blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracegraph.stream.v3.messages.assembly import family_of, finished_block

__all__ = ["Answer"]

_TEXT_FIELDS = {"text": "text", "reasoning": "reasoning", "thinking": "thinking"}
"""Kinds of blocks whose pieces are texts -> the key of the text in a provider's block."""


@dataclass(slots=True)
class Answer:
    """One answer that is being written: its blocks so far, by index."""

    blocks: list[dict[str, Any]] = field(default_factory=list)
    texts: dict[int, list[str]] = field(default_factory=dict)
    """Index of a text block -> its pieces: adding each to a text that grows would take the square of the time."""
    positions: dict[tuple[str, Any], int] = field(default_factory=dict)
    """(kind, the provider's index) -> index of the block."""
    usage: Any = None
    details: dict[str, Any] = field(default_factory=dict)

    def start(self, chunk: Any) -> dict[str, Any]:
        """Return the event that comes before the first chunk's own."""
        made = {"event": "message-start", "role": "ai", "id": chunk.id}
        family = family_of(chunk)
        return made if family is None else {**made, "metadata": {"family": family}}

    def take(self, chunk: Any) -> Iterator[dict[str, Any]]:
        """Yield the events that a chunk comes to."""
        reasoning = chunk.additional_kwargs.get("reasoning_content")
        if isinstance(reasoning, str) and reasoning:
            yield from self._text("reasoning", None, reasoning)
        content = [chunk.content] if isinstance(chunk.content, str) else chunk.content
        for piece in content:
            yield from self._piece(piece)
        for call in getattr(chunk, "tool_call_chunks", ()):
            yield from self._tool_call(call)
        if (usage := getattr(chunk, "usage_metadata", None)) is not None:
            self.usage = usage if self.usage is None else _added(self.usage, usage)
        self.details.update(chunk.response_metadata)

    def _piece(self, piece: Any) -> Iterator[dict[str, Any]]:
        if isinstance(piece, str):
            if piece:
                yield from self._text("text", None, piece)
            return
        kind = str(piece.get("type"))
        if (key := _TEXT_FIELDS.get(kind)) is not None:
            if piece.get(key):
                yield from self._text("text" if kind == "text" else "reasoning", piece.get("index"), piece[key])
        elif kind not in {"tool_use", "input_json_delta", "tool_call_chunk", "tool_call"}:  # those come as tool_call_chunks
            position, is_new = self._position(kind, piece.get("index", len(self.blocks)), dict(piece))
            if is_new:
                yield {"event": "content-block-start", "index": position, "content": dict(piece)}
            else:
                self.blocks[position].update(piece)
                delta = {"type": "block-delta", "fields": dict(piece)}
                yield {"event": "content-block-delta", "index": position, "delta": delta}

    def _text(self, kind: str, at: Any, text: str) -> Iterator[dict[str, Any]]:
        position, is_new = self._position(kind, at, {"type": kind, kind: ""})
        if is_new:
            self.texts[position] = []
            yield {"event": "content-block-start", "index": position, "content": {"type": kind, kind: ""}}
        self.texts[position].append(text)
        yield {"event": "content-block-delta", "index": position, "delta": {"type": f"{kind}-delta", kind: text}}

    def _tool_call(self, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        at = call.get("index")
        # Without an index a piece that has an id begins another call, and one that has none goes on with the last.
        key = at if at is not None else (call.get("id") or self._last_call())
        first = {"type": "tool_call_chunk", "id": call.get("id"), "name": call.get("name"), "args": ""}
        if at is not None:
            first["index"] = at
        position, is_new = self._position("tool_call_chunk", key, first)
        if is_new:
            yield {"event": "content-block-start", "index": position, "content": dict(first)}
        if call.get("args"):
            self.blocks[position]["args"] += call["args"]
            delta = {"type": "tool-call-delta", "args": call["args"]}
            yield {"event": "content-block-delta", "index": position, "delta": delta}

    def _last_call(self) -> Any:
        calls = [at for kind, at in self.positions if kind == "tool_call_chunk"]
        return calls[-1] if calls else None

    def _position(self, kind: str, at: Any, block: dict[str, Any]) -> tuple[int, bool]:
        known = self.positions.get((kind, at))
        if known is not None:
            return known, False
        self.positions[kind, at] = len(self.blocks)
        self.blocks.append(block)
        return len(self.blocks) - 1, True

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the events that come after the last chunk's."""
        for index, block in enumerate(self.blocks):
            if (pieces := self.texts.get(index)) is not None:
                block[block["type"]] = "".join(pieces)
            yield {"event": "content-block-finish", "index": index, "content": finished_block(block)}
        finish: dict[str, Any] = {"event": "message-finish"}
        if self.usage is not None:
            finish["usage"] = self.usage
        if self.details:
            finish["metadata"] = self.details
        yield finish


def _added(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    total = dict(left)
    for key, value in right.items():
        total[key] = _added(total.get(key, {}), value) if isinstance(value, Mapping) else total.get(key, 0) + value
    return total
