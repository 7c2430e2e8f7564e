"""Events of what node code calls: models, tools, retrievers, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from uuid import UUID

from tracegraph.events.base import BaseEvent

__all__ = [
    "MemoryEnded",
    "MemoryOperation",
    "MemoryStarted",
    "ModelEnded",
    "ModelStarted",
    "ModelToken",
    "RetrievalEnded",
    "RetrievalStarted",
    "ToolEnded",
    "ToolStarted",
]

MemoryOperation: TypeAlias = Literal[
    "search_memory",
    "create_memory",
    "update_memory",
    "upsert_memory",
    "delete_memory",
    "create_memory_store",
    "delete_memory_store",
]
"""What is done with long-term memory, in the words of the GenAI conventions. To read one record is a search, too."""


@dataclass(slots=True)
class _Call(BaseEvent):
    task_id: str
    call_id: UUID
    parent_call_id: UUID | None
    name: str
    is_foreign: bool = field(init=False, default=False)
    """Made through a callback manager that is not ours, which has told the handlers of it."""


@dataclass(slots=True)
class ModelStarted(_Call):
    """A model call began. ``messages``: list of message lists of a chat model, or list of prompts."""

    serialized: Mapping[str, Any] | None
    is_chat: bool
    messages: Any
    params: Mapping[str, Any]
    tags: Sequence[str]
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class ModelToken(_Call):
    """A model streamed a piece of its answer."""

    token: Any
    chunk: Any


@dataclass(slots=True)
class ModelEnded(_Call):
    """A model call ended with a response or an error."""

    response: Any
    error: BaseException | None


@dataclass(slots=True)
class ToolStarted(_Call):
    """A tool call began."""

    serialized: Mapping[str, Any] | None
    input: Any
    tool_call_id: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class ToolEnded(_Call):
    """A tool call ended with an output or an error."""

    output: Any
    error: BaseException | None


@dataclass(slots=True)
class RetrievalStarted(_Call):
    """A retriever was asked."""

    serialized: Mapping[str, Any] | None
    query: Any
    tags: Sequence[str]
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class RetrievalEnded(_Call):
    """A retriever answered with documents, or failed."""

    documents: Any
    error: BaseException | None


@dataclass(slots=True)
class MemoryStarted(_Call):
    """Long-term memory was asked for something. ``records`` are those to be written, None if it is no write.

    ``record_id`` is there if one record is meant; ``namespace`` if all of them are in, or below, the same one.
    """

    operation: MemoryOperation
    store_id: str | None
    record_id: str | None
    namespace: Sequence[str] | None
    query: Any
    records: Any
    is_in_process: bool
    tags: Sequence[str]
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class MemoryEnded(_Call):
    """Long-term memory did what it was asked, or failed. ``records`` are those found, None if it was no search.

    ``count`` is how many were found, written or, of a deletion, meant; None if that is not known.
    """

    records: Any
    count: int | None
    error: BaseException | None
