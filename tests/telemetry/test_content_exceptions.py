"""What exceptions say: no content by the conventions, so it is there by default, but never with a known kind of secret."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from colours import Colour
from signals import Signals

from tracegraph.graph import START, StateGraph
from tracegraph.telemetry.content import SECRETS, emails
from tracegraph.types import RetryPolicy

pytestmark = pytest.mark.content_on_spans("content is asked for")


class State(TypedDict, total=False):
    n: int


class PrintsBadly(ConnectionError):
    def __str__(self) -> str:
        return "no \ud800 way"


def fail(colour: Colour, error: BaseException, **options: Any) -> None:
    def node(_: State) -> State:
        raise error

    graph = StateGraph(State).add_node("a", node, **options).add_edge(START, "a")
    with pytest.raises(type(error)):
        colour.invoke(graph.compile(), {"n": 1})


def test_messages_and_stack_traces_are_recorded_without_secrets_by_default(signals: Signals, colour: Colour) -> None:
    """A database that refuses a connection often says with which password; the rest of the message is what one needs."""
    error = ConnectionError("cannot reach postgresql://me:hunter2@db/app with sk-proj-Abcdefgh1234567890")
    with signals.recorded():
        fail(colour, error, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.0))

    said = signals.everything()
    assert "cannot reach postgresql://me:[redacted]@db/app with [redacted]" in said
    assert "Traceback" in said
    assert "hunter2" not in said
    assert "Abcdefgh" not in said
    assert "ConnectionError" in said


def test_they_go_through_the_redactors_of_the_policy(signals: Signals, colour: Colour) -> None:
    """All of them, whether content is captured or not."""
    with signals.recorded(redactors=(*SECRETS, emails)):
        fail(colour, ValueError("no mailbox ada@example.org"))

    assert "ada@example.org" not in signals.everything()
    assert "no mailbox [redacted]" in signals.everything()


def test_they_can_be_left_out(signals: Signals, colour: Colour) -> None:
    """Only the type is said, where messages may hold what was worked on."""
    with signals.recorded(exceptions=False):
        fail(colour, ValueError("hunter2"))

    assert "hunter2" not in signals.everything()
    (span,) = [s for s in signals.spans if s.name == "run_step a"]
    assert (span.attributes or {})["error.type"] == "ValueError"
    assert [dict(event.attributes or {}) for event in span.events] == [{"exception.type": "ValueError"}]


def test_a_redactor_that_fails_leaves_them_out(signals: Signals, colour: Colour) -> None:
    """Never unredacted."""

    def fails(value: Any, where: Any) -> Any:
        raise ValueError("no")

    with signals.recorded(redactors=(fails,)):
        fail(colour, KeyError("hunter2"))

    assert "hunter2" not in signals.everything()
    assert "(left out: a redactor failed)" in signals.everything()


def test_a_message_that_utf8_cannot_carry_is_cleaned(signals: Signals, colour: Colour) -> None:
    """One such character would cost an OTLP exporter its whole batch."""
    with signals.recorded():
        fail(colour, PrintsBadly())

    signals.everything().encode()
    assert "no ? way" in signals.everything()
