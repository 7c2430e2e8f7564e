"""How content is switched on: the standard variable, setup(), use_content(); and what a wrong value does."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted_models import ScriptedModel
from signals import Signals

from tracegraph.errors import InvalidInputError
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import setup, use_provider
from tracegraph.telemetry.content import Capture, ContentPolicy, active_policy, use_content
from tracegraph_exporters import TraceStore

pytestmark = pytest.mark.content_on_spans("content is asked for")

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
EMIT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT"


def run() -> None:
    graph = StateGraph(dict[str, Any]).add_node("a", lambda _: {"n": 2}).add_edge(START, "a")
    graph.compile(name="app").invoke({"n": 1})


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that says nothing of content."""
    for name in [name for name in os.environ if name.startswith("OTEL_INSTRUMENTATION_GENAI_")]:
        monkeypatch.delenv(name)
    return monkeypatch


def where(signals: Signals) -> tuple[bool, bool]:
    """Say whether spans and whether log events have content."""
    return any("tracegraph.run.input" in (s.attributes or {}) for s in signals.spans), bool(signals.logs)


@pytest.mark.parametrize(("value", "expected"), [
    (None, (False, False)), ("", (False, False)), ("NO_CONTENT", (False, False)), ("SPAN_ONLY", (True, False)),
    ("span_only", (True, False)), (" EVENT_ONLY ", (False, True)), ("SPAN_AND_EVENT", (True, True)), ("true", (True, True)),
    ("True", (True, True)), ("false", (False, False)),
])  # fmt: skip
def test_the_standard_variable_decides(clean: pytest.MonkeyPatch, value: str | None, expected: tuple[bool, bool]) -> None:
    """In an application that has its own SDK and never calls anything of ours; it is read when a run starts."""
    if value is not None:
        clean.setenv(VARIABLE, value)
    signals = Signals()
    with signals.recorded():
        run()

    assert where(signals) == expected


def asking(_: Any) -> dict[str, Any]:
    ScriptedModel("hello").invoke(["hi"])
    return {"n": 2}


@pytest.mark.parametrize("in_code", [False, True])
@pytest.mark.parametrize(("capture", "emit", "content_on_span", "events"), [
    ("NO_CONTENT", None, False, []), ("NO_CONTENT", "true", False, ["facts"]), ("NO_CONTENT", "false", False, []),
    ("SPAN_ONLY", None, True, []), ("SPAN_ONLY", " True ", True, ["facts"]), ("SPAN_ONLY", "", True, []),
    ("EVENT_ONLY", None, False, ["content"]), ("EVENT_ONLY", "true", False, ["content"]), ("EVENT_ONLY", "FALSE", False, []),
    ("SPAN_AND_EVENT", "false", True, []), ("SPAN_AND_EVENT", "true", True, ["content"]),
])  # fmt: skip
def test_whether_model_calls_are_events_is_a_switch_of_its_own(
    clean: pytest.MonkeyPatch, *, capture: str, emit: str | None, content_on_span: bool, events: list[str], in_code: bool
) -> None:
    """As OpenTelemetry's GenAI utilities have it: it follows the capture variable, and says nothing about content."""
    policy = None
    if in_code:
        emit_event = {"true": True, "false": False}.get((emit or "").strip().lower())
        policy = ContentPolicy(capture=capture, emit_event=emit_event)
    else:
        clean.setenv(VARIABLE, capture)
        if emit is not None:
            clean.setenv(EMIT_VARIABLE, emit)
    signals = Signals()
    with signals.recorded(policy):
        StateGraph(dict[str, Any]).add_node("a", asking).add_edge(START, "a").compile().invoke({"n": 1})

    (chat,) = (span for span in signals.spans if span.name.startswith("chat"))
    found = [record for record in signals.logs if record.event_name == "gen_ai.client.inference.operation.details"]
    kinds = ["content" if "gen_ai.input.messages" in record.attributes else "facts" for record in found]
    assert ("gen_ai.input.messages" in chat.attributes, kinds) == (content_on_span, events)
    assert all(record.attributes["gen_ai.operation.name"] == "chat" for record in found)
    assert all(record.span_id == chat.context.span_id for record in found)
    assert bool(signals.logs) == bool(events), "other events hold nothing but content"


