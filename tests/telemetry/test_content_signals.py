"""Content in the signals of real runs, on both drivers: nowhere by default, and where and as far as the policy says."""

from __future__ import annotations

import asyncio
import json
import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainAIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from scripted_models import ScriptedModel
from signals import Signals

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_config
from tracegraph.graph import START, StateGraph
from tracegraph.messages import HumanMessage, SystemMessage
from tracegraph.telemetry.content import SECRETS, ContentPolicy, emails
from tracegraph.types import Command, RetryPolicy, Send, TracePolicy, interrupt, omit_payload

pytestmark = pytest.mark.content_on_spans("content is asked for")

CANARY = "canary-7f3a"


class State(TypedDict, total=False):
    said: Annotated[list[Any], operator.add]
    n: int


class Library(BaseRetriever):
    """A retriever of LangChain's that always finds the same document."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(f"{query} found {CANARY}", id="d1", metadata={"source": CANARY})]


@tool
def lookup(word: str) -> str:
    """Look a word up."""
    return f"{word} means {CANARY}"


def ask_everyone(_: State) -> State:
    """Call a model of ours and one of LangChain's, a tool and a retriever."""
    ScriptedModel("to ", CANARY).invoke([SystemMessage(f"be {CANARY}"), HumanMessage(f"hi {CANARY}", id="m1")])
    fake = GenericFakeChatModel(messages=iter([LangChainAIMessage(f"answer {CANARY}")]))
    answer = fake.invoke(f"question {CANARY}", get_config())
    lookup.invoke({"word": CANARY}, get_config())
    Library().invoke(f"query {CANARY}", get_config())
    (run,) = get_config()["callbacks"].on_llm_start({"name": "old"}, [f"prompt {CANARY}"])
    run.on_llm_end(f"completion {CANARY}")
    return {"said": [str(answer.content)]}


def everything_app() -> Any:
    """Return a graph that has content wherever content can be."""
    graph = StateGraph(State)
    child = StateGraph(State).add_node("inner", lambda _: {"said": [CANARY]}).add_edge(START, "inner").compile(name="child")
    tries = iter(range(9))

    def flaky(_: State) -> State:
        if next(tries) % 2 == 0:
            raise ConnectionError("try again")
        return {"said": [CANARY]}

    def wait(_: State) -> State:
        return {"said": [interrupt({"question": CANARY})]}

    graph.add_node("ask", ask_everyone, metadata={"note": CANARY})
    graph.add_node("work", lambda packet: {"said": [packet]})
    graph.add_node("child", child)
    graph.add_node("flaky", flaky, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.0))
    graph.add_node("wait", wait)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda _: [Send("work", {"packet": CANARY})] * 2, ["work"])
    graph.add_edge("work", "child")
    graph.add_edge("child", "flaky")
    graph.add_edge("flaky", "wait")
    return graph.compile(name="everything", checkpointer=InMemorySaver())


def run_everything(colour: Colour) -> None:
    app = everything_app()
    config = {"configurable": {"thread_id": "t", "secret": CANARY}, "metadata": {"user": CANARY}}
    colour.invoke(app, {"said": [CANARY], "n": 1}, config)
    colour.invoke(app, Command(resume=CANARY), config)


def test_by_default_no_content_is_in_any_signal(signals: Signals, colour: Colour) -> None:
    """State, messages, prompts, arguments, results, documents, metadata, questions and answers: none of it."""
    with signals.recorded():
        run_everything(colour)

    assert {"chat scripted", "execute_tool lookup", "retrieval", "run_step wait"} <= {span.name for span in signals.spans}
    assert CANARY not in signals.everything()
    assert signals.logs == []


