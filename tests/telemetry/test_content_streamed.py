"""Content of answers that come in pieces: the whole answer, once, and no piece of it anywhere else."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from colours import ASYNC, SYNC, Colour
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainAIMessage
from langchain_core.messages import HumanMessage as LangChainHumanMessage
from scripted_models import ScriptedModel
from signals import Signals

from tracegraph.config import get_config
from tracegraph.graph import START, StateGraph
from tracegraph.messages import AIMessage, HumanMessage, ToolMessage

pytestmark = pytest.mark.content_on_spans("content is asked for")


class State(TypedDict, total=False):
    said: list[Any]


def ours(_: State) -> State:
    list(ScriptedModel("to be ", "or not ", "to be").stream([HumanMessage("that is")]))
    return {}


def langchains() -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([LangChainAIMessage("to be or not to be")]))


def langchains_sync(_: State) -> State:
    list(langchains().stream([LangChainHumanMessage("that is")], get_config()))
    return {}


async def langchains_async(_: State) -> State:
    async for _piece in langchains().astream([LangChainHumanMessage("that is")], get_config()):
        pass
    return {}


@pytest.mark.parametrize(
    ("colour", "node"),
    [(SYNC, ours), (ASYNC, ours), (SYNC, langchains_sync), (ASYNC, langchains_sync), (ASYNC, langchains_async)],
)
def test_a_streamed_answer_is_recorded_whole(colour: Colour, node: Any) -> None:
    """On the span and in the event; the pieces were counted and nothing else."""
    signals = Signals()
    with signals.recorded("SPAN_AND_EVENT"):
        colour.invoke(StateGraph(State).add_node("a", node).add_edge(START, "a").compile(), {"said": []})

    (name,) = [span.name for span in signals.spans if span.name.startswith("chat ")]
    (question,), (answer,) = signals.json(name, "gen_ai.input.messages"), signals.json(name, "gen_ai.output.messages")
    assert question == {"role": "user", "parts": [{"type": "text", "content": "that is"}]}
    assert (answer["role"], answer["parts"]) == ("assistant", [{"type": "text", "content": "to be or not to be"}])
    event = signals.log("gen_ai.client.inference.operation.details")
    assert event["gen_ai.output.messages"][0]["parts"] == answer["parts"]
    assert signals.span(name)["tracegraph.stream.chunks"] > 1
    (span,) = [span for span in signals.spans if span.name == name]
    assert [dict(event.attributes or {}) for event in span.events] == [{}]


@pytest.mark.parametrize("node", [ours, langchains_sync])
def test_by_default_no_piece_is_recorded(node: Any) -> None:
    """Neither of the answer nor of the question."""
    signals = Signals()
    with signals.recorded():
        SYNC.invoke(StateGraph(State).add_node("a", node).add_edge(START, "a").compile(), {"said": []})

    assert "to be" not in signals.everything()
    assert "that is" not in signals.everything()


@pytest.mark.parametrize("colour", [SYNC, ASYNC], ids=lambda colour: colour.name)
def test_messages_in_a_state_have_the_same_shape(colour: Colour) -> None:
    """With their calls, and without the pictures' data; on the run, too."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUFB"}}
    said = [
        HumanMessage([{"type": "text", "text": "what is this"}, picture]),
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c1"}]),
        ToolMessage("a cat", tool_call_id="c1"),
    ]
    signals = Signals()
    with signals.recorded("SPAN_ONLY"):
        colour.invoke(StateGraph(State).add_node("a", lambda _: {}).add_edge(START, "a").compile(), {"said": said})

    expected = [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "what is this"},
                {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "", "size": 3},
            ],
        },
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"at": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "response": "a cat", "id": "c1"}]},
    ]
    assert signals.json("run_step a", "tracegraph.task.input") == {"said": expected}
    assert signals.json("invoke_workflow", "tracegraph.run.input") == {"said": expected}
    assert "QUFB" not in signals.everything()
