"""Spans of what nodes call: one a call, below the node that made it, with the usage that came last."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Annotated, Any, TypedDict

import pytest
from colours import ASYNC, Colour
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, LLMResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from scripted_models import ScriptedModel
from spans import Trace

from tracegraph.config import get_config
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import semconv
from tracegraph.telemetry.model_calls import model_answer

USAGE = {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14, "output_token_details": {"reasoning": 2}}


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


class Reported(BaseChatModel):
    """A LangChain model that streams three words and reports usage with the last one, as providers do."""

    model: str = "reporter-1"

    @property
    def _llm_type(self) -> str:
        return "reported"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        message = AIMessage(
            "a b c", usage_metadata=USAGE, response_metadata={"finish_reason": "stop", "model_name": "reporter-1-7"}
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for word in "abc":
            usage = USAGE if word == "c" else None
            chunk = ChatGenerationChunk(message=AIMessageChunk(word, usage_metadata=usage))
            if run_manager is not None:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(page_content=query)]


@tool
def look(what: str) -> str:
    """Ask a model."""
    return str(Reported().invoke(what).content)


def parallel(**nodes: Any) -> Any:
    """Return a graph whose nodes run at once."""
    graph = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile()


def parent(trace: Trace, span: Any) -> str:
    return trace.ancestors(span)[0]


def test_scripted_model_streams_in_nodes_side_by_side(trace: Trace, colour: Colour) -> None:
    """A span each, below its own node; the usage that came with the last piece stands on it."""

    def node(usage: int) -> Any:
        model = ScriptedModel("a", "b", usage={"input_tokens": usage, "output_tokens": 2, "total_tokens": usage + 2}, model="m")
        return lambda state: {"said": [str(piece.content) for piece in model.stream([])]}

    colour.invoke(parallel(one=node(1), two=node(2), three=node(3)), {"said": []})

    spans = trace.named("chat m")
    assert {(parent(trace, span), span.attributes[semconv.USAGE_INPUT_TOKENS]) for span in spans} == {
        ("run_step one", 1), ("run_step two", 2), ("run_step three", 3),
    }  # fmt: skip
    assert [span.attributes[semconv.STREAM_CHUNKS] for span in spans] == [2, 2, 2]
    assert {span.attributes[semconv.PROVIDER_NAME] for span in spans} == {"_OTHER"}


def test_usage_is_taken_from_the_last_piece_if_the_answer_has_none(trace: Trace) -> None:
    """The model hands back its text alone."""

    def node(state: State) -> State:
        model = ScriptedModel("a", "b", usage={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9})
        (run,) = get_config()["callbacks"].on_chat_model_start({"name": "plain"}, [[]])
        for piece in model._pieces():
            run.on_llm_new_token(piece.content, chunk=piece)
        run.on_llm_end("ab")
        return {"said": ["ab"]}

    parallel(a=node).invoke({"said": []})

    (span,) = trace.named("chat plain")
    assert (span.attributes[semconv.USAGE_INPUT_TOKENS], span.attributes[semconv.USAGE_OUTPUT_TOKENS]) == (7, 2)


def test_stream_that_breaks_is_an_error_that_says_what_came(trace: Trace) -> None:
    """The answer never ended, so its finish reason is an error; how many pieces there were is known."""

    def node(state: State) -> State:
        return {"said": [str(piece.content) for piece in ScriptedModel("a", "b", "c", fails_after=2).stream([])]}

    with pytest.raises(ConnectionError):
        parallel(a=node).invoke({"said": []})

    (span,) = trace.named("chat scripted")
    assert span.attributes[semconv.ERROR_TYPE] == "ConnectionError"
    assert span.attributes[semconv.RESPONSE_FINISH_REASONS] == ("error",)
    assert span.attributes[semconv.STREAM_CHUNKS] == 2
    assert semconv.USAGE_OUTPUT_TOKENS not in span.attributes


def test_stream_that_a_node_leaves_is_no_error_and_says_what_came(trace: Trace) -> None:
    """Nobody announces the end; the span ends with its node."""

    def node(state: State) -> State:
        stream = ScriptedModel("a", "b", "c").stream([])
        held.append(stream)
        return {"said": [str(next(stream).content)]}

    held: list[Any] = []
    parallel(a=node).invoke({"said": []})

    (span,) = trace.named("chat scripted")
    assert span.attributes[semconv.CALL_STATUS] == "abandoned"
    assert span.attributes[semconv.RESPONSE_FINISH_REASONS] == ("error",)
    assert span.attributes[semconv.STREAM_CHUNKS] == 1
    assert trace.errors == []


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_langchain_model_has_one_span_with_its_usage(trace: Trace, colour: Colour, call: str) -> None:
    """Invoked or streamed, in either colour: one span, one token count, the provider that the class names."""
    body = _asks_async(call) if colour is ASYNC else _asks(call)

    colour.invoke(parallel(a=body, b=body), {"said": []})

    spans = trace.named("chat")
    assert sorted(parent(trace, span) for span in spans) == ["run_step a", "run_step b"]
    for span in spans:
        assert span.name == "chat reporter-1"
        assert span.attributes[semconv.PROVIDER_NAME] == "reported"
        assert span.attributes[semconv.USAGE_INPUT_TOKENS] == 11
        assert span.attributes[semconv.USAGE_OUTPUT_TOKENS] == 3
        assert span.attributes[semconv.USAGE_REASONING_OUTPUT_TOKENS] == 2
        # LangChain adds an empty piece of its own, and makes an id up where the provider gave none.
        assert span.attributes.get(semconv.STREAM_CHUNKS) in ({3, 4} if call == "stream" else {None})
        assert semconv.RESPONSE_ID not in span.attributes


def _asks(call: str) -> Any:
    def body(state: State) -> State:
        model = Reported()
        return {
            "said": [
                "".join(str(piece.content) for piece in model.stream("x")) if call == "stream" else model.invoke("x").content
            ]
        }

    return body


def _asks_async(call: str) -> Any:
    async def pieces(stream: AsyncIterator[Any]) -> str:
        return "".join([str(piece.content) async for piece in stream])

    async def body(state: State) -> State:
        model = Reported()
        return {"said": [await pieces(model.astream("x")) if call == "stream" else (await model.ainvoke("x")).content]}

    return body


def test_model_that_reports_no_usage_has_none(trace: Trace, colour: Colour) -> None:
    """Absent, never 0: a sum over many runs must not take them for free."""

    def body(state: State) -> State:
        model = GenericFakeChatModel(messages=iter([AIMessage("hello there")]))
        return {"said": ["".join(str(piece.content) for piece in model.stream("x"))]}

    colour.invoke(parallel(a=body), {"said": []})

    (span,) = trace.named("chat")
    assert not [name for name in span.attributes if "usage" in name]
    assert span.attributes[semconv.PROVIDER_NAME] == "genericfakechatmodel"


def test_calls_in_calls_have_their_own_parents(trace: Trace, colour: Colour) -> None:
    """A tool that asks a model, a retriever and a model for texts: who called what is in the tree."""

    def body(state: State) -> State:
        look.invoke({"name": "look", "args": {"what": "x"}, "id": "c1", "type": "tool_call"})
        Shelf().invoke("query")
        return {"said": [FakeListLLM(responses=["text"]).invoke("prompt")]}

    colour.invoke(parallel(a=body), {"said": []})

    below = {span.name: parent(trace, span) for span in trace.ended if span.parent is not None}
    assert below.pop("chat reporter-1") == "execute_tool look"
    assert below.pop("text_completion FakeListLLM") == "run_step a"
    assert (below["execute_tool look"], below["retrieval"]) == ("run_step a", "run_step a")
    assert trace.named("execute_tool look")[0].attributes[semconv.TOOL_CALL_ID] == "c1"


def test_tools_side_by_side_in_worker_threads_stay_below_their_step(trace: Trace) -> None:
    """Threads that copy the node's context, as executors of tool calls do."""

    def body(state: State) -> State:
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(copy_context().run, look.invoke, {"what": str(n)}) for n in range(4)]
            return {"said": [call.result() for call in calls]}

    parallel(a=body, b=body).invoke({"said": []})

    tools = trace.named("execute_tool look")
    assert sorted(parent(trace, span) for span in tools) == ["run_step a"] * 4 + ["run_step b"] * 4
    assert [parent(trace, span) for span in trace.named("chat reporter-1")] == ["execute_tool look"] * 8
    assert len(trace.trace_ids) == 1


