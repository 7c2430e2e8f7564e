"""From the chunks that chat models stream to message events: starts, deltas and ends of content blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracegraph.constants import NS_END
from tracegraph.stream.v3.messages.assembly import family_of, finished_block
from tracegraph.stream.v3.protocol import ProtocolEvent, event_of

__all__ = ["MessageBridge"]

_TEXT_FIELDS = {"text": "text", "reasoning": "reasoning", "thinking": "thinking"}
"""Kinds of blocks whose pieces are texts -> the key of the text in a provider's block."""


class MessageBridge:
    """Turns the parts of a run into events; chunks of a model's answer become message events.

    An answer ends with its last chunk, if that says so, and else with the task that asked for it.

    Args:
        scope: namespace of the graph that is streamed; parts have theirs below it.
    """

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self._scope = scope
        self._open: dict[str, _Answer] = {}

    def events_of(self, part: Mapping[str, Any]) -> Iterator[ProtocolEvent]:
        """Yield the events of one part of ``stream(version="v2", subgraphs=True)``."""
        if part["type"] == "tasks" and "result" in part["data"] and self._open:
            yield from self._ends_of_task(f"{part['data']['name']}{NS_END}{part['data']['id']}")
        if part["type"] != "messages" or not _is_chunk(part["data"][0]):
            yield event_of(part, self._scope)
            return
        chunk, metadata = part["data"]
        answer, is_new = self._answer(chunk, metadata, part)
        if is_new:
            yield answer.event(answer.start(chunk))
        for data in answer.take(chunk):
            yield answer.event(data)
        if getattr(chunk, "chunk_position", None) == "last":
            yield from self._end(answer)

    def _answer(self, chunk: Any, metadata: Mapping[str, Any], part: Mapping[str, Any]) -> tuple[_Answer, bool]:
        run_id = str(metadata.get("run_id") or chunk.id or metadata.get("langgraph_checkpoint_ns"))
        if (known := self._open.get(run_id)) is not None:
            return known, False
        made = self._open[run_id] = _Answer(run_id, (*self._scope, *part["ns"]), {**metadata, "run_id": run_id})
        return made, True

    def _ends_of_task(self, segment: str) -> Iterator[ProtocolEvent]:
        for answer in list(self._open.values()):
            if str(answer.metadata.get("langgraph_checkpoint_ns", "")).endswith(segment):
                yield from self._end(answer)

    def _end(self, answer: _Answer) -> Iterator[ProtocolEvent]:
        del self._open[answer.run_id]
        for data in answer.end():
            yield answer.event(data)

    def rest(self) -> Iterator[ProtocolEvent]:
        """Yield the ends of answers that are still open when the run ends."""
        for answer in list(self._open.values()):
            yield from self._end(answer)


@dataclass(slots=True)
class _Answer:
    """One answer that is being written: its blocks so far, by index."""

    run_id: str
    ns: tuple[str, ...]
    metadata: dict[str, Any]
    blocks: list[dict[str, Any]] = field(default_factory=list)
    positions: dict[tuple[str, Any], int] = field(default_factory=dict)
    """(kind, the provider's index) -> index of the block."""
    usage: Any = None
    details: dict[str, Any] = field(default_factory=dict)

    def event(self, data: dict[str, Any]) -> ProtocolEvent:
        return event_of({"type": "messages", "ns": self.ns, "data": (data, self.metadata)})

    def start(self, chunk: Any) -> dict[str, Any]:
        made = {"event": "message-start", "role": "ai", "id": chunk.id}
        family = family_of(chunk)
        return made if family is None else {**made, "metadata": {"family": family}}

    def take(self, chunk: Any) -> Iterator[dict[str, Any]]:
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
            yield {"event": "content-block-start", "index": position, "content": {"type": kind, kind: ""}}
        self.blocks[position][kind] += text
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
        for index, block in enumerate(self.blocks):
            yield {"event": "content-block-finish", "index": index, "content": finished_block(block)}
        finish: dict[str, Any] = {"event": "message-finish"}
        if self.usage is not None:
            finish["usage"] = self.usage
        if self.details:
            finish["metadata"] = self.details
        yield finish


def _is_chunk(message: Any) -> bool:
    # By name, for LangChain's and ours: a chunk can be added up, and whole messages of both have the same attributes.
    return type(message).__name__.endswith("Chunk") and hasattr(message, "content")


def _added(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    total = dict(left)
    for key, value in right.items():
        total[key] = _added(total.get(key, {}), value) if isinstance(value, Mapping) else total.get(key, 0) + value
    return total
