"""What the builder remembers of a node and of a conditional edge."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tracegraph.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy

__all__ = ["BranchSpec", "NodeDefaults", "NodeSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A node as it was added. Frozen: ``compile()`` reads it and never writes it."""

    name: str
    body: Any
    """The function, Runnable or compiled graph that was given."""
    input_schema: Any
    metadata: Mapping[str, Any] | None = None
    ends: tuple[str, ...] | dict[str, str] | None = None
    """Declared destinations (a dict maps a name to its label), None if the node declares none."""
    retry_policies: tuple[RetryPolicy, ...] | None = None
    """None takes the graph's default; the same holds for the next three."""
    cache_policy: CachePolicy | None = None
    error_handler: str | None = None
    """Name of the node that takes over when this one has failed for good."""
    timeout: TimeoutPolicy | None = None
    trace_policy: TracePolicy | None = None
    is_deferred: bool = False
    is_error_handler: bool = False

    @property
    def runnable(self) -> Any:
        """The body, under the name LangGraph users know."""
        return self.body

    @property
    def defer(self) -> bool:
        """``is_deferred``, under the name LangGraph users know."""
        return self.is_deferred


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchSpec:
    """A conditional edge: what decides, and where it may go."""

    name: str
    path: Any
    """The function or Runnable that returns where to go."""
    ends: dict[Hashable, str] | None = None
    """What the path returns -> target; None: it returns targets, and may go anywhere."""
    input_schema: Any = None
    """Schema of the path's annotated first parameter; None: the input schema of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDefaults:
    """What nodes get that set nothing of their own."""

    retry_policies: tuple[RetryPolicy, ...] | None = None
    cache_policy: CachePolicy | None = None
    error_handler: Any = None
    timeout: TimeoutPolicy | None = None

    def updated(self, **given: Any) -> NodeDefaults:
        """Return a copy with those of *given* that are not None."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})
