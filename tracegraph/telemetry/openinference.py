"""The attributes of OpenInference that Arize Phoenix draws its views from, beside those of the GenAI conventions.

Kind and session are on every span. ``graph.node.*`` is on the tasks' spans: a node's id is its name, below the names of
the nodes whose subgraphs it is in (``research:search``); its parent is the node that made it run, so Phoenix shows the
graph as it was walked. A node that the input or a resume made run has the node around its graph for a parent, or none.
"""

from __future__ import annotations

from typing import Final

from opentelemetry.util.types import AttributeValue

from tracegraph.events import MemoryStarted, ModelStarted, RetrievalStarted, RunStarted, TaskEnded, TaskStarted, ToolStarted
from tracegraph.telemetry import semconv

__all__ = ["GraphNodes", "call_attributes", "span_attributes"]

_CHAIN: Final = "CHAIN"
_KINDS: Final = {ModelStarted: "LLM", ToolStarted: "TOOL", RetrievalStarted: "RETRIEVER"}


def span_attributes(thread_id: str | None, kind: str = _CHAIN) -> dict[str, AttributeValue]:
    """Return what every span of a run has.

    >>> span_attributes("t-1")
    {'openinference.span.kind': 'CHAIN', 'session.id': 't-1'}
    """
    attributes: dict[str, AttributeValue] = {semconv.OPENINFERENCE_SPAN_KIND: kind}
    if thread_id is not None:
        attributes[semconv.SESSION_ID] = thread_id
    return attributes


def call_attributes(
    event: ModelStarted | ToolStarted | RetrievalStarted | MemoryStarted, thread_id: str | None
) -> dict[str, AttributeValue]:
    """Return what the span of a call has."""
    if isinstance(event, MemoryStarted):
        # There is no kind for memory. To read it is to retrieve; to write it is a step like any other.
        return span_attributes(thread_id, "RETRIEVER" if event.operation == semconv.SEARCH_MEMORY else _CHAIN)
    return span_attributes(thread_id, _KINDS[type(event)])


class GraphNodes:
    """Which node of a run made which run: known from the channels that trigger nodes and the tasks that wrote to them."""

    __slots__ = ("_around", "_before", "_now", "_prefix", "_writers")

    def __init__(self, around: str | None = None) -> None:
        self._around = around
        self._prefix = "" if around is None else f"{around}:"
        self._writers: dict[str, str] = {}
        # Node ids by task id, of two supersteps: a Send's producer ran in the one before.
        self._now: dict[str, str] = {}
        self._before: dict[str, str] = {}

    @classmethod
    def of(cls, started: RunStarted, around: GraphNodes | None) -> GraphNodes:
        """Return those of a run inside the run that has *around*, which may be none."""
        task_id = started.parent_task_id
        return cls(None if around is None or task_id is None else around._now.get(task_id))  # noqa: SLF001  # another of its kind

    def next_step(self) -> None:
        """Begin a superstep."""
        self._before, self._now = self._now, {}

    def started(self, event: TaskStarted) -> dict[str, AttributeValue]:
        """Return the attributes of a task."""
        node_id = self._now[event.task_id] = self._prefix + event.name
        attributes: dict[str, AttributeValue] = {semconv.GRAPH_NODE_ID: node_id, semconv.GRAPH_NODE_NAME: event.name}
        if (parent := self._parent(event)) is not None:
            attributes[semconv.GRAPH_NODE_PARENT_ID] = parent
        return attributes

    def ended(self, event: TaskEnded) -> None:
        """Remember who wrote what."""
        node_id = self._now.get(event.task_id)
        if node_id is not None:
            for channel, _ in event.writes:
                self._writers[channel] = node_id

    def _parent(self, event: TaskStarted) -> str | None:
        for task_id in (event.caller_id, event.producer_id):
            if task_id is not None and (found := self._now.get(task_id) or self._before.get(task_id)) is not None:
                return found
        return next((self._writers[name] for name in event.triggers if name in self._writers), self._around)
