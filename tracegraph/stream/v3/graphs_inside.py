"""Which graphs run inside a graph, and how they end, read from the tasks of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracegraph.constants import NS_END
from tracegraph.errors import GraphDrained, GraphInterrupt
from tracegraph.stream.v3.protocol import ProtocolEvent, SubgraphStatus

__all__ = ["Ended", "GraphsInside", "Started", "status_of_failure", "tool_call_id"]


@dataclass(slots=True)
class Started:
    """A graph inside has begun: the first of its tasks was seen."""

    namespace: tuple[str, ...]
    graph_name: str
    trigger_call_id: str
    cause: Mapping[str, Any] | None


@dataclass(slots=True)
class Ended:
    """The task that runs a graph has ended, and the graph with it."""

    namespace: tuple[str, ...]
    status: SubgraphStatus
    error: str | None


@dataclass(slots=True)
class GraphsInside:
    """Follows the graphs below ``scope``, down to ``depth`` levels (None: all of them)."""

    scope: tuple[str, ...]
    depth: int | None = None
    open: dict[tuple[str, ...], Started] = field(default_factory=dict)
    _known: set[tuple[str, ...]] = field(default_factory=set)
    _tool_calls: dict[str, str] = field(default_factory=dict)
    """Task id -> id of the tool call that the task was sent."""

    def take(self, event: ProtocolEvent) -> Iterator[Started | Ended]:
        """Yield what an event of mode ``tasks`` says about graphs inside."""
        ns = tuple(event["params"]["namespace"])
        if ns[: len(self.scope)] != self.scope:
            return
        data = event["params"]["data"]
        if self._is_followed(ns) and ns not in self._known and (started := self._started(ns, data)) is not None:
            self._known.add(ns)
            self.open[ns] = started
            yield started
        if "result" in data:
            self._tool_calls.pop(data["id"], None)
            yield from self._ended(ns, data)
        elif (call_id := tool_call_id(data.get("input"))) is not None:
            self._tool_calls[data["id"]] = call_id

    def _is_followed(self, ns: tuple[str, ...]) -> bool:
        depth = len(ns) - len(self.scope)
        return depth > 0 and (self.depth is None or depth <= self.depth)

    def _started(self, ns: tuple[str, ...], data: Mapping[str, Any]) -> Started | None:
        node, _, task_id = ns[-1].partition(NS_END)
        if not task_id:
            return None
        agent = (data.get("metadata") or {}).get("lc_agent_name")
        call_id = self._tool_calls.get(task_id) if agent else None
        cause = None if call_id is None else {"type": "toolCall", "tool_call_id": call_id}
        return Started(ns, agent or node, task_id, cause)

    def _ended(self, ns: tuple[str, ...], data: Mapping[str, Any]) -> Iterator[Ended]:
        above = (*ns, f"{data['name']}{NS_END}{data['id']}")
        # Innermost first: a graph ends before the one around it.
        for inner in sorted((n for n in self.open if n[: len(above)] == above), key=len, reverse=True):
            del self.open[inner]
            if data.get("interrupts"):
                yield Ended(inner, "interrupted", None)
            elif data.get("error") is not None:
                yield Ended(inner, "failed", str(data["error"]))
            else:
                yield Ended(inner, "completed", None)

    def all_ended(self, error: BaseException | None) -> Iterator[Ended]:
        """Yield the end of those that are still open when the run ends, or fails with *error*."""
        for inner in sorted(self.open, key=len, reverse=True):
            del self.open[inner]
            status: SubgraphStatus = "completed" if error is None else status_of_failure(error)
            yield Ended(inner, status, str(error) if status == "failed" else None)


def status_of_failure(error: BaseException) -> SubgraphStatus:
    """Return how a graph ended that was open when the run failed."""
    if isinstance(error, GraphDrained):
        return "drained"
    return "interrupted" if isinstance(error, GraphInterrupt) else "failed"


def tool_call_id(given: Any) -> str | None:
    """Return the id of the tool call that a task was given, alone or with the state around it."""
    if not isinstance(given, Mapping):
        return None
    call = given.get("tool_call", given)
    if isinstance(call, Mapping) and isinstance(call.get("id"), str) and (call is not given or call.get("type") == "tool_call"):
        return str(call["id"])
    return None
