"""Streams: events in, typed parts out; and runs as objects, with projections made by transformers."""

from tracegraph.stream.v3.arun import AsyncGraphRunStream, AsyncSubgraphRunStream
from tracegraph.stream.v3.channel import StreamChannel
from tracegraph.stream.v3.lifecycle import LifecycleTransformer
from tracegraph.stream.v3.messages.message_stream import AsyncChatModelStream, ChatModelStream
from tracegraph.stream.v3.messages.transformer import MessagesTransformer
from tracegraph.stream.v3.mux import StreamMux
from tracegraph.stream.v3.projections import (
    CheckpointsTransformer,
    CustomTransformer,
    DebugTransformer,
    TasksTransformer,
    UpdatesTransformer,
    ValuesTransformer,
)
from tracegraph.stream.v3.protocol import LifecyclePayload, ProtocolEvent, SubgraphStatus
from tracegraph.stream.v3.run import GraphRunStream, SubgraphRunStream
from tracegraph.stream.v3.subgraphs import SubgraphTransformer
from tracegraph.stream.v3.tool_calls import ToolCallStream, ToolCallTransformer
from tracegraph.stream.v3.transformer import StreamTransformer

__all__ = [
    "AsyncChatModelStream",
    "AsyncGraphRunStream",
    "AsyncSubgraphRunStream",
    "ChatModelStream",
    "CheckpointsTransformer",
    "CustomTransformer",
    "DebugTransformer",
    "GraphRunStream",
    "LifecyclePayload",
    "LifecycleTransformer",
    "MessagesTransformer",
    "ProtocolEvent",
    "StreamChannel",
    "StreamMux",
    "StreamTransformer",
    "SubgraphRunStream",
    "SubgraphStatus",
    "SubgraphTransformer",
    "TasksTransformer",
    "ToolCallStream",
    "ToolCallTransformer",
    "UpdatesTransformer",
    "ValuesTransformer",
]
