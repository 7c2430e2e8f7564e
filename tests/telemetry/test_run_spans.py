"""Spans of real runs through the public API, on both drivers: the tree a user sees in any tracing backend."""

from __future__ import annotations

import asyncio
import logging
import operator
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Annotated, Any, TypedDict

import pytest
from colours import ASYNC, SYNC, Colour
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import GraphRecursionError
from tracegraph.graph import END, START, StateGraph
from tracegraph.telemetry import use_provider
from tracegraph.types import Command, RetryPolicy, Send, interrupt


class State(TypedDict, total=False):
    n: int
    seen: Annotated[list[str], operator.add]


class RemoteSaver(InMemorySaver):
    """A saver that says it does I/O, as a database's does."""

    does_io = True


@pytest.fixture
def spans(provider: TracerProvider, recorder: Any, caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    """The recorder, in use; after the test nothing may be open, and OpenTelemetry must not have complained."""
    caplog.set_level(logging.WARNING, "opentelemetry")
    use_provider(provider)
    try:
        yield recorder
    finally:
        use_provider(None)
    assert not recorder.open
    assert [r.getMessage() for r in caplog.records if r.name.startswith("opentelemetry")] == []
    assert trace.get_current_span() is trace.INVALID_SPAN


def chain(*nodes: tuple[str, Any], **options: Any) -> StateGraph[Any]:
    """Return a graph of nodes in a row; *options* go to every add_node."""
    graph = StateGraph(State)
    at = START
    for name, body in nodes:
        graph.add_node(name, body, **options)
        graph.add_edge(at, name)
        at = name
    graph.add_edge(at, END)
    return graph


def step(_: Any) -> dict[str, int]:
    return {"n": 1}


def see(_: Any) -> dict[str, list[str]]:
    return {"seen": ["x"]}


def boom(_: Any) -> dict[str, int]:
    raise ValueError("real")


def statuses(spans: Any, key: str) -> dict[str, Any]:
    return {span.name: span.attributes.get(key) for span in spans.finished}


def errors(spans: Any) -> list[str]:
    return sorted(span.name for span in spans.finished if span.status.status_code is StatusCode.ERROR)


def exceptions(spans: Any) -> list[str]:
    return sorted(span.name for span in spans.finished for event in span.events if event.name == "exception")


def test_linear_graph_is_one_span_a_node_below_the_run(spans: Any, colour: Colour) -> None:
    """No superstep spans where a step has one task; names, steps and thread are on the spans."""
    app = chain(("a", step), ("b", step)).compile(name="triage", checkpointer=InMemorySaver())
    colour.invoke(app, {"n": 0}, {"configurable": {"thread_id": "t-1"}})

    root = "invoke_workflow triage"
    assert spans.edges() == [(None, root), (root, "run_step a"), (root, "run_step b")]
    assert {span.attributes["gen_ai.conversation.id"] for span in spans.finished} == {"t-1"}
    assert [spans.one(f"run_step {n}").attributes["tracegraph.superstep"] for n in "ab"] == [1, 2]
    assert statuses(spans, "tracegraph.task.status") == {root: None, "run_step a": "completed", "run_step b": "completed"}
    assert spans.one(root).attributes["tracegraph.run.status"] == "completed"
    assert {span.status.status_code for span in spans.finished} == {StatusCode.UNSET}
    a, b, run = spans.one("run_step a"), spans.one("run_step b"), spans.one(root)
    assert run.start_time <= a.start_time <= a.end_time <= b.start_time <= b.end_time <= run.end_time


def test_fan_out_lies_below_its_superstep_and_links_to_its_sender(spans: Any, colour: Colour) -> None:
    """Send tasks are siblings in one superstep; each links to the task that sent it."""
    graph = StateGraph(State)
    graph.add_node("plan", step)
    graph.add_node("work", lambda given: {"seen": [given["item"]]})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda _: [Send("work", {"item": item}) for item in "xyz"], ["work"])
    colour.invoke(graph.compile(), {"n": 0})

    assert spans.edges() == [
        (None, "invoke_workflow"),
        ("invoke_workflow", "run_step plan"),
        ("invoke_workflow", "superstep"),
        *[("superstep", "run_step work")] * 3,
    ]
    plan = spans.one("run_step plan")
    assert [[link.context.span_id for link in span.links] for span in spans.named("run_step work")] == [
        [plan.context.span_id]
    ] * 3
    assert spans.one("superstep").attributes["tracegraph.superstep.tasks"] == 3


