"""Hand-made events through a SpanObserver: whose child a span is, and what the spans of calls say."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any
from uuid import UUID

from event_script import CHILD, OTHER, ROOT, Script, exceptions
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from tracegraph import events as e
from tracegraph.errors import GraphInterrupt
from tracegraph.telemetry.roots import attach_here, spans_for_root


class Answer:
    """What a chat model hands back, by duck type."""

    id = "resp-1"
    response_metadata = {"model_name": "m-2026", "finish_reason": "stop"}
    usage_metadata = {"input_tokens": 5, "output_tokens": 3, "output_token_details": {"reasoning": 2}}


def test_model_call_reports_model_usage_and_first_chunk(provider: TracerProvider, recorder: Any) -> None:
    """Tokens are counted, never recorded one by one; what the model did not report stays absent."""
    s = Script(provider, thread_id="t-1")
    s.send(s.step(), s.task(), s.model(70, model="m", temperature=0.5, provider="openai"))
    for _ in range(300):
        s.send(e.ModelToken(ROOT, "", 1, next(s.clock), "id-a", UUID(int=70), None, "FakeModel", "x", None))
    s.send(e.ModelEnded(ROOT, "", 1, next(s.clock), "id-a", UUID(int=70), None, "FakeModel", Answer(), None))
    s.send(s.task_ended(), s.run_ended())

    span = recorder.one("chat m")
    assert span.kind is SpanKind.CLIENT
    assert recorder.parent_of(span) is recorder.one("run_step a")
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.conversation.id": "t-1",
        "gen_ai.response.id": "resp-1",
        "gen_ai.response.model": "m-2026",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 0.001,
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "tracegraph.stream.chunks": 300,
    }
    assert [event.name for event in span.events] == ["tracegraph.stream.first_chunk"]


def test_tool_call_is_below_the_call_that_made_it(provider: TracerProvider, recorder: Any) -> None:
    """A parent call beats the task; an interrupt inside a tool is no error, a real exception is."""
    s = Script(provider)
    s.send(s.step(), s.task(), s.tool(70), s.tool(71, parent=70), s.tool(72))
    s.send(
        s.tool_ended(71, ValueError("no")), s.tool_ended(72, GraphInterrupt()), s.tool_ended(70), s.task_ended(), s.run_ended()
    )

    failed, paused, outer = recorder.named("execute_tool lookup")
    assert recorder.parent_of(failed) is outer
    assert recorder.parent_of(outer) is recorder.one("run_step a")
    assert (failed.status.status_code, exceptions(failed)) == (StatusCode.ERROR, ["ValueError"])
    assert (paused.status.status_code, paused.attributes["tracegraph.call.status"]) == (StatusCode.UNSET, "interrupted")
    assert outer.attributes["gen_ai.tool.call.id"] == "call-7"


def test_retrieval_counts_documents(provider: TracerProvider, recorder: Any) -> None:
    """How many, not what they say; a call outside any known task hangs below the run."""
    s = Script(provider)
    s.send(e.RetrievalStarted(ROOT, "", 1, next(s.clock), "nobody", UUID(int=9), None, "faq", None, "query", (), {}))
    s.send(e.RetrievalEnded(ROOT, "", 1, next(s.clock), "nobody", UUID(int=9), None, "faq", ["d1", "d2"], None), s.run_ended())

    span = recorder.one("retrieval")
    assert span.attributes["tracegraph.retrieval.documents"] == 2
    assert recorder.parent_of(span) is recorder.one("invoke_workflow")


def test_scope_makes_the_tasks_span_current_only_in_its_own_context(provider: TracerProvider, recorder: Any) -> None:
    """User spans opened in the task's Context are its children; the caller's context never sees any of it."""
    s = Script(provider)
    task = s.task(has_attempts=True)
    attempt = s.attempt(1)
    s.send(s.step(), task, attempt)
    tracer = provider.get_tracer("user")
    assert s.observer is not None

    ours = copy_context()
    ours.run(s.observer.scope, attempt)
    ours.run(lambda: tracer.start_span("mine").end())

    assert trace.get_current_span() is trace.INVALID_SPAN
    s.send(s.attempt_ended(1), s.task_ended(), s.run_ended())
    assert recorder.parent_of(recorder.one("mine")) is recorder.one("attempt")


def test_nested_run_is_below_the_users_span_it_was_called_in(provider: TracerProvider, recorder: Any) -> None:
    """The ambient span wins if it is of this trace; in a bare thread the task's own span is the parent."""
    s = Script(provider)
    task = s.task("b")
    s.send(s.step(), task)
    assert s.observer is not None

    def node() -> None:
        assert s.observer is not None
        s.observer.scope(task)
        with provider.get_tracer("user").start_as_current_span("mine"):
            s.send(s.run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-b", name="sub", workflow_name="sub"))
            s.send(s.run_ended(CHILD))

    copy_context().run(node)
    s.send(s.run_started(OTHER, parent_run_id=ROOT, parent_task_id="id-b", name="bare", workflow_name="bare"), s.run_ended(OTHER))
    s.send(s.task_ended("b"), s.run_ended())

    assert recorder.parent_of(recorder.one("invoke_workflow sub")) is recorder.one("mine")
    assert recorder.parent_of(recorder.one("invoke_workflow bare")) is recorder.one("run_step b")


def test_foreign_span_that_happens_to_be_current_adopts_no_nested_run(provider: TracerProvider, recorder: Any) -> None:
    """A span of another trace in the calling thread is not where the nested run belongs."""
    s = Script(provider)
    s.send(s.step(), s.task("b"))
    with provider.get_tracer("user").start_as_current_span("foreign"):
        s.send(
            s.run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-b", name="sub", workflow_name="sub"), s.run_ended(CHILD)
        )
    s.send(s.task_ended("b"), s.run_ended())

    assert recorder.parent_of(recorder.one("invoke_workflow sub")) is recorder.one("run_step b")


def test_root_run_is_a_child_of_the_ambient_span(provider: TracerProvider, recorder: Any) -> None:
    """A run inside a request's span belongs to the request's trace."""
    with provider.get_tracer("user").start_as_current_span("request"):
        s = Script(provider)
    s.send(s.run_ended())

    assert recorder.edges() == [(None, "request"), ("request", "invoke_workflow")]


def test_context_of_the_root_makes_the_runs_span_current(provider: TracerProvider) -> None:
    """What the driver attaches in the run's own Context, and never detaches."""
    s = Script(provider)

    def inside() -> str:
        attach_here(s.context)
        return trace.get_current_span().name  # type: ignore[attr-defined]

    assert copy_context().run(inside) == "invoke_workflow"
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_no_provider_means_no_observer_and_no_context() -> None:
    """Without a real provider a run is not observed at all."""
    started = e.RunStarted(ROOT, "", -1, 1, None, None, "g", {}, None, (), {}, None, False, None)

    assert spans_for_root(started, provider=trace.NoOpTracerProvider()) == (None, None)


def test_sampled_out_root_leaves_no_observer_but_keeps_its_decision_for_users_spans(recorder: Any) -> None:
    """Spans of node code must not become roots of their own where the run was sampled out."""
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    started = e.RunStarted(ROOT, "", -1, 1, None, None, "g", {}, None, (), {}, None, False, None)

    observer, context = spans_for_root(started, provider=provider)

    assert observer is None
    root = trace.get_current_span(context).get_span_context()
    assert root.is_valid and not root.trace_flags.sampled
