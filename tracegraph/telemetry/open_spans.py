"""What of a run is open: its span, its superstep's, its tasks' and their calls'.

A record exists from the start of a span to its end and owns that end; what has no record has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from tracegraph.constants import PULL
from tracegraph.engine.identity import path_text
from tracegraph.events import RunStarted, SuperstepEnded, TaskEnded, TaskStarted
from tracegraph.telemetry import semconv
from tracegraph.telemetry.calls import Call
from tracegraph.telemetry.openinference import GraphNodes, span_attributes
from tracegraph.telemetry.options import TelemetryOptions

__all__ = ["Attributes", "End", "NodeNames", "RunRecord", "TaskRecord", "end_all", "start_run_span"]

Attributes = dict[str, AttributeValue]
End = tuple[Span, str, str]
"""A span to end: the span, the attribute that says how it ended, and its value."""


def end_all(ends: Iterable[End], at_ns: int | None) -> None:
    """End every span, whatever ending another one raises; then raise the first of these errors.

    Ending a span runs the application's span processors, so it can raise anything.
    """
    first: BaseException | None = None
    for span, key, value in ends:
        try:
            try:
                span.set_attribute(key, value)
            finally:
                span.end(at_ns)
        except BaseException as error:  # noqa: BLE001  # raised below, once nothing is open any more
            first = first or error
    if first is not None:
        raise first


class TaskRecord:
    """An open task span, the open span of its current attempt, and what its code has started."""

    __slots__ = ("_made", "attempt", "calls", "children", "part", "span")

    def __init__(self, span: Span, part: int = 1) -> None:
        self.span = span
        self.part = part
        """In which part of the run's trace it is."""
        self.attempt: Span | None = None
        self.calls: dict[UUID, Call] | None = None
        self.children: list[UUID] | None = None
        """Ids of the runs that this task's code started, ended ones included."""
        self._made: tuple[Span, Context] | None = None

    def context(self, run: RunRecord) -> Context:
        """Return the context in which this task's code runs and its children's spans start; made once for each span."""
        span, made = self.attempt or self.span, self._made
        if made is None or made[0] is not span:
            made = self._made = span, set_span_in_context(span, run.context)
        return made[1]

    def ends_below(self, status: str) -> Iterator[End]:
        """Yield what of this task is still open but its own span, innermost first; forget it."""
        calls, self.calls = self.calls, None
        for call in reversed((calls or {}).values()):
            yield call.cut(), semconv.CALL_STATUS, status
        attempt, self.attempt = self.attempt, None
        if attempt is not None:
            yield attempt, semconv.TASK_STATUS, status


class NodeNames:
    """What the spans of one node in one run have in common, put together once."""

    __slots__ = ("attributes", "path", "path_text", "span_name")

    def __init__(self, name: str, base: Attributes) -> None:
        self.span_name = f"{semconv.RUN_STEP} {name}"
        self.path = (PULL, name)
        self.path_text = path_text(self.path)
        self.attributes: Attributes = {semconv.OPERATION_NAME: semconv.RUN_STEP, semconv.STEP_NAME: name, **base}

    def of(self, event: TaskStarted) -> Attributes:
        """Return a task's attributes; all of them are known at the start, so a sampler sees them."""
        attributes = self.attributes.copy()
        attributes[semconv.SUPERSTEP] = event.step
        attributes[semconv.TASK_ID] = event.task_id
        attributes[semconv.TASK_PATH] = self.path_text if event.path == self.path else path_text(event.path)
        attributes[semconv.TASK_TRIGGER] = event.triggers
        attributes[semconv.TASK_QUEUED_MS] = max(0, event.at_ns - event.planned_at_ns) / 1e6
        if event.caller_id is not None:
            attributes[semconv.TASK_CALLER] = event.caller_id
        return attributes

    def of_cached(self, event: TaskEnded) -> Attributes:
        """Return the attributes of a task that ended without having started."""
        attributes = {**self.attributes, semconv.SUPERSTEP: event.step, semconv.TASK_ID: event.task_id}
        return attributes | {semconv.CACHE_HIT: True, semconv.TASK_STATUS: "cached"}


def start_run_span(event: RunStarted, tracer: Tracer, context: Context | None, options: TelemetryOptions) -> Span:
    """Start the span of a run below the span in *context* (``None``: the current one)."""
    name = semconv.INVOKE_WORKFLOW
    attributes: Attributes = {semconv.OPERATION_NAME: name, semconv.RUN_ID: str(event.run_id)}
    attributes[semconv.CHECKPOINT_NS] = event.ns
    if event.workflow_name is not None:
        attributes[semconv.WORKFLOW_NAME] = event.workflow_name
        name = f"{name} {event.workflow_name}"
    if event.thread_id is not None:
        attributes[semconv.CONVERSATION_ID] = event.thread_id
    if event.durability is not None:
        attributes[semconv.DURABILITY] = event.durability
    if event.tags:
        attributes[semconv.RUN_TAGS] = tuple(event.tags)
    if event.is_resume and event.checkpoint_id is not None:
        attributes[semconv.RESUMED_FROM_CHECKPOINT] = event.checkpoint_id
    if options.profile == "openinference":
        attributes |= span_attributes(event.thread_id)
    return tracer.start_span(name, context, attributes=attributes, start_time=event.at_ns)


