"""Message types: what a conversation in a state is made of.

They carry the attribute names of LangChain's messages, so that code reading ``.type``, ``.content``, ``.id``
or ``.tool_calls`` works with either.
"""

from __future__ import annotations

from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict

__all__ = [
    "AIMessage",
    "AnyMessage",
    "BaseMessage",
    "ChatMessage",
    "Content",
    "HumanMessage",
    "InvalidToolCall",
    "RemoveMessage",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "UsageMetadata",
]

Content: TypeAlias = str | list[str | dict[str, Any]]
"""Text, or a list of texts and typed blocks (``{"type": "text", "text": ...}``)."""


class _ToolCallType(TypedDict, total=False):
    type: Literal["tool_call"]


class ToolCall(_ToolCallType):
    """A model's request to call a tool."""

    name: str
    args: dict[str, Any]
    id: str | None


class InvalidToolCall(TypedDict):
    """A request whose arguments are no JSON object; ``args`` is their raw text."""

    name: str | None
    args: str | None
    id: str | None
    error: str | None


class UsageMetadata(TypedDict, total=False):
    """Token counts of a model call."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_token_details: dict[str, int]
    output_token_details: dict[str, int]


@dataclass(slots=True, repr=False)
class BaseMessage:
    """What all messages have. ``id`` is given by :func:`~tracegraph.messages.add_messages` if it is None."""

    type: ClassVar[str] = ""

    content: Content
    id: str | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    additional_kwargs: dict[str, Any] = field(default_factory=dict, kw_only=True)
    response_metadata: dict[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def text(self) -> str:
        """The content's text, its text blocks joined."""
        if isinstance(self.content, str):
            return self.content
        return "".join(
            b if isinstance(b, str) else b["text"] for b in self.content if isinstance(b, str) or b.get("type") == "text"
        )

    def __repr__(self) -> str:
        shown = [f"{f.name}={value!r}" for f in fields(self) if (value := getattr(self, f.name)) != _default(f)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _default(of: Any) -> Any:
    return of.default if of.default_factory is NO_DEFAULT else of.default_factory()


@dataclass(slots=True, repr=False)
class HumanMessage(BaseMessage):
    """What a person says.

    >>> HumanMessage("hi", id="1")
    HumanMessage(content='hi', id='1')
    """

    type: ClassVar[str] = "human"


@dataclass(slots=True, repr=False)
class SystemMessage(BaseMessage):
    """Instructions to the model."""

    type: ClassVar[str] = "system"


@dataclass(slots=True, repr=False)
class AIMessage(BaseMessage):
    """What a model says, and the tools it wants called."""

    type: ClassVar[str] = "ai"

    content: Content = ""
    tool_calls: list[ToolCall] = field(default_factory=list, kw_only=True)
    invalid_tool_calls: list[InvalidToolCall] = field(default_factory=list, kw_only=True)
    usage_metadata: UsageMetadata | None = field(default=None, kw_only=True)


@dataclass(slots=True, repr=False)
class ToolMessage(BaseMessage):
    """What a tool answered to the call ``tool_call_id``. ``artifact`` is for the program, not the model."""

    type: ClassVar[str] = "tool"

    tool_call_id: str = field(kw_only=True)
    status: Literal["success", "error"] = field(default="success", kw_only=True)
    artifact: Any = field(default=None, kw_only=True)


@dataclass(slots=True, repr=False)
class ChatMessage(BaseMessage):
    """A message in a role of the user's choosing."""

    type: ClassVar[str] = "chat"

    role: str = field(kw_only=True)


@dataclass(slots=True, repr=False, init=False)
class RemoveMessage(BaseMessage):
    """Written to a message list, removes the message with this id; stored in no state."""

    type: ClassVar[str] = "remove"

    def __init__(self, id: str) -> None:
        BaseMessage.__init__(self, "", id=id)


AnyMessage: TypeAlias = AIMessage | HumanMessage | SystemMessage | ToolMessage | ChatMessage | RemoveMessage