def test_subgraph_as_a_node_and_subgraph_called_in_a_node(spans: Any, colour: Colour) -> None:
    """Each is a run of its own below its node's step, in the same trace."""
    sub = chain(("leaf", step)).compile(name="sub")
    called = sub.invoke if colour is SYNC else sub.ainvoke
    app = chain(("mounted", sub), ("caller", lambda state: called(state))).compile()
    if colour is ASYNC:

        async def caller(state: Any) -> Any:
            return await sub.ainvoke(state)

        app = chain(("mounted", sub), ("caller", caller)).compile()
    colour.invoke(app, {"n": 0})

    assert spans.edges() == [
        (None, "invoke_workflow"),
        ("invoke_workflow", "run_step caller"),
        ("invoke_workflow", "run_step mounted"),
        ("invoke_workflow sub", "run_step leaf"),
        ("invoke_workflow sub", "run_step leaf"),
        ("run_step caller", "invoke_workflow sub"),
        ("run_step mounted", "invoke_workflow sub"),
    ]
    assert len({span.context.trace_id for span in spans.finished}) == 1
    nested = {span.attributes["tracegraph.checkpoint.ns"].partition(":")[0] for span in spans.named("run_step leaf")}
    assert nested == {"mounted", "caller"}


def test_many_subgraphs_at_once_keep_to_their_own_parents(spans: Any, colour: Colour) -> None:
    """Concurrent child runs never adopt each other's tasks."""
    sub = chain(("leaf", see), ("last", see)).compile(name="sub")
    graph = StateGraph(State)
    graph.add_node("inner", sub)
    graph.add_conditional_edges(START, lambda _: [Send("inner", {"seen": []}) for _ in range(8)], ["inner"])
    colour.invoke(graph.compile(), {"n": 0})

    runs = spans.named("invoke_workflow sub")
    assert len({spans.parent_of(run).context.span_id for run in runs}) == 8
    for run in runs:
        below = sorted(span.name for span in spans.finished if span.parent and span.parent.span_id == run.context.span_id)
        assert below == ["run_step last", "run_step leaf"]


def test_retried_node_has_attempts_and_no_error_of_its_own(spans: Any, colour: Colour) -> None:
    """Two failures and a success: two attempts are errors, the step and the run are not."""
    failures = iter([ConnectionError("one"), ConnectionError("two")])

    def flaky(_: Any) -> dict[str, int]:
        if (error := next(failures, None)) is not None:
            raise error
        return {"n": 1}

    policy = RetryPolicy(initial_interval=0.001, jitter=False)
    app = chain(("flaky", flaky), retry_policy=policy).compile()
    colour.invoke(app, {"n": 0})

    attempts = spans.named("attempt")
    assert [a.attributes["tracegraph.attempt.number"] for a in attempts] == [1, 2, 3]
    assert [a.status.description for a in attempts] == ["one", "two", None]
    assert {spans.parent_of(a).name for a in attempts} == {"run_step flaky"}
    assert errors(spans) == ["attempt", "attempt"]
    flaky_step = spans.one("run_step flaky")
    assert [event.name for event in flaky_step.events] == ["tracegraph.task.retry"] * 2
    assert flaky_step.attributes["tracegraph.task.attempts"] == 3


def test_failure_marks_the_task_and_every_run_it_leaves(spans: Any, colour: Colour) -> None:
    """Once on each span the exception passes, with its message and no traceback as description."""
    app = chain(("ok", step), ("sub", chain(("leaf", boom)).compile(name="inner"))).compile(name="outer")
    with pytest.raises(ValueError, match="real"):
        colour.invoke(app, {"n": 0})

    marked = ["invoke_workflow inner", "invoke_workflow outer", "run_step leaf", "run_step sub"]
    assert errors(spans) == exceptions(spans) == marked
    assert {spans.one(name).attributes["error.type"] for name in marked} == {"ValueError"}
    assert {spans.one(name).status.description for name in marked} == {"real"}


