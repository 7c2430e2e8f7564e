"""Content far too large for a trace, in real runs: every span that holds some stays small, and what it says stays JSON."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from scripted_models import ScriptedModel
from signals import Signals

from tracegraph.config import get_config
from tracegraph.graph import START, StateGraph
from tracegraph.messages import HumanMessage, SystemMessage
from tracegraph.telemetry.semconv.registry import ATTRIBUTES

pytestmark = pytest.mark.content_on_spans("content is asked for")

TEMPO_BYTES = 2048
"""What Tempo cuts longer values to, in the middle of a character if need be."""

TRACEBACK_BYTES = 4000
FAT: Any = {
    "one tag of 58 kB": "x" * 58_000,
    "characters of four bytes": "🦜" * 5_000,
    "of three, behind quotes and escapes": '"\\\n€' * 2_000,
    "nested": {"deep": [{"deeper": {"list": list(range(500)), "text": "ü" * 5_000}}] * 2},
    "many": {f"key {number}": "value" * 20 for number in range(200)},
}


class State(TypedDict, total=False):
    said: Annotated[list[Any], operator.add]


def speaks_at_length(_: State) -> State:
    """Hand everybody far too much."""
    long = "\n".join(map(str, FAT.values()))
    ScriptedModel(long[:60_000], long[60_000:]).invoke([SystemMessage(long), *(HumanMessage(long) for _ in range(5))])
    callbacks = get_config()["callbacks"]
    callbacks.on_tool_start({"name": "search", "description": long}, json.dumps(FAT), inputs=FAT).on_tool_end(FAT)
    callbacks.on_retriever_start({"name": "docs"}, long).on_retriever_end([{"page_content": long}] * 3)
    raise ValueError(long)


def recovers(_: State) -> State:
    return {"said": [FAT] * 3}


@pytest.fixture
def spans(colour: Colour) -> Any:
    """The spans of a run that captures all of it."""
    app = StateGraph(State).add_node("speaks", speaks_at_length, error_handler=recovers).add_edge(START, "speaks").compile()
    signals = Signals()
    with signals.recorded(capture="SPAN_ONLY"):
        colour.invoke(app, {"said": [FAT]})
    return signals.spans


def test_no_value_is_longer_than_what_a_backend_takes(spans: Any) -> None:
    """Bytes, not characters; of spans and, tracebacks aside, of their events, which not every backend cuts."""
    for span in spans:
        for name, value in span.attributes.items():
            assert len(str(value).encode()) <= TEMPO_BYTES, (span.name, name)
        for event in span.events:
            for name, value in event.attributes.items():
                limit = TRACEBACK_BYTES if name == "exception.stacktrace" else TEMPO_BYTES
                assert len(str(value).encode()) <= limit, (span.name, event.name, name)


def test_what_was_cut_is_json_and_says_so(spans: Any) -> None:
    """A cut inside a field, with a mark, and the attribute's name on the span."""
    cut: set[str] = set()
    for span in spans:
        content = {name: text for name, text in span.attributes.items() if name in ATTRIBUTES and ATTRIBUTES[name].is_content}
        for name, text in content.items():
            if ATTRIBUTES[name].type != "string":
                json.loads(text)
        marked = span.attributes.get("tracegraph.truncated", ())
        assert set(marked) == content.keys(), span.name
        cut.update(marked)

    assert cut >= {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.retrieval.query.text",
        "gen_ai.retrieval.documents",
        "tracegraph.run.input",
        "tracegraph.run.output",
        "tracegraph.task.input",
    }


def test_no_span_is_fat_as_a_whole(spans: Any) -> None:
    """A backend drops one that is; a few dozen kilobytes are none."""
    assert {span.name for span in spans} >= {"invoke_workflow", "run_step speaks", "chat scripted", "execute_tool search"}
    for span in spans:
        assert encode_spans([span]).ByteSize() < 16_000, span.name