def test_async_tools_side_by_side_stay_below_their_step(trace: Trace) -> None:
    """Tasks of one node, gathered."""

    async def body(state: State) -> State:
        return {"said": list(await asyncio.gather(*(look.ainvoke({"what": str(n)}) for n in range(4))))}

    asyncio.run(parallel(a=body, b=body).ainvoke({"said": []}))

    assert sorted(parent(trace, span) for span in trace.named("execute_tool look")) == ["run_step a"] * 4 + ["run_step b"] * 4
    assert len(trace.trace_ids) == 1


ASKED = {
    "temperature": (0, semconv.REQUEST_TEMPERATURE, 0.0),
    "top_p": (0.9, semconv.REQUEST_TOP_P, 0.9),
    "top_k": (40, semconv.REQUEST_TOP_K, 40),
    "max_tokens": (256, semconv.REQUEST_MAX_TOKENS, 256),
    "max_completion_tokens": (128, semconv.REQUEST_MAX_TOKENS, 128),
    "frequency_penalty": (0.5, semconv.REQUEST_FREQUENCY_PENALTY, 0.5),
    "presence_penalty": (1, semconv.REQUEST_PRESENCE_PENALTY, 1.0),
    "stop": ("END", semconv.REQUEST_STOP_SEQUENCES, ("END",)),
    "stop_sequences": (["END", "."], semconv.REQUEST_STOP_SEQUENCES, ("END", ".")),
    "seed": (7, semconv.REQUEST_SEED, 7),
    "n": (2, semconv.REQUEST_CHOICE_COUNT, 2),
    "stream": (True, semconv.REQUEST_STREAM, True),
    "response_format": ({"type": "json_schema", "json_schema": {}}, semconv.OUTPUT_TYPE, "json"),
    "model_name": ("m-2", semconv.REQUEST_MODEL, "m-2"),
    "provider": ("mistralai", semconv.PROVIDER_NAME, "mistral_ai"),
    "invocation_params": ({"seed": 8}, semconv.REQUEST_SEED, 8),
}


