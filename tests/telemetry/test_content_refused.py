"""Values that our own errors are about: shown to whoever debugs, and by default to no signal."""

from __future__ import annotations

import io
import json
import logging
import operator
import traceback
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest
import structlog
from bare_root import bare_root
from channel_graphs import channel_graph, doubling
from colours import Colour
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from pydantic import BaseModel, Field, field_validator
from signals import Signals

from tracegraph import END, START, Command, Send, StateGraph, errors
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import EmptyInputError, InvalidAnswerError, InvalidUpdateError, UnknownTargetError
from tracegraph.graph import MessagesState, Nested
from tracegraph.refused_values import about
from tracegraph.runtime import RunControl, Runtime
from tracegraph.telemetry import use_logger_provider, use_meter_provider
from tracegraph.telemetry.log_lines import configure_logs
from tracegraph.types import interrupt

MARKER = "what Ada told me"
THREAD: Any = {"configurable": {"thread_id": "t"}}


class Whole(TypedDict, total=False):
    name: str


class State(TypedDict, total=False):
    n: int
    whole: Annotated[Whole, Nested]
    tags: Annotated[set[str], operator.or_]


class Person(BaseModel):
    age: int
    kind: Literal["a", "b"] = "a"


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Pet(BaseModel):
    animal: Cat | Dog = Field(discriminator="kind")


