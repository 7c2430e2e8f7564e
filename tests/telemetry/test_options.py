"""What setup() can be asked to say beyond the default: OpenInference, the released conventions, no model spans."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from colours import Colour
from opentelemetry.sdk.trace import TracerProvider
from scripted_models import ScriptedModel
from small_graphs import THREAD, State, chain, parallel

from tracegraph import END, START, Send, StateGraph
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_config
from tracegraph.errors import InvalidInputError
from tracegraph.messages import AIMessage
from tracegraph.telemetry import TelemetryOptions, setup

NODE_ID, NODE_NAME, PARENT_ID = "graph.node.id", "graph.node.name", "graph.node.parent_id"


@pytest.fixture
def telemetry(provider: TracerProvider) -> Iterator[Callable[..., Any]]:
    """Call setup() with the recording provider and the options given."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(setup(provider=provider, store=False, **options))


def walk(recorder: Any) -> dict[str, str | None]:
    """Return node id -> parent id of the tasks' spans."""
    return {
        span.attributes[NODE_ID]: span.attributes.get(PARENT_ID) for span in recorder.finished if span.name.startswith("run_step")
    }


def calls_everything(_: Any) -> dict[str, Any]:
    ScriptedModel("hello").invoke(["hi"])
    callbacks = get_config()["callbacks"]
    callbacks.on_tool_start({"name": "search"}, "x").on_tool_end("y")
    callbacks.on_retriever_start({"name": "docs"}, "x").on_retriever_end([])
    callbacks.on_memory_start("search_memory").on_memory_end([])
    callbacks.on_memory_start("upsert_memory").on_memory_end(count=1)
    return {"n": 1}


# -- OpenInference


def test_openinference_says_kind_and_session_on_every_span(recorder: Any, telemetry: Any, colour: Colour) -> None:
    """Phoenix sorts spans by kind and groups traces by session; the GenAI names stay."""
    telemetry(options=TelemetryOptions(profile="openinference"))
    colour.invoke(parallel({"checkpointer": InMemorySaver()}, a=calls_everything, b=lambda _: {"xs": [1]}), {}, THREAD)

    kinds = {span.name.split(" ")[0]: span.attributes["openinference.span.kind"] for span in recorder.finished}
    assert kinds == {
        "invoke_workflow": "CHAIN",
        "superstep": "CHAIN",
        "run_step": "CHAIN",
        "chat": "LLM",
        "execute_tool": "TOOL",
        "retrieval": "RETRIEVER",
        "search_memory": "RETRIEVER",
        "upsert_memory": "CHAIN",
    }
    assert {span.attributes["session.id"] for span in recorder.finished} == {"t"}
    assert {span.attributes["gen_ai.conversation.id"] for span in recorder.finished} == {"t"}


def test_openinference_walks_the_graph(recorder: Any, telemetry: Any, colour: Colour) -> None:
    """A node's parent is the node that made it run: along edges, by Send, in a loop, and into a subgraph."""
    telemetry(options=TelemetryOptions(profile="openinference"))
    inner = chain(search=lambda _: {"n": 1}, rank=lambda _: {"n": 2})
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("plan", lambda _: {"n": 0})
    graph.add_node("work", lambda _: {"xs": [1]})
    graph.add_node("research", inner)
    graph.add_node("write", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda _: [Send("work", {}), "research"], ["work", "research"])
    graph.add_edge("research", "write")
    graph.add_conditional_edges("write", lambda state: "write" if state["n"] < 4 else END, ["write", END])
    colour.invoke(graph.compile(), {})

    assert walk(recorder) == {
        "plan": None,
        "work": "plan",
        "research": "plan",
        "research:search": "research",
        "research:rank": "research:search",
        "write": "write",  # the last time; the first one's is below
    }
    writes = [span.attributes[PARENT_ID] for span in recorder.named("run_step write")]
    assert writes == ["research", "write"]
    assert recorder.one("run_step search").attributes[NODE_NAME] == "search"


def test_default_has_none_of_it(recorder: Any, telemetry: Any, colour: Colour) -> None:
    """It doubles attributes, so it is asked for."""
    telemetry()
    colour.invoke(parallel({"checkpointer": InMemorySaver()}, a=calls_everything, b=lambda _: {"xs": [1]}), {}, THREAD)

    keys = {key for span in recorder.finished for key in span.attributes}
    assert not {key for key in keys if key.startswith(("openinference.", "graph.", "session."))}


# -- conventions 1.41


USAGE = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10, "input_token_details": {"cache_creation": 4, "cache_read": 3}}


def spend(_: Any) -> dict[str, Any]:
    (run,) = get_config()["callbacks"].on_chat_model_start({"name": "m"}, [["hi"]])
    run.on_llm_end(AIMessage("x", usage_metadata=USAGE))
    return {"n": 1}


@pytest.mark.parametrize(
    ("semconv", "present", "absent"), [("1.41", "cache_creation", "cache_write"), ("latest", "cache_write", "cache_creation")]
)
def test_cached_tokens_are_called_as_in_the_version_asked_for(
    recorder: Any, telemetry: Any, colour: Colour, semconv: Any, present: str, absent: str
) -> None:
    """Dashboards in the field still read the released name."""
    telemetry(options=TelemetryOptions(semconv=semconv))
    colour.invoke(chain(a=spend), {})

    (span,) = (span for span in recorder.finished if span.name.startswith("chat"))
    assert span.attributes[f"gen_ai.usage.{present}.input_tokens"] == 4
    assert span.attributes["gen_ai.usage.cache_read.input_tokens"] == 3
    assert f"gen_ai.usage.{absent}.input_tokens" not in span.attributes