@pytest.mark.parametrize("key", ASKED)
def test_what_a_model_is_asked_for_is_on_its_span(trace: Trace, key: str) -> None:
    """In the conventions' types, whatever the parameter's spelling."""
    given, name, wanted = ASKED[key]
    parallel(a=lambda state: {"said": [ScriptedModel("a", **{key: given}).invoke([]).content]}).invoke({"said": []})

    (span,) = trace.named("chat")
    assert span.attributes[name] == wanted
    assert type(span.attributes[name]) is type(wanted)


@pytest.mark.parametrize(
    ("key", "given"),
    [("n", 1), ("stream", False), ("seed", True), ("stop", []), ("stop", [1]), ("temperature", "hot"), ("response_format", "x")],
)
def test_what_a_model_is_not_asked_for_is_not(trace: Trace, key: str, given: Any) -> None:
    """A default, a no, or a value of the wrong kind: nothing is better than something wrong."""
    parallel(a=lambda state: {"said": [ScriptedModel("a", **{key: given}).invoke([]).content]}).invoke({"said": []})

    (span,) = trace.named("chat")
    assert {name for name in span.attributes if name.startswith("gen_ai.request") or name == semconv.OUTPUT_TYPE} == set()


def test_choices_have_a_finish_reason_each() -> None:
    """By position; with one of them unknown there is none, since the others would stand at the wrong place."""

    def choice(reason: str | None) -> ChatGeneration:
        about = {} if reason is None else {"finish_reason": reason}
        return ChatGeneration(message=AIMessage("x", response_metadata=about))

    both = LLMResult(generations=[[choice("stop"), choice("length")]])
    one = LLMResult(generations=[[choice("stop"), choice(None)]])
    texts = LLMResult(generations=[[]], llm_output={"token_usage": {"prompt_tokens": 4, "completion_tokens": 2}})

    assert model_answer(both)[semconv.RESPONSE_FINISH_REASONS] == ("stop", "length")
    assert semconv.RESPONSE_FINISH_REASONS not in model_answer(one)
    assert model_answer(texts) == {semconv.USAGE_INPUT_TOKENS: 4, semconv.USAGE_OUTPUT_TOKENS: 2}
    assert model_answer(None) == {}