class Choosy(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def refuse(cls, word: str) -> str:
        raise ValueError(f"{word} is no word")


def graph_of(node: Any, *, schema: Any = State, **options: Any) -> Any:
    return StateGraph(schema).add_node("a", node).add_edge(START, "a").compile(name="probe", **options)


def routed(path: Any, path_map: Any = None) -> Any:
    graph = StateGraph(State).add_node("a", lambda _: {"n": 1}).add_edge(START, "a")
    return graph.add_conditional_edges("a", path, path_map).compile(name="probe")


def low_level(**options: Any) -> Any:
    return channel_graph({"double": doubling()}, input_channels=["a", "c"], **options)


def returning(result: Any, **options: Any) -> Callable[[Colour], Any]:
    return lambda colour: colour.invoke(graph_of(lambda _: result, **options), {"n": 1})


def answered(schema: Any, answer: Any) -> Callable[[Colour], Any]:
    """Answer a question of *schema*'s."""

    def run(colour: Colour) -> Any:
        graph = graph_of(lambda _: {"n": len(str(interrupt("which?", response_schema=schema)))}, checkpointer=InMemorySaver())
        colour.invoke(graph, {"n": 1}, THREAD)
        return colour.invoke(graph, Command(resume=answer), THREAD)

    return run


def updating(values: Any, as_node: str | None) -> Callable[[Colour], Any]:
    def run(colour: Colour) -> Any:
        graph = low_level(checkpointer=InMemorySaver())
        colour.invoke(graph, {"a": 1}, THREAD)

        def node(_: Any) -> Any:
            graph.update_state(THREAD, values, as_node=as_node)

        return colour.invoke(graph_of(node), {"n": 1})

    return run


def modelled(colour: Colour) -> Any:
    """A state that Pydantic refuses."""
    return colour.invoke(graph_of(lambda _: {"age": 1}, schema=Person), {"age": MARKER})


REFUSED: dict[str, tuple[type[BaseException], Callable[[Colour], Any]]] = {
    "a node's result": (InvalidUpdateError, returning(MARKER)),
    "a list of results": (InvalidUpdateError, returning([MARKER])),
    "a nested field": (InvalidUpdateError, returning({"whole": MARKER})),
    "a nested field of the input": (
        InvalidUpdateError,
        lambda colour: colour.invoke(graph_of(lambda _: {"n": 1}), {"whole": MARKER}),
    ),
    "an input": (InvalidUpdateError, lambda colour: colour.invoke(graph_of(lambda _: {"n": 1}), MARKER)),
    "an input without a channel": (EmptyInputError, lambda colour: colour.invoke(low_level(), {"d": MARKER})),
    "a goto": (UnknownTargetError, returning(Command(goto=MARKER))),
    "a goto that is no name": (UnknownTargetError, returning(Command(goto=[{"to": MARKER}]))),  # type: ignore[list-item]
    "a goto of the input that is no name": (
        TypeError,
        lambda colour: colour.invoke(low_level(), Command(goto=[{"to": MARKER}])),  # type: ignore[list-item]
    ),
    "a goto of the input": (
        UnknownTargetError,
        lambda colour: colour.invoke(graph_of(lambda _: {"n": 1}), Command(goto=MARKER)),
    ),
    "a Send": (UnknownTargetError, lambda colour: colour.invoke(routed(lambda _: Send(MARKER, MARKER)), {"n": 1})),
    "a Send to the end": (InvalidUpdateError, lambda colour: colour.invoke(routed(lambda _: Send(END, MARKER)), {"n": 1})),
    "a path": (UnknownTargetError, lambda colour: colour.invoke(routed(lambda _: MARKER), {"n": 1})),
    "a path that is mapped": (UnknownTargetError, lambda colour: colour.invoke(routed(lambda _: MARKER, {"x": END}), {"n": 1})),
    "an answer": (InvalidAnswerError, answered(int, MARKER)),
    "an answer of the wrong kind": (InvalidAnswerError, answered(Pet, {"animal": {"kind": MARKER}})),
    "a state that Pydantic refuses": (ValueError, modelled),
    "a role": (ValueError, returning({"messages": [{"role": MARKER, "content": MARKER}]}, schema=MessagesState)),
    "a message without content": (ValueError, returning({"messages": [{"role": "user", "text": MARKER}]}, schema=MessagesState)),
    "a tool's message": (ValueError, returning({"messages": [{"role": "tool", "content": MARKER}]}, schema=MessagesState)),
    "no message": (NotImplementedError, returning({"messages": [(MARKER, MARKER, MARKER)]}, schema=MessagesState)),
    "an update of the input": (InvalidUpdateError, updating({"d": MARKER}, "__input__")),
    "an update by copy": (InvalidUpdateError, updating([MARKER], "__copy__")),
}


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("refused", REFUSED)
def test_no_signal_has_the_value_that_an_error_is_about(colour: Colour, refused: str, form: str) -> None:
    """Spans, their events and statuses, log records, metrics, log lines; whoever debugs has it all the same."""
    kind, run = REFUSED[refused]
    signals, metrics, written = Signals(), InMemoryMetricReader(), io.StringIO()
    use_logger_provider(signals.logger_provider)
    use_meter_provider(MeterProvider([metrics], shutdown_on_exit=False))
    try:
        with bare_root(), signals.recorded():
            configure_logs(form, stream=written)
            with pytest.raises(kind) as caught:
                run(colour)
            structlog.get_logger("app").error("it failed", exc_info=caught.value)
            logging.getLogger("app").error("it failed", exc_info=caught.value)
        measured = json.dumps(json.loads(metrics.get_metrics_data().to_json()))
    finally:
        use_logger_provider(None)
        use_meter_provider(None)

    assert any(span.status.description for span in signals.spans), "the run failed inside"
    assert written.getvalue().count("it failed") == 2
    assert len([log for log in signals.logs if log.body == "it failed"]) == 2
    for signal in (signals.everything(), measured, written.getvalue()):
        assert MARKER not in signal
    assert MARKER in "".join(traceback.format_exception(caught.value)), "Python shows it"


def test_pydantic_errors_of_nodes_have_no_input_on_signals(colour: Colour) -> None:
    """A model's answer that does not parse is content; where it does not is not."""
    signals = Signals()
    with signals.recorded(), pytest.raises(ValueError, match="Ada"):
        colour.invoke(graph_of(lambda _: Person.model_validate({"age": MARKER})), {"n": 1})

    assert MARKER not in signals.everything()
    (task,) = [span for span in signals.spans if span.name == "run_step a"]
    assert "unable to parse string as an integer [type=int_parsing, input_type=str]" in (task.status.description or "")


def test_a_user_s_message_stays(colour: Colour) -> None:
    """By the conventions it is no content, a validator's neither; but our own error does not repeat it."""
    with pytest.raises(InvalidAnswerError) as caught:
        answered(Choosy, {"word": MARKER})(colour)
    assert "resume with one that does: word: value_error" in str(caught.value)
    assert MARKER in str(caught.value.__cause__)
    signals = Signals()

    def node(_: Any) -> Any:
        raise ValueError(MARKER)

    with signals.recorded(), pytest.raises(ValueError, match=MARKER):
        graph_of(node).invoke({"n": 1})

    assert MARKER in signals.everything()


def test_an_error_keeps_its_value_and_says_where(colour: Colour) -> None:
    """The message names type and place, the nearest name as well."""
    with pytest.raises(UnknownTargetError) as caught:
        colour.invoke(graph_of(lambda _: Command(goto="aa")), {"n": 1})
    assert (caught.value.value, caught.value.target) == ("aa", "aa")  # type: ignore[attr-defined]
    assert "node 'a' sent to a node that does not exist (did you mean 'a'?); known: " in str(caught.value)

    with pytest.raises(InvalidAnswerError, match="the answer, a str of length 6, does not fit what node 'a' asks") as refusal:
        answered(int, "twelve")(colour)
    assert "it: Input should be a valid integer, unable to parse string as an integer" in str(refusal.value)
    assert refusal.value.answer == refusal.value.value == "twelve"  # type: ignore[attr-defined]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class OfThreeLines:
    def __repr__(self) -> str:
        return "first\nsecond\r\nthird"


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000, list(range(10_000)), 10**10_000, Unprintable(), OfThreeLines()],
    ids=["text", "list", "number", "unprintable", "lines"],
)
def test_a_note_is_one_short_line(value: Any) -> None:
    """Whatever the value: longer ones would bury the traceback, and a line is what telemetry leaves out."""
    (note,) = about(ValueError("x"), value).__notes__
    assert len(note) < 300
    assert len(note.splitlines()) == 1


