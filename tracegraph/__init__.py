"""Stateful graphs of steps, decided by an engine without I/O and seen through one stream of events.

The names of the README's first page can be imported from here; everything else from the module it lives in.

>>> from tracegraph import END, START, StateGraph
>>> StateGraph.__module__.startswith("tracegraph.graph")
True

"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracegraph.version import VERSION

if TYPE_CHECKING:
    from tracegraph.checkpoint.memory import InMemorySaver
    from tracegraph.config import get_config, get_stream_writer
    from tracegraph.constants import END, START
    from tracegraph.func import entrypoint, task
    from tracegraph.graph import MessagesState, StateGraph
    from tracegraph.messages import add_messages
    from tracegraph.runtime import Runtime, get_runtime
    from tracegraph.types import CachePolicy, Command, Interrupt, Overwrite, RetryPolicy, Send, interrupt

__version__ = VERSION

__all__ = [
    "CachePolicy",
    "Command",
    "END",
    "InMemorySaver",
    "Interrupt",
    "MessagesState",
    "Overwrite",
    "RetryPolicy",
    "Runtime",
    "START",
    "Send",
    "StateGraph",
    "__version__",
    "add_messages",
    "entrypoint",
    "get_config",
    "get_runtime",
    "get_stream_writer",
    "interrupt",
    "task",
]

# Loaded when asked for: `import tracegraph.errors` runs this file too, and must not pay for a graph builder.
_HOMES = {
    "CachePolicy": "types",
    "Command": "types",
    "END": "constants",
    "InMemorySaver": "checkpoint.memory",
    "Interrupt": "types",
    "MessagesState": "graph",
    "Overwrite": "types",
    "RetryPolicy": "types",
    "Runtime": "runtime",
    "START": "constants",
    "Send": "types",
    "StateGraph": "graph",
    "add_messages": "messages",
    "entrypoint": "func",
    "get_config": "config",
    "get_runtime": "runtime",
    "get_stream_writer": "config",
    "interrupt": "types",
    "task": "func",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
