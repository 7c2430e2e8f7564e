"""Metrics of the models and tools that nodes call, on both drivers: time, chunks, tokens, and how many calls a run makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from colours import ASYNC, SYNC, Colour
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainMessage
from measured import Measured
from small_graphs import THREAD, chain, says

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_config
from tracegraph.errors import GraphInterrupt
from tracegraph.messages import AIMessage

CALL_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKEN_BUCKETS = (
    1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
)  # fmt: skip
CALL_COUNT_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)
DURATION = "gen_ai.client.operation.duration"
FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
NEXT_CHUNKS = "gen_ai.client.operation.time_per_output_chunk"
TOOL = "gen_ai.execute_tool.duration"
INPUT_TOKENS = "gen_ai.client.inference.operation.input_tokens"
USAGE = "gen_ai.client.inference.usage."
WHERE = {"gen_ai.workflow.name": "agent", "gen_ai.step.name": "think"}
CALLED = {**WHERE, "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}
ANSWERED = {**CALLED, "gen_ai.response.model": "m-2026"}

ANSWER = AIMessage(
    "one two three",
    usage_metadata={
        "input_tokens": 50,
        "output_tokens": 30,
        "total_tokens": 80,
        "input_token_details": {"cache_read": 20, "cache_creation": 10},
        "output_token_details": {"reasoning": 7},
    },
    response_metadata={"model_name": "m-2026", "finish_reason": "stop"},
)


def model(answer: Any = ANSWER, *, chunks: int = 0) -> Any:
    """Report a model call as models do: with *chunks* pieces, then an answer or an error."""
    (run,) = get_config()["callbacks"].on_chat_model_start({"name": "fake"}, [[]], model="m", provider="openai")
    for _ in range(chunks):
        run.on_llm_new_token("x")
    if isinstance(answer, BaseException):
        run.on_llm_error(answer)
    else:
        run.on_llm_end(answer)


def tool(error: BaseException | None = None) -> Any:
    """Report a tool call."""
    run = get_config()["callbacks"].on_tool_start({"name": "lookup", "description": "finds"}, "secret", tool_call_id="call-7")
    if error is None:
        run.on_tool_end("found")
    else:
        run.on_tool_error(error)


def agent(*calls: Callable[[], Any], **options: Any) -> Any:
    """Return a graph of one node that makes these calls."""

    def think(_: Any) -> Any:
        for call in calls:
            call()
        return {"xs": []}

    return chain({"name": "agent", **options}, think=think)


def seconds(span: Any) -> float:
    return (span.end_time - span.start_time) / 1e9


def test_model_call_takes_as_long_as_its_span(measured: Measured, spans: Any, colour: Colour) -> None:
    """Which kind of call, of whom and of which model, where in which graph; never which call."""
    colour.invoke(agent(model), {})

    point = measured.one(DURATION)
    assert (point.unit, point.count, point.bounds) == ("s", 1, CALL_BUCKETS)
    assert point.attributes == ANSWERED
    assert point.sum == seconds(spans.one("chat m"))
    assert not measured.of(FIRST_CHUNK)
    assert not measured.of(NEXT_CHUNKS)


def test_tokens_are_counted_as_the_model_counts_them(measured: Measured, colour: Colour) -> None:
    """Cached and reasoning tokens are parts of the totals, in counters of their own."""
    colour.invoke(agent(model, model), {})

    counters = {point.name.removeprefix(USAGE): point for point in measured.all() if point.name.startswith(USAGE)}
    assert {name: point.sum for name, point in counters.items()} == {
        "input_tokens": 100,
        "output_tokens": 60,
        "cache_read.input_tokens": 40,
        "cache_write.input_tokens": 20,
        "reasoning.output_tokens": 14,
    }
    for point in counters.values():
        assert (point.unit, point.bounds) == ("{token}", ())
        assert point.attributes == {**ANSWERED, "gen_ai.token.modality": "unknown"}
    for what, total in [("input", 100), ("output", 60)]:
        point = measured.one(f"gen_ai.client.inference.operation.{what}_tokens")
        assert (point.unit, point.count, point.sum, point.bounds) == ("{token}", 2, total, TOKEN_BUCKETS)
        assert point.attributes == ANSWERED


def test_answer_that_tells_no_usage_counts_no_tokens(measured: Measured, colour: Colour) -> None:
    """Absent, and not zero."""
    colour.invoke(agent(lambda: model(AIMessage("hello"))), {})

    assert measured.one(DURATION).attributes == CALLED
    assert not [name for name in measured.names() if "tokens" in name]


def test_streamed_answer_is_measured_chunk_by_chunk(measured: Measured, spans: Any, colour: Colour) -> None:
    """The first chunk's time is the span's; each later one is a measurement."""
    colour.invoke(agent(lambda: model(chunks=5)), {})

    first, later = measured.one(FIRST_CHUNK), measured.one(NEXT_CHUNKS)
    assert (first.unit, first.count, first.bounds) == ("s", 1, CALL_BUCKETS)
    assert first.attributes == ANSWERED
    span = spans.one("chat m")
    assert first.sum == span.attributes["gen_ai.response.time_to_first_chunk"]
    assert (later.unit, later.count, later.bounds) == ("s", 4, CALL_BUCKETS)
    assert later.attributes == CALLED
    assert 0 <= first.sum + later.sum <= seconds(span)


def test_exemplars_of_calls_name_the_calls_spans(measured: Measured, spans: Any, colour: Colour) -> None:
    """Chunks and tokens included, however many: no exemplar is of the task's span, in which the chunks come."""
    colour.invoke(agent(lambda: model(chunks=20), tool), {})

    chat, lookup = (spans.one(name).context.span_id for name in ("chat m", "execute_tool lookup"))
    found = {point.name: {exemplar.span_id for exemplar in point.exemplars} for point in measured.all()}
    assert [found[name] for name in (DURATION, FIRST_CHUNK, NEXT_CHUNKS, INPUT_TOKENS)] == [{chat}] * 4
    assert found[TOOL] == {lookup}