def test_a_word_for_events_that_there_is_not_is_refused(clean: pytest.MonkeyPatch) -> None:
    """By setup(); the run of an application that only sets the variable records nothing."""
    clean.setenv(EMIT_VARIABLE, "perhaps")
    with pytest.raises(InvalidInputError, match=f"{EMIT_VARIABLE} is true or false, not 'perhaps'"):
        setup(provider=Signals().tracer_provider)
    with pytest.raises(InvalidInputError, match="emit_event is True, False or None, not 'perhaps'"):
        ContentPolicy(emit_event="perhaps")  # type: ignore[arg-type]


def test_a_wrong_variable_is_one_warning_and_no_content(clean: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Without setup() there is no better moment to say so; the run goes on."""
    clean.setenv(VARIABLE, "SOMETIMES")
    signals = Signals()
    with signals.recorded(), caplog.at_level(logging.WARNING):
        run()
        run()

    assert where(signals) == (False, False)
    (record,) = [r for r in caplog.records if r.name == "tracegraph.telemetry"]
    assert "SOMETIMES" in record.getMessage()
    assert "SPAN_AND_EVENT" in record.getMessage()


@pytest.mark.parametrize("value", ["SPAN_ONLY", Capture.SPAN_ONLY, ContentPolicy(capture="SPAN_ONLY")])
def test_code_goes_before_the_variable(clean: pytest.MonkeyPatch, value: Any) -> None:
    """By word, by enum or by policy; None gives the environment its say again."""
    clean.setenv(VARIABLE, "EVENT_ONLY")
    signals = Signals()
    with signals.recorded(value):
        run()

    assert where(signals) == (True, False)
    use_content(None)
    assert active_policy().capture is Capture.EVENT_ONLY


def test_setup_takes_a_policy_and_gives_it_up_at_shutdown(clean: pytest.MonkeyPatch) -> None:
    """Between the two, runs are recorded by it; a second call without one changes nothing, one with another does."""
    signals = Signals()
    with setup(provider=signals.tracer_provider, capture="SPAN_ONLY"):
        setup()
        run()
        setup(capture=ContentPolicy(capture=False))
        run()
    assert [("tracegraph.run.input" in (s.attributes or {})) for s in signals.spans if s.name == "invoke_workflow app"] == [
        True,
        False,
    ]
    assert active_policy().is_off


@pytest.mark.parametrize("value", ["SOMETIMES", 7, object()])
def test_setup_refuses_a_wrong_value_and_changes_nothing(clean: pytest.MonkeyPatch, value: Any) -> None:
    """The error says what there is."""
    signals = Signals()
    with pytest.raises(InvalidInputError, match="NO_CONTENT, SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT"):
        setup(provider=signals.tracer_provider, capture=value)

    use_provider(None)
    run()
    assert signals.spans == ()


def test_setup_refuses_a_wrong_variable(clean: pytest.MonkeyPatch) -> None:
    """An application that calls setup() has a moment at which it can be told."""
    clean.setenv(VARIABLE, "SOMETIMES")
    with pytest.raises(InvalidInputError, match=VARIABLE):
        setup(provider=Signals().tracer_provider)


def test_in_a_fresh_process_the_variable_reaches_the_store(tmp_path: Path) -> None:
    """Which writes down what any exporter would get; off, nothing of content is even loaded."""
    code = """
import sys
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import setup
with setup():
    StateGraph(dict).add_node("a", lambda _: {"n": 2}).add_edge(START, "a").compile(name="app").invoke({"n": 1})
print(any(name.startswith("tracegraph.telemetry.content.recorder") for name in sys.modules))
"""
    said = []
    for value in ("SPAN_ONLY", "NO_CONTENT"):
        clean = {key: text for key, text in os.environ.items() if not key.startswith(("OTEL_", "TRACEGRAPH_"))}
        environment = {**clean, "TRACEGRAPH_HOME": str(tmp_path / value), VARIABLE: value}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=50, check=False
        )
        assert done.returncode == 0, done.stderr
        with TraceStore(tmp_path / value / "traces.db") as store:
            (trace,) = store.traces()
            spans = store.spans(trace.trace_id)
        said.append((done.stdout.strip(), "tracegraph.run.input" in json.dumps([repr(span) for span in spans])))

    assert said == [("True", True), ("False", False)]