def test_sibling_of_a_failing_node_is_cancelled_not_failed(spans: Any) -> None:
    """What the failure stops is told apart from the failure."""

    async def slow(_: Any) -> dict[str, int]:
        await asyncio.Event().wait()
        return {}

    async def fail(_: Any) -> dict[str, int]:
        await asyncio.sleep(0)
        raise ValueError("real")

    graph = StateGraph(State)
    for name, body in (("slow", slow), ("fail", fail)):
        graph.add_node(name, body)
        graph.add_edge(START, name)
    with pytest.raises(ValueError, match="real"):
        asyncio.run(graph.compile().ainvoke({"n": 0}))

    assert errors(spans) == ["invoke_workflow", "run_step fail"]
    assert spans.one("run_step slow").attributes["tracegraph.task.status"] in {"cancelled", "abandoned"}


def test_pause_is_no_error_and_its_resume_links_back(spans: Any, colour: Colour) -> None:
    """C31: nothing is ERROR, no exception event; the new trace links to the paused step and its run, by thread too."""
    sub = chain(("leaf", lambda _: {"seen": [interrupt("ok?")]})).compile()
    app = chain(("sub", sub)).compile(name="asking", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t-1"}}
    colour.invoke(app, {"n": 0}, config)

    assert errors(spans) == exceptions(spans) == []
    assert spans.one("run_step leaf").attributes["tracegraph.task.status"] == "interrupted"
    paused = spans.one("invoke_workflow asking")
    assert paused.attributes["tracegraph.run.status"] == "interrupted"
    (event,) = [e for e in paused.events if e.name == "tracegraph.run.interrupted"]
    interrupt_id = event.attributes["tracegraph.interrupt.id"][0]
    steps = {span.context.span_id for span in spans.finished if span.name.startswith("run_step")}
    spans.clear()

    colour.invoke(app, Command(resume="yes"), config)

    assert errors(spans) == exceptions(spans) == []
    resumed = spans.one("invoke_workflow asking")
    assert resumed.context.trace_id != paused.context.trace_id
    linked = {link.context.span_id for link in resumed.links}
    assert {link.context.trace_id for link in resumed.links} == {paused.context.trace_id}
    assert paused.context.span_id in linked
    assert linked & steps
    assert resumed.attributes["tracegraph.resumed_from.interrupt.id"] == (interrupt_id,)
    assert resumed.attributes["gen_ai.conversation.id"] == paused.attributes["gen_ai.conversation.id"]


def test_second_question_of_a_node_links_to_the_run_that_asked_it(spans: Any, colour: Colour) -> None:
    """Two pauses on one checkpoint: the second resume goes on from the second run, not from the first."""

    def asks_twice(_: Any) -> dict[str, list[str]]:
        return {"seen": [interrupt("one?"), interrupt("two?")]}

    app = chain(("ask", asks_twice)).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t-1"}}
    colour.invoke(app, {"n": 0}, config)
    colour.invoke(app, Command(resume="1"), config)
    colour.invoke(app, Command(resume="2"), config)

    first, second, third = spans.named("invoke_workflow")
    assert {link.context.trace_id for link in second.links} == {first.context.trace_id}
    assert {link.context.trace_id for link in third.links} == {second.context.trace_id}


def test_failed_run_is_linked_to_by_the_run_that_goes_on(spans: Any, colour: Colour) -> None:
    """An error on a checkpointed thread is a stop like an interrupt: what is invoked next says what it repairs."""
    broken = iter([True])

    def mended(_: Any) -> dict[str, int]:
        if next(broken, False):
            raise ValueError("real")
        return {"n": 1}

    app = chain(("a", mended)).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t-1"}}
    with pytest.raises(ValueError, match="real"):
        colour.invoke(app, {"n": 0}, config)
    colour.invoke(app, None, config)

    failed, resumed = spans.named("invoke_workflow")
    assert {link.context.trace_id for link in resumed.links} == {failed.context.trace_id}


def test_step_limit_is_the_runs_error_alone(spans: Any, colour: Colour) -> None:
    """The loop's steps were fine."""
    graph = chain(("a", step))
    graph.add_edge("a", "a")
    with pytest.raises(GraphRecursionError):
        colour.invoke(graph.compile(), {"n": 0}, {"recursion_limit": 3})

    assert errors(spans) == ["invoke_workflow"]
    assert spans.one("invoke_workflow").attributes["tracegraph.run.status"] == "step_limit"


def test_invalid_input_ends_the_runs_span(spans: Any, colour: Colour) -> None:
    """A run that never starts is a failed run, not an open span."""
    app = chain(("a", step)).compile()
    with pytest.raises(Exception) as raised:  # noqa: PT011  # whichever error it is, the span carries it
        colour.invoke(app, None)

    run = spans.one("invoke_workflow")
    assert run.status.status_code is StatusCode.ERROR
    assert run.attributes["error.type"].endswith(type(raised.value).__name__)


def test_keyboard_interrupt_in_a_node_ends_every_span(spans: Any, colour: Colour) -> None:
    """Whatever leaves the run, leaves nothing open."""

    def stop(_: Any) -> dict[str, int]:
        raise KeyboardInterrupt

    app = chain(("a", step), ("sub", chain(("leaf", stop)).compile())).compile()
    with pytest.raises(KeyboardInterrupt):
        colour.invoke(app, {"n": 0})

    assert "run_step leaf" in statuses(spans, "tracegraph.task.status")


def test_awaited_saves_are_seen_below_their_superstep(spans: Any, colour: Colour) -> None:
    """A saver that does I/O under sync durability: the wait is in the tree, once a step."""
    app = chain(("a", step)).compile(checkpointer=RemoteSaver())
    colour.invoke(app, {"n": 0}, {"configurable": {"thread_id": "t-1"}}, durability="sync")

    assert ("superstep", "run_step a") in spans.edges()
    step_1 = spans.parent_of(spans.one("run_step a"))
    (put,) = [put for put in spans.named("checkpoint put") if spans.parent_of(put) is step_1]
    assert put.attributes["tracegraph.checkpoint.id"] == step_1.attributes["tracegraph.checkpoint.id"]
    assert put.attributes["tracegraph.superstep"] == 1


def test_background_saves_are_below_the_run(spans: Any, colour: Colour) -> None:
    """Nobody waits for them step by step, so no step contains them."""
    app = chain(("a", step), ("b", step)).compile(checkpointer=RemoteSaver())
    colour.invoke(app, {"n": 0}, {"configurable": {"thread_id": "t-1"}}, durability="async")

    puts = spans.named("checkpoint put")
    assert len(puts) >= 3
    assert {spans.parent_of(put).name for put in puts} == {"invoke_workflow"}


def test_users_spans_in_a_node_are_below_its_step(spans: Any, provider: TracerProvider, colour: Colour) -> None:
    """C34: in the body, in a pool thread with a copied context, and in asyncio.to_thread; also inside a subgraph."""
    tracer = provider.get_tracer("user")

    def mine(tag: str) -> None:
        with tracer.start_as_current_span(f"mine {tag}"):
            pass

    def sync_body(_: Any) -> dict[str, int]:
        mine("here")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(copy_context().run, mine, "there").result()
        return {"n": 1}

    async def async_body(_: Any) -> dict[str, int]:
        mine("here")
        await asyncio.to_thread(mine, "there")
        return {"n": 1}

    body = sync_body if colour is SYNC else async_body
    colour.invoke(chain(("outer", body), ("sub", chain(("leaf", body)).compile())).compile(), {"n": 0})

    parents = sorted((span.name, spans.parent_of(span).name) for span in spans.finished if span.name.startswith("mine"))
    assert parents == [
        ("mine here", "run_step leaf"),
        ("mine here", "run_step outer"),
        ("mine there", "run_step leaf"),
        ("mine there", "run_step outer"),
    ]


def test_subgraph_called_in_a_bare_thread_is_still_below_its_task(spans: Any) -> None:
    """A thread the user starts in the task's copied context but outside any span of theirs."""
    sub = chain(("leaf", step)).compile(name="sub")

    def body(state: Any) -> dict[str, int]:
        found: list[Any] = []
        thread = threading.Thread(target=copy_context().run, args=(lambda: found.append(sub.invoke(state)),))
        thread.start()
        thread.join()
        return {"n": found[0]["n"]}

    chain(("a", body)).compile().invoke({"n": 0})

    assert spans.parent_of(spans.one("invoke_workflow sub")).name == "run_step a"


def test_run_inside_a_request_joins_the_requests_trace(spans: Any, provider: TracerProvider, colour: Colour) -> None:
    """The ambient span is the root's parent, and is the current one again after the run."""
    tracer = provider.get_tracer("user")
    app = chain(("a", step)).compile()
    with tracer.start_as_current_span("request") as request:
        colour.invoke(app, {"n": 0})
        assert trace.get_current_span() is request

    assert spans.edges() == [(None, "request"), ("invoke_workflow", "run_step a"), ("request", "invoke_workflow")]


def test_stream_left_early_ends_every_span_without_an_error(spans: Any, colour: Colour) -> None:
    """C33: break and close; the consumer's own current span is untouched in between."""
    app = chain(("a", step), ("b", step), ("c", step)).compile()

    async def leave() -> None:
        parts = app.astream({"n": 0}, stream_mode="updates")
        await anext(parts)
        await parts.aclose()

    if colour is SYNC:
        stream = app.stream({"n": 0}, stream_mode="updates")
        next(stream)
        assert trace.get_current_span() is trace.INVALID_SPAN
        stream.close()
    else:
        asyncio.run(leave())

    assert errors(spans) == exceptions(spans) == []
    assert spans.one("invoke_workflow").attributes["tracegraph.run.status"] in {"abandoned", "cancelled"}


def test_one_graph_from_many_threads_makes_separate_traces(spans: Any, colour: Colour) -> None:
    """Runs share the compiled graph and nothing else."""
    app = chain(("a", step), ("b", step)).compile()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: colour.invoke(app, {"n": n}), range(12)))

    by_trace: dict[int, list[str]] = {}
    for span in spans.finished:
        by_trace.setdefault(span.context.trace_id, []).append(span.name)
    assert [sorted(names) for names in by_trace.values()] == [["invoke_workflow", "run_step a", "run_step b"]] * 12


