"""The two libraries behind one set of names: LangGraph is the oracle, tracegraph is what we test."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Literal

PLACES = {
    "graph": ("StateGraph", "START", "END"),
    "types": ("Command", "Overwrite", "Send"),
    "channels": ("AnyValue", "EphemeralValue", "Topic", "UntrackedValue"),
    "managed": ("RemainingSteps",),
}


class Library:
    """What building a recipe needs of a library, as attributes."""

    StateGraph: Any
    START: str
    END: str
    Command: Any
    Overwrite: Any
    Send: Any
    AnyValue: Any
    EphemeralValue: Any
    Topic: Any
    UntrackedValue: Any
    RemainingSteps: Any

    def __init__(self, name: Literal["langgraph", "tracegraph"]) -> None:
        for module, attributes in PLACES.items():
            for attribute in attributes:
                setattr(self, attribute, getattr(import_module(f"{name}.{module}"), attribute))


@cache
def oracle() -> Library:
    """Return LangGraph."""
    return Library("langgraph")


@cache
def ours() -> Library:
    """Return tracegraph."""
    return Library("tracegraph")
