"""Type variables of graphs, for those who annotate their own helpers."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

__all__ = ["ContextT", "InputT", "OutputT", "StateT"]

# Defaults let a graph be annotated by its state alone: StateGraph[State].
StateT = TypeVar("StateT", default=Any)
"""State of a graph."""

ContextT = TypeVar("ContextT", default=None)
"""Context of a run: what the caller gives beside the input and no node changes."""

InputT = TypeVar("InputT", default=StateT)
"""Input of a graph; its state unless declared otherwise."""

OutputT = TypeVar("OutputT", default=StateT)
"""Output of a graph; its state unless declared otherwise."""
