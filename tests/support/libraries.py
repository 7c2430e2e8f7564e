"""The two libraries behind one set of names: LangGraph is the oracle, tracegraph is what we test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Library:
    """What building a recipe needs of a library."""

    name: str
    StateGraph: Any
    START: str
    END: str
    Send: Any
    Command: Any
    Overwrite: Any
    Topic: Any
    AnyValue: Any
    EphemeralValue: Any
    UntrackedValue: Any
    RemainingSteps: Any


@cache
def oracle() -> Library:
    """Return LangGraph."""
    from langgraph.channels import AnyValue, EphemeralValue, Topic, UntrackedValue
    from langgraph.graph import END, START, StateGraph
    from langgraph.managed import RemainingSteps
    from langgraph.types import Command, Overwrite, Send

    return Library(
        "langgraph", StateGraph, START, END, Send, Command, Overwrite, Topic, AnyValue, EphemeralValue, UntrackedValue, RemainingSteps
    )


@cache
def ours() -> Library:
    """Return tracegraph."""
    from tracegraph.channels import AnyValue, EphemeralValue, Topic, UntrackedValue
    from tracegraph.graph import END, START, StateGraph
    from tracegraph.managed import RemainingSteps
    from tracegraph.types import Command, Overwrite, Send

    return Library(
        "tracegraph", StateGraph, START, END, Send, Command, Overwrite, Topic, AnyValue, EphemeralValue, UntrackedValue, RemainingSteps
    )