def test_failed_model_call_has_its_spans_error_type(measured: Measured, spans: Any, colour: Colour) -> None:
    """A node that catches the error is well, and so is its run."""
    colour.invoke(agent(lambda: model(TimeoutError(), chunks=1)), {})

    expected = {**CALLED, "error.type": "TimeoutError"}
    assert measured.one(DURATION).attributes == expected
    assert measured.one(FIRST_CHUNK).attributes == expected
    assert spans.one("chat m").attributes["error.type"] == "TimeoutError"
    assert [point.name for point in measured.all() if "error.type" in point.attributes] == [FIRST_CHUNK, DURATION]


def test_tool_call(measured: Measured, spans: Any, colour: Colour) -> None:
    """By the tool's name; neither the call's id nor what it was given."""
    colour.invoke(agent(tool), {})

    point = measured.one(TOOL)
    assert (point.unit, point.count, point.bounds) == ("s", 1, CALL_BUCKETS)
    assert point.attributes == {**WHERE, "gen_ai.tool.name": "lookup", "gen_ai.tool.type": "function"}
    assert point.sum == seconds(spans.one("execute_tool lookup"))


def test_tool_that_fails_and_tool_that_asks(measured: Measured, colour: Colour) -> None:
    """An error has a type; a question is none."""
    colour.invoke(agent(lambda: tool(KeyError("k")), lambda: tool(GraphInterrupt(()))), {})

    failed, asking = sorted(measured.of(TOOL), key=lambda point: "error.type" not in point.attributes)
    assert failed.attributes["error.type"] == "KeyError"
    assert "error.type" not in asking.attributes
    assert asking.attributes["tracegraph.call.status"] == "interrupted"


def test_calls_of_a_run_count_those_inside_it(measured: Measured, colour: Colour) -> None:
    """A graph's calls are what an invocation of it costs, subgraphs included."""
    inner = agent(model, tool)

    def outer(state: Any) -> Any:
        model()
        return inner.invoke(state)

    async def async_outer(state: Any) -> Any:
        model()
        return await inner.ainvoke(state)

    app = chain({"name": "outer"}, outer=outer if colour is SYNC else async_outer, rest=says("x"))
    colour.invoke(app, {})

    for what, unit, inside, all_of_them in [
        ("inference_calls", "{inference_call}", 1, 2),
        ("tool_calls", "{tool_call}", 1, 1),
    ]:
        name = f"gen_ai.invoke_workflow.{what}"
        mine, whole = (measured.one(name, gen_ai_workflow_name=graph) for graph in ("agent", "outer"))
        assert (mine.unit, mine.bounds) == (unit, CALL_COUNT_BUCKETS)
        assert (mine.count, mine.sum, whole.count, whole.sum) == (1, inside, 1, all_of_them)
        assert mine.attributes == {"gen_ai.workflow.name": "agent", "tracegraph.nested": True}
        assert whole.attributes == {"gen_ai.workflow.name": "outer"}


def test_langchain_models_are_measured_once(measured: Measured, colour: Colour) -> None:
    """They report through a manager of their own, streamed or not."""

    def think(_: Any) -> Any:
        GenericFakeChatModel(messages=iter([LangChainMessage("a b c")])).invoke("hi")
        return {"xs": []}

    async def async_think(_: Any) -> Any:
        fake = GenericFakeChatModel(messages=iter([LangChainMessage("a b c")]))
        return {"xs": [part.content async for part in fake.astream("hi")]}

    colour.invoke(chain({"name": "agent"}, think=think if colour is SYNC else async_think), {})

    assert measured.one(DURATION).count == 1
    assert measured.one("gen_ai.invoke_workflow.inference_calls").sum == 1
    if colour is ASYNC:
        assert measured.one(NEXT_CHUNKS).count >= 4  # "a", " ", "b", " ", "c"


FORBIDDEN_VALUES = ("t", "call-7", "secret", "found")


def test_no_id_and_no_content_on_any_point(measured: Measured, spans: Any, colour: Colour) -> None:
    """Each attribute is one of a short closed list, and none has the value of an id."""
    app = agent(lambda: model(chunks=2), tool, checkpointer=InMemorySaver())
    colour.invoke(app, {}, THREAD)

    allowed = {
        "gen_ai.workflow.name", "gen_ai.step.name", "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model",
        "gen_ai.response.model", "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.token.modality", "tracegraph.run.status",
        "tracegraph.task.status", "tracegraph.superstep.status",
    }  # fmt: skip
    ids = {str(value) for span in spans.finished for key, value in span.attributes.items() if key.endswith(("id", ".path"))}
    assert len(ids) > 4
    for point in measured.all():
        assert point.attributes.keys() <= allowed
        assert not ids & {str(value) for value in point.attributes.values()}
        assert not set(FORBIDDEN_VALUES) & set(point.attributes.values())