def test_content_stays_out_of_spans(spans: Any, colour: Colour) -> None:
    """Inputs, outputs, questions and answers are nobody's business by default."""
    app = chain(("ask", lambda _: {"seen": [interrupt("secret question")]})).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t-1"}}
    colour.invoke(app, {"n": 0, "seen": ["secret input"]}, config)
    colour.invoke(app, Command(resume="secret answer"), config)

    assert "secret" not in "".join(span.to_json() for span in spans.finished)


def test_without_a_provider_nothing_is_observed(colour: Colour) -> None:
    """No provider, no observer: node code has no current span either."""
    seen: list[Any] = []
    app = chain(("a", lambda _: seen.append(trace.get_current_span()) or {"n": 1})).compile()
    colour.invoke(app, {"n": 0})

    assert seen == [trace.INVALID_SPAN]


def test_sampled_out_run_leaves_no_span_of_node_code(recorder: Any, colour: Colour) -> None:
    """The root's decision holds for what node code traces with a parent-based sampler, which is the default."""
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    users = TracerProvider(shutdown_on_exit=False)
    users.add_span_processor(recorder)
    use_provider(provider)
    try:

        def body(_: Any) -> dict[str, int]:
            with users.get_tracer("user").start_as_current_span("mine"):
                return {"n": 1}

        colour.invoke(chain(("a", body)).compile(), {"n": 0})
    finally:
        use_provider(None)
        provider.shutdown()
        users.shutdown()

    assert recorder.finished == []
    assert not recorder.open