def test_a_model_call_s_messages_are_on_its_span(signals: Signals, colour: Colour) -> None:
    """In the shape of the conventions, as JSON; also of a streamed answer, and of LangChain's models."""
    with signals.recorded("SPAN_ONLY"):
        run_everything(colour)

    assert signals.json("chat scripted", "gen_ai.input.messages") == [
        {"role": "system", "parts": [{"type": "text", "content": f"be {CANARY}"}]},
        {"role": "user", "parts": [{"type": "text", "content": f"hi {CANARY}"}]},
    ]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": f"to {CANARY}"}]}]
    assert signals.json("chat scripted", "gen_ai.output.messages") == answer
    (fake,) = [s.name for s in signals.spans if s.name.startswith("chat ") and s.name != "chat scripted"]
    assert signals.json(fake, "gen_ai.input.messages")[0]["parts"] == [{"type": "text", "content": f"question {CANARY}"}]
    assert signals.json(fake, "gen_ai.output.messages")[0]["parts"] == [{"type": "text", "content": f"answer {CANARY}"}]
    assert signals.json("text_completion old", "gen_ai.input.messages")[0]["parts"][0]["content"] == f"prompt {CANARY}"
    assert signals.json("text_completion old", "gen_ai.output.messages")[0]["parts"][0]["content"] == f"completion {CANARY}"
    assert signals.logs == []


def test_tools_and_retrievers_have_their_content_too(signals: Signals, colour: Colour) -> None:
    """Arguments and results, queries and documents."""
    with signals.recorded("SPAN_ONLY"):
        run_everything(colour)

    assert signals.json("execute_tool lookup", "gen_ai.tool.call.arguments") == {"word": CANARY}
    assert signals.json("execute_tool lookup", "gen_ai.tool.call.result") == f"{CANARY} means {CANARY}"
    assert signals.span("retrieval")["gen_ai.retrieval.query.text"] == f"query {CANARY}"
    assert signals.json("retrieval", "gen_ai.retrieval.documents") == [
        {"id": "d1", "content": f"query {CANARY} found {CANARY}", "metadata": {"source": CANARY}}
    ]


def test_runs_and_nodes_have_their_inputs_and_outputs(signals: Signals, colour: Colour) -> None:
    """As JSON; nested runs too. An interrupted task has an input and no output."""
    with signals.recorded("SPAN_ONLY"):
        run_everything(colour)

    assert signals.json("run_step ask", "tracegraph.task.input") == {"said": [CANARY], "n": 1}
    assert signals.json("run_step ask", "tracegraph.task.output") == {"said": [f"answer {CANARY}"]}
    assert "tracegraph.run.input" in signals.span("invoke_workflow child")
    runs = [dict(s.attributes or {}) for s in signals.spans if s.name == "invoke_workflow everything"]
    assert json.loads(runs[0]["tracegraph.run.input"]) == {"said": [CANARY], "n": 1}
    assert json.loads(runs[1]["tracegraph.run.input"])["resume"] == CANARY
    assert json.loads(runs[1]["tracegraph.run.output"])["said"][-1] == CANARY
    waits = [s.attributes or {} for s in signals.spans if s.name == "run_step wait"]
    assert ["tracegraph.task.output" in attributes for attributes in waits] == [False, True]


def test_log_events_have_content_in_its_full_structured_form(signals: Signals, colour: Colour) -> None:
    """One event for each operation, in its span; spans have nothing."""
    with signals.recorded("EVENT_ONLY"):
        run_everything(colour)

    event = signals.log("gen_ai.client.inference.operation.details", gen_ai__operation__name="text_completion")
    assert event["gen_ai.input.messages"] == [{"role": "user", "parts": [{"type": "text", "content": f"prompt {CANARY}"}]}]
    assert event["gen_ai.conversation.id"] == "t"
    tool_event = signals.log("tracegraph.operation.details", gen_ai__tool__name="lookup")
    assert tool_event["gen_ai.tool.call.arguments"] == {"word": CANARY}
    assert signals.log("tracegraph.operation.details", gen_ai__step__name="ask")["tracegraph.task.input"] == {
        "said": [CANARY],
        "n": 1,
    }
    (span,) = [s for s in signals.spans if s.name == "execute_tool lookup"]
    (record,) = [log for log in signals.logs if (log.attributes or {}).get("gen_ai.tool.name") == "lookup"]
    assert (record.trace_id, record.span_id) == (span.context.trace_id, span.context.span_id)
    assert record.timestamp == span.end_time
    assert CANARY not in json.dumps([dict(s.attributes or {}) for s in signals.spans], default=repr)