# -- model spans


def test_model_spans_can_be_left_to_others(recorder: Any, telemetry: Any, colour: Colour) -> None:
    """Tools and retrievers keep theirs, and what runs inside a model call lies below the node."""
    telemetry(options=TelemetryOptions(model_spans="never"))

    def body(_: Any) -> dict[str, Any]:
        (run,) = get_config()["callbacks"].on_chat_model_start({"name": "m"}, [["hi"]])
        run.on_llm_new_token("x")
        run.get_child().on_tool_start({"name": "inside"}, "x").on_tool_end("y")
        run.on_llm_end(AIMessage("x"))
        return {"n": 1}

    colour.invoke(chain(a=body, b=calls_everything), {})

    assert recorder.edges() == [
        (None, "invoke_workflow"),
        ("invoke_workflow", "run_step a"),
        ("invoke_workflow", "run_step b"),
        ("run_step a", "execute_tool inside"),
        ("run_step b", "execute_tool search"),
        ("run_step b", "retrieval"),
        ("run_step b", "search_memory"),
        ("run_step b", "upsert_memory"),
    ]


DOUBLED = """
import logging, sys
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typing import TypedDict
from tracegraph import START, StateGraph
from tracegraph.telemetry import TelemetryOptions, setup

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
setup(provider=provider, store=False, options=TelemetryOptions(model_spans=sys.argv[1]))

class State(TypedDict, total=False):
    n: int

usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
if "usage" in sys.argv:
    model = GenericFakeChatModel(messages=iter([AIMessage("x", usage_metadata=usage) for _ in range(3)]))
else:
    model = FakeListChatModel(responses=["x"])
graph = StateGraph(State).add_node("ask", lambda _: {"n": len(model.invoke("hi").content)}).add_edge(START, "ask").compile()
graph.invoke({})
LangChainInstrumentor().instrument(tracer_provider=provider)
exporter.clear()
graph.invoke({})
graph.invoke({})
spans = exporter.get_finished_spans()
if "usage" in sys.argv:
    counted = [s.attributes.get(key, 0) for s in spans for key in ("gen_ai.usage.input_tokens", "llm.token_count.prompt")]
    print(sorted(filter(None, counted)))
else:
    print(sorted(span.name for span in spans if span.name.startswith(("chat", "Fake"))))
"""


def doubled(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-c", DOUBLED, *arguments], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("model_spans", "names", "warnings"),
    [
        ("always", ["FakeListChatModel", "FakeListChatModel", "chat FakeListChatModel", "chat FakeListChatModel"], 1),
        ("never", ["FakeListChatModel", "FakeListChatModel"], 0),
    ],
)
def test_instrumentation_that_doubles_model_spans_is_named_once(model_spans: str, names: list[str], warnings: int) -> None:
    """A real one, switched on after a first run; with "never" each call has one span, theirs."""
    done = doubled(model_spans)
    assert done.stdout == f"{names}\n"
    lines = [line for line in done.stderr.splitlines() if line.startswith("tracegraph.telemetry WARNING")]
    assert len(lines) == warnings
    assert all("openinference.instrumentation.langchain" in line and 'model_spans="never"' in line for line in lines)


@pytest.mark.parametrize(("model_spans", "counts"), [("always", [5, 5, 5, 5]), ("never", [5, 5])])
def test_tokens_of_a_call_are_counted_on_one_span(model_spans: str, counts: list[int]) -> None:
    """Two calls beside a real instrumentation: with "never" each has its input tokens once, theirs."""
    assert doubled(model_spans, "usage").stdout == f"{counts}\n"


# -- how options are set


@pytest.mark.parametrize("options", [{"profile": "phoenix"}, {"semconv": "1.36"}, {"model_spans": "sometimes"}])
def test_option_that_does_not_exist_is_refused(options: dict[str, Any]) -> None:
    """Where it is written down; the message names those that do."""
    with pytest.raises(InvalidInputError, match=r"is no choice for telemetry; known: '\w+"):
        TelemetryOptions(**options)


def test_options_given_again_replace_those_before_and_end_with_the_handle(recorder: Any, telemetry: Any) -> None:
    """As a whole; a call that gives none keeps them, and after a shutdown everything is as at first."""
    handle = telemetry(options=TelemetryOptions(semconv="1.41"))
    telemetry()
    chain(a=spend).invoke({})
    telemetry(options=TelemetryOptions(profile="openinference"))
    chain(a=spend).invoke({})
    handle.shutdown()
    telemetry()
    chain(a=spend).invoke({})

    names = {"openinference.span.kind", "gen_ai.usage.cache_creation.input_tokens"}
    found = [names & set(span.attributes) for span in recorder.finished if span.name.startswith("chat")]
    assert found == [{"gen_ai.usage.cache_creation.input_tokens"}, {"openinference.span.kind"}, set()]
