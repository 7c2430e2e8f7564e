"""The built-in transformers, under the path they have in LangGraph."""

from tracegraph.stream.v3.lifecycle import LifecycleTransformer
from tracegraph.stream.v3.messages.transformer import MessagesTransformer
from tracegraph.stream.v3.projections import (
    CheckpointsTransformer,
    CustomTransformer,
    DebugTransformer,
    TasksTransformer,
    UpdatesTransformer,
    ValuesTransformer,
)
from tracegraph.stream.v3.subgraphs import SubgraphTransformer

__all__ = [
    "CheckpointsTransformer",
    "CustomTransformer",
    "DebugTransformer",
    "LifecycleTransformer",
    "MessagesTransformer",
    "SubgraphTransformer",
    "TasksTransformer",
    "UpdatesTransformer",
    "ValuesTransformer",
]