def test_spans_and_events_together(signals: Signals, colour: Colour) -> None:
    """What the span had to cut, the event has whole."""
    with signals.recorded(capture="SPAN_AND_EVENT", budget_bytes=64):
        colour.invoke(StateGraph(State).add_node("a", lambda s: {"n": 2}).add_edge(START, "a").compile(), {"said": ["x" * 500]})

    attributes = signals.span("run_step a")
    assert len(attributes["tracegraph.task.input"].encode()) <= 64
    assert json.loads(attributes["tracegraph.task.input"])["said"][0].endswith("…(cut)")
    assert attributes["tracegraph.truncated"] == ("tracegraph.task.input",)
    assert signals.log("tracegraph.operation.details", gen_ai__step__name="a")["tracegraph.task.input"] == {"said": ["x" * 500]}


def test_events_and_content_survive_sampling(colour: Colour) -> None:
    """A run that is sampled out has no spans; its log events do not depend on that."""
    signals = Signals(ALWAYS_OFF)
    with signals.recorded("SPAN_AND_EVENT"):
        run_everything(colour)

    assert signals.spans == ()
    event = signals.log("gen_ai.client.inference.operation.details", gen_ai__operation__name="text_completion")
    assert event["gen_ai.output.messages"][0]["parts"][0]["content"] == f"completion {CANARY}"
    record = next(log for log in signals.logs if (log.attributes or {}).get("gen_ai.step.name") == "wait")
    assert record.trace_id


def test_span_only_and_sampled_out_records_nothing(colour: Colour) -> None:
    """There is nothing that content could go to."""
    signals = Signals(ALWAYS_OFF)
    with signals.recorded("SPAN_ONLY"):
        run_everything(colour)

    assert (signals.spans, signals.logs) == ((), [])


def test_state_can_be_left_out(signals: Signals, colour: Colour) -> None:
    """Only what models, tools and retrievers are asked and answer."""
    with signals.recorded(capture="SPAN_AND_EVENT", state=False):
        run_everything(colour)

    assert not any(
        key.startswith(("tracegraph.task.in", "tracegraph.task.out")) for s in signals.spans for key in s.attributes or {}
    )
    assert "gen_ai.input.messages" in signals.span("chat scripted")
    assert {log.attributes["gen_ai.operation.name"] for log in signals.logs} == {
        "chat", "text_completion", "execute_tool", "retrieval"
    }  # fmt: skip


@pytest.mark.parametrize("on", [False, True])
def test_tool_definitions_have_a_switch_of_their_own(signals: Signals, colour: Colour, on: bool) -> None:
    """They are large, and the same in every call."""

    def node(_: State) -> State:
        tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
        params = {"tools": tools, "instructions": "be brief"}
        (run,) = get_config()["callbacks"].on_chat_model_start({"name": "m"}, [["hi"]], **params)
        run.on_llm_end("hello")
        return {}

    with signals.recorded(capture="SPAN_ONLY", tool_definitions=on):
        colour.invoke(StateGraph(State).add_node("a", node).add_edge(START, "a").compile(), {"n": 1})

    attributes = signals.span("chat m")
    assert ("gen_ai.tool.definitions" in attributes) is on
    assert json.loads(attributes["gen_ai.system_instructions"]) == [{"type": "text", "content": "be brief"}]


