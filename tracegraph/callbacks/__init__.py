"""Callbacks: handlers that are told of a run, and the managers that let node code tell them."""

from __future__ import annotations

from tracegraph.callbacks.base import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    GraphCallbackHandler,
    GraphInterruptEvent,
    GraphLifecycleEvent,
    GraphLifecycleStatus,
    GraphResumeEvent,
    RetryState,
)
from tracegraph.callbacks.manager import CallbackManager, adispatch_custom_event, dispatch_custom_event
from tracegraph.callbacks.observed_store import observed_store

__all__ = [
    "AsyncCallbackHandler",
    "BaseCallbackHandler",
    "CallbackManager",
    "GraphCallbackHandler",
    "GraphInterruptEvent",
    "GraphLifecycleEvent",
    "GraphLifecycleStatus",
    "GraphResumeEvent",
    "RetryState",
    "adispatch_custom_event",
    "dispatch_custom_event",
    "observed_store",
]