class RunRecord:
    """An open run span and everything open below it that is no run of its own."""

    __slots__ = (
        "base",
        "calls",
        "context",
        "ended",
        "ended_before",
        "graph_nodes",
        "held",
        "last_task_end_ns",
        "lookups",
        "nodes",
        "part",
        "puts",
        "saved_by_superstep",
        "span",
        "step_context",
        "superstep",
        "tasks",
        "thread_id",
    )

    def __init__(
        self, span: Span, context: Context, started: RunStarted, graph_nodes: GraphNodes | None = None, part: int = 1
    ) -> None:
        self.span = span
        self.part = part
        """In which part of the trace its tasks are."""
        self.context = context
        self.step_context = context
        self.superstep: Span | None = None
        self.saved_by_superstep: str | None = None
        """Id of the checkpoint whose save the open superstep waits for."""
        self.held: tuple[Span, SuperstepEnded] | None = None
        """A superstep that is over but for that save."""
        self.thread_id = started.thread_id
        self.base: Attributes = {semconv.CHECKPOINT_NS: started.ns}
        if started.thread_id is not None:
            self.base[semconv.CONVERSATION_ID] = started.thread_id
        self.graph_nodes = graph_nodes
        """Only in the OpenInference profile."""
        if graph_nodes is not None:
            self.base |= span_attributes(started.thread_id)
        self.nodes: dict[str, NodeNames] = {}
        self.tasks: dict[str, TaskRecord] = {}
        self.calls: dict[UUID, Call] | None = None
        self.puts: dict[str, Span] = {}
        self.lookups: dict[str, bool] = {}
        """Task id -> cache hit, of tasks that have not started yet."""
        # Two supersteps' worth: a Send's producer ran in the one before.
        self.ended: dict[str, SpanContext] = {}
        self.ended_before: dict[str, SpanContext] = {}
        self.last_task_end_ns = 0

    def move_to(self, part: int, context: Context) -> None:
        """Let what starts from now on be below the root of another part of the trace, *context*."""
        self.part = part
        self.context = self.step_context = context

    def names_of(self, node: str) -> NodeNames:
        """Return what *node*'s spans have in common."""
        names = self.nodes.get(node)
        if names is None:
            names = self.nodes[node] = NodeNames(node, self.base)
        return names

    def context_of(self, task_id: str) -> SpanContext | None:
        """Return the span of a task of this superstep or the last, open or ended."""
        task = self.tasks.get(task_id)
        if task is not None:
            return task.span.get_span_context()
        return self.ended.get(task_id) or self.ended_before.get(task_id)

    def enter_superstep(self, superstep: Span | None) -> None:
        """Make *superstep* the parent of tasks to come (``None``: the run is)."""
        self.superstep = superstep
        self.step_context = self.context if superstep is None else set_span_in_context(superstep, self.context)
        self.ended_before, self.ended = self.ended, {}
        if self.graph_nodes is not None:
            self.graph_nodes.next_step()

    def leave_superstep(self) -> Span | None:
        """Return the superstep's span, which is the caller's to end now."""
        superstep, self.superstep = self.superstep, None
        self.step_context = self.context
        return superstep

    def hold_superstep(self, superstep: Span, event: SuperstepEnded) -> bool:
        """Keep *superstep* open if the save that it waits for is; say whether it is."""
        awaited, self.saved_by_superstep = self.saved_by_superstep, None
        if awaited is None or awaited not in self.puts or awaited != event.checkpoint_id:
            return False
        self.held = (superstep, event)
        return True

    def release_superstep(self, checkpoint_id: str | None = None) -> tuple[Span, SuperstepEnded] | None:
        """Return the superstep kept open for this save (None: for whichever), which is the caller's to end now."""
        if self.held is None or checkpoint_id not in {None, self.held[1].checkpoint_id}:
            return None
        held, self.held = self.held, None
        return held

    def ends_below(self, status: str) -> Iterator[End]:
        """Yield what of this run is still open but its own span, children first; forget it."""
        calls, self.calls = self.calls, None
        for call in (calls or {}).values():
            yield call.cut(), semconv.CALL_STATUS, status
        tasks, self.tasks = self.tasks, {}
        # The latest first: a task called by another lies inside it.
        for task in reversed(tasks.values()):
            yield from task.ends_below(status)
            yield task.span, semconv.TASK_STATUS, status
        puts, self.puts = self.puts, {}
        for put in puts.values():
            yield put, semconv.CHECKPOINT_STATUS, "unknown"
        if (held := self.release_superstep()) is not None:
            yield held[0], semconv.SUPERSTEP_STATUS, held[1].status
        if (superstep := self.leave_superstep()) is not None:
            yield superstep, semconv.SUPERSTEP_STATUS, "stopped"