def test_no_redacted_secret_is_in_any_signal(signals: Signals, colour: Colour) -> None:
    """Wherever the run had it."""
    with signals.recorded(capture="SPAN_AND_EVENT", redactors=(*SECRETS, lambda value, where: _without(value))):
        run_everything(colour)

    assert CANARY not in signals.everything()
    assert signals.json("execute_tool lookup", "gen_ai.tool.call.arguments") == {"word": "*"}


def _without(value: Any) -> Any:
    return value.replace(CANARY, "*") if isinstance(value, str) else value


def test_content_for_which_a_redactor_fails_is_left_out(
    signals: Signals, colour: Colour, caplog: pytest.LogCaptureFixture
) -> None:
    """Never unredacted; the span says which attributes are missing; it is logged once; the run does not notice."""

    def fails(value: Any, where: Any) -> Any:
        if where.attribute == "gen_ai.input.messages":
            raise ValueError(value)
        return _without(value)

    with signals.recorded(capture="SPAN_AND_EVENT", redactors=(fails,)):
        run_everything(colour)

    assert CANARY not in signals.everything() + caplog.text
    attributes = signals.span("chat scripted")
    assert attributes["tracegraph.left_out"] == ("gen_ai.input.messages",)
    assert "gen_ai.input.messages" not in attributes
    assert "gen_ai.output.messages" in attributes
    assert len([r for r in caplog.records if r.name == "tracegraph.telemetry"]) == 1


@dataclass
class Person:
    name: str


def test_a_node_s_trace_policy_rewrites_what_is_recorded_of_it(signals: Signals, colour: Colour) -> None:
    """Of its own inputs and outputs, before redaction; other nodes' and the state itself stay as they are."""
    graph = StateGraph(State)
    hide = TracePolicy(process_inputs=omit_payload, process_outputs=lambda out: {"count": len(out["said"]), "to": "a@b.org"})
    graph.add_node("hidden", lambda _: {"said": [CANARY]}, trace_policy=hide)
    graph.add_node("shown", lambda s: {"n": len(s["said"])})
    graph.add_edge(START, "hidden").add_edge("hidden", "shown")
    with signals.recorded(capture="SPAN_AND_EVENT", redactors=(emails,)):
        result = colour.invoke(graph.compile(), {"n": 1})

    assert result["said"] == [CANARY]
    assert signals.json("run_step hidden", "tracegraph.task.input") == {}
    assert signals.json("run_step hidden", "tracegraph.task.output") == {"count": 1, "to": "[redacted]"}
    assert signals.log("tracegraph.operation.details", gen_ai__step__name="hidden")["tracegraph.task.input"] == {}
    assert signals.json("run_step shown", "tracegraph.task.input")["said"] == [CANARY]


def test_the_trace_policy_of_a_node_in_a_subgraph_counts(signals: Signals, colour: Colour) -> None:
    """Each run has the policies of its own graph."""
    inner = StateGraph(State).add_node("a", lambda _: {"n": 2}, trace_policy=TracePolicy(process_outputs=omit_payload))
    outer = StateGraph(State).add_node("sub", inner.add_edge(START, "a").compile()).add_node("a", lambda _: {"n": 3})
    with signals.recorded("SPAN_ONLY"):
        colour.invoke(outer.add_edge(START, "sub").add_edge("sub", "a").compile(), {"n": 1})

    outputs = [json.loads((s.attributes or {})["tracegraph.task.output"]) for s in signals.spans if s.name == "run_step a"]
    assert outputs == [{}, {"n": 3}]


def test_a_trace_policy_that_raises_leaves_the_value_out(
    signals: Signals, colour: Colour, caplog: pytest.LogCaptureFixture
) -> None:
    """LangGraph records the raw value then; that is the one thing the policy was to prevent."""

    def broken(_: Any) -> Any:
        raise KeyError(CANARY)

    graph = StateGraph(State).add_node("a", lambda s: {"n": 2}, trace_policy=TracePolicy(process_inputs=broken))
    with signals.recorded("SPAN_ONLY"):
        colour.invoke(graph.add_edge(START, "a").compile(), {"n": 1})

    attributes = signals.span("run_step a")
    assert attributes["tracegraph.left_out"] == ("tracegraph.task.input",)
    assert json.loads(attributes["tracegraph.task.output"]) == {"n": 2}
    assert "broken failed with KeyError" in caplog.text
    assert CANARY not in caplog.text