def test_every_error_that_can_be_about_a_value_is_in_the_sweep() -> None:
    """A new class of error has to say here what it is about."""
    without = {
        # Names, numbers, ids and times of a run.
        "ConcurrentRunError", "GraphRecursionError", "NodeCancelledError", "NodeTimeoutError", "RunDeadlineError",
        "SlowReaderError", "StateSizeError", "StepTimeoutError", "TaskLimitError", "TaskNotFound", "UnknownInterruptError",
        # Raised where a graph is built or called with arguments that cannot be, by names of channels, of reports.
        "GraphDefinitionError", "InvalidInputError", "EmptyChannelError", "EngineBug",
        # No errors.
        "GraphBubbleUp", "GraphDrained", "GraphInterrupt", "ParentCommand", "RunClosed", "TracegraphWarning",
    }  # fmt: skip
    classes = {
        name for name in errors.__all__ if isinstance(cls := getattr(errors, name), type) and issubclass(cls, BaseException)
    }
    assert classes - without == {kind.__name__ for kind, _ in REFUSED.values()} & classes


def test_the_reason_of_a_drain_is_redacted_and_short() -> None:
    """It is free text that code gives, as a message is."""
    signals, control = Signals(), RunControl()
    reason = "deploy with password=hunter2 and " + "x" * 5_000

    def node(_: State, runtime: Runtime) -> State:
        control.request_drain(reason)
        return {"n": 1}

    graph = (
        StateGraph(State).add_node("a", node).add_node("b", lambda _: {"n": 2}).add_edge(START, "a").add_edge("a", "b").compile()
    )
    use_logger_provider(signals.logger_provider)
    try:
        with signals.recorded(), pytest.raises(errors.GraphDrained):
            graph.invoke({"n": 0}, control=control)
    finally:
        use_logger_provider(None)

    assert "hunter2" not in signals.everything()
    said = [span.attributes["tracegraph.run.reason"] for span in signals.spans if span.name == "invoke_workflow"]
    said += [log.attributes["tracegraph.run.reason"] for log in signals.logs if "tracegraph.run.reason" in log.attributes]
    assert len(said) >= 2
    assert all(text.startswith("deploy with password=[redacted]") and len(text.encode()) <= 1_000 for text in said)
