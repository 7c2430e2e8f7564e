"""Messages, and the reducer that keeps a list of them."""

from tracegraph.messages.add import REMOVE_ALL_MESSAGES, Messages, add_message_batches, add_messages
from tracegraph.messages.base import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    InvalidToolCall,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UsageMetadata,
)
from tracegraph.messages.chunks import AIMessageChunk, ToolCallChunk
from tracegraph.messages.coerce import MessageLikeRepresentation, convert_to_messages, is_message

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "AIMessage",
    "AIMessageChunk",
    "AnyMessage",
    "BaseMessage",
    "ChatMessage",
    "HumanMessage",
    "InvalidToolCall",
    "MessageLikeRepresentation",
    "Messages",
    "RemoveMessage",
    "SystemMessage",
    "ToolCall",
    "ToolCallChunk",
    "ToolMessage",
    "UsageMetadata",
    "add_message_batches",
    "add_messages",
    "convert_to_messages",
    "is_message",
]