def test_values_are_taken_when_they_are_seen(signals: Signals, colour: Colour) -> None:
    """What a node does to its input later is not what it was given."""

    def spoil(state: State) -> State:
        state["said"].append("later")
        return {"n": 2}

    with signals.recorded("SPAN_AND_EVENT"):
        colour.invoke(StateGraph(State).add_node("a", spoil).add_edge(START, "a").compile(), {"said": ["before"]})

    assert signals.json("run_step a", "tracegraph.task.input") == {"said": ["before"]}
    assert signals.log("tracegraph.operation.details", gen_ai__step__name="a")["tracegraph.task.input"] == {"said": ["before"]}


def test_a_span_has_no_more_content_than_the_policy_says(signals: Signals, colour: Colour) -> None:
    """Attributes beyond the limit are named as cut; log events have them."""
    with signals.recorded(capture="SPAN_AND_EVENT", max_attributes=1):
        run_everything(colour)

    attributes = signals.span("chat scripted")
    assert "gen_ai.output.messages" not in attributes
    assert attributes["tracegraph.truncated"] == ("gen_ai.output.messages",)
    assert all(len(span.attributes or {}) < 60 for span in signals.spans)


def test_a_reader_that_leaves_early_leaves_what_is_known(signals: Signals) -> None:
    """Calls that nobody ends have their inputs on spans and events, and no attribute is set on an ended span."""

    def node(_: State) -> State:
        get_config()["callbacks"].on_chat_model_start({"name": "m"}, [["hi"]])
        return {"n": 1}

    graph = StateGraph(State).add_node("a", node).add_node("b", lambda _: {"n": 2}).add_edge(START, "a").add_edge("a", "b")
    with signals.recorded("SPAN_AND_EVENT"):
        parts = graph.compile().stream({"n": 0}, stream_mode="updates")
        next(parts)
        parts.close()

    assert signals.json("chat m", "gen_ai.input.messages")[0]["parts"] == [{"type": "text", "content": "hi"}]
    assert signals.log("gen_ai.client.inference.operation.details")["gen_ai.input.messages"]


def test_runs_side_by_side_do_not_mix_their_content(signals: Signals) -> None:
    """Each root run records its own."""
    app = StateGraph(State).add_node("a", lambda s: {"n": s["n"] + 1}).add_edge(START, "a").compile()

    async def both() -> None:
        await asyncio.gather(*(app.ainvoke({"n": n}) for n in range(20)))

    with signals.recorded("SPAN_ONLY"):
        asyncio.run(both())

    pairs = [
        (json.loads(s.attributes["tracegraph.task.input"])["n"], json.loads(s.attributes["tracegraph.task.output"])["n"])
        for s in signals.spans if s.name == "run_step a" and s.attributes
    ]  # fmt: skip
    assert sorted(pairs) == [(n, n + 1) for n in range(20)]


def test_a_policy_object_is_taken_as_it_is(signals: Signals, colour: Colour) -> None:
    """One policy for as many runs as one likes."""
    policy = ContentPolicy(capture="SPAN_ONLY")
    with signals.recorded(policy):
        app = StateGraph(State).add_node("a", lambda s: {"n": 1}).add_edge(START, "a").compile()
        colour.invoke(app, {"said": [Person("Ada")]})
        colour.invoke(app, {"said": []})

    inputs = [json.loads((s.attributes or {})["tracegraph.task.input"]) for s in signals.spans if s.name == "run_step a"]
    assert inputs == [{"said": [{"name": "Ada"}]}, {"said": []}]
