"""Lines that nodes log through structlog: whose run, node and span they name, and how they look."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
import structlog
from colours import SYNC, Colour
from small_graphs import THREAD, State, chain, parallel, saving
from spans import Trace
from structlog.testing import CapturingLogger

from tracegraph.current import CURRENT
from tracegraph.errors import InvalidInputError
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import RUN_FIELDS, add_run_fields, correlation, run_fields
from tracegraph.telemetry.log_lines import _Configured, configure_logs
from tracegraph.types import RetryPolicy, interrupt

SECRET = "what nobody may read"


@pytest.fixture(autouse=True)
def _fresh_logging() -> Iterator[None]:
    """Undo what a test configures; pytest's own handlers are on the root logger only while a test runs."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    _Configured.processors = None


@pytest.fixture
def out() -> io.StringIO:
    """Where JSON lines go."""
    stream = io.StringIO()
    configure_logs("json", stream=stream)
    return stream


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def line(out: io.StringIO, event: str) -> dict[str, Any]:
    (found,) = (line for line in lines(out) if line["event"] == event)
    return found


def ids(span: Any) -> dict[str, Any]:
    context = span.context
    return {
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
        "trace_flags": f"{context.trace_flags:02x}",
    }


def only_fields(found: dict[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in RUN_FIELDS if key in found}


def the_span(trace: Trace, name: str) -> Any:
    (span,) = (span for span in trace.ended if span.name == name)
    return span


log = structlog.get_logger("app.nodes")


def test_a_line_in_a_node_names_span_run_thread_node_step_and_attempt(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """And what every line has: time, level, logger, what the caller says."""

    def fetch(state: State) -> State:
        log.info("fetching", url="u")
        return {}

    colour.invoke(chain(saving(), first=lambda state: {}, fetch=fetch), {"xs": []}, THREAD)

    found = line(out, "fetching")
    run = the_span(trace, "invoke_workflow")
    assert only_fields(found) == ids(the_span(trace, "run_step fetch")) | {
        "run_id": run.attributes["tracegraph.run.id"],
        "thread_id": "t",
        "node": "fetch",
        "superstep": 2,
        "attempt": 1,
    }
    assert (found["level"], found["logger"], found["url"]) == ("info", "app.nodes", "u")
    assert found["timestamp"].endswith("Z")


def test_without_spans_the_run_is_named_all_the_same(out: io.StringIO, colour: Colour) -> None:
    """Nothing is traced, so there is no span to name; a run without a thread names none."""

    def node(state: State) -> State:
        log.info("here")
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    assert set(only_fields(line(out, "here"))) == {"run_id", "node", "superstep", "attempt"}


def test_outside_a_run_there_are_no_fields(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """Neither before nor after one."""
    log.info("before")
    colour.invoke(chain(a=lambda state: {}), {"xs": []})
    log.info("after")

    assert [only_fields(found) for found in lines(out)] == [{}, {}]
    assert run_fields() == {}


def test_async_nodes_their_tasks_and_worker_threads(out: io.StringIO, trace: Trace) -> None:
    """Coroutines, tasks and ``asyncio.to_thread`` are inside by themselves."""

    async def node(state: State) -> State:
        log.info("coroutine")

        async def below() -> None:
            log.info("task")

        await asyncio.create_task(below())
        await asyncio.to_thread(log.info, "thread")
        await log.ainfo("async method")
        return {}

    asyncio.run(chain(a=node).ainvoke({"xs": []}))

    span = ids(the_span(trace, "run_step a"))
    for event in ("coroutine", "task", "thread", "async method"):
        assert only_fields(line(out, event)).items() >= (span | {"node": "a", "superstep": 1, "attempt": 1}).items()


def test_a_plain_thread_is_inside_if_it_copies_the_context(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """What Python does not hand on is not guessed."""

    def node(state: State) -> State:
        for name, call in (("copied", copy_context().run), ("bare", lambda function, *args: function(*args))):
            thread = threading.Thread(target=call, args=(log.info, name))
            thread.start()
            thread.join()
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    assert only_fields(line(out, "copied")).items() >= ids(the_span(trace, "run_step a")).items()
    assert only_fields(line(out, "bare")) == {}


def test_inside_a_nested_graph_it_is_the_innermost(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """Before and after the inner run it is the outer node again."""

    def leaf(state: State) -> State:
        log.info("inner")
        return {}

    inner = chain({"name": "inner"}, leaf=leaf)

    def around(state: State) -> State:
        log.info("before")
        inner.invoke(state)
        log.info("after")
        return {}

    colour.invoke(chain({"name": "outer"}, around=around), {"xs": []})

    for event, node, run in (("before", "around", "outer"), ("inner", "leaf", "inner"), ("after", "around", "outer")):
        run_id = the_span(trace, f"invoke_workflow {run}").attributes["tracegraph.run.id"]
        expected = ids(the_span(trace, f"run_step {node}")) | {"node": node, "run_id": run_id}
        assert only_fields(line(out, event)).items() >= expected.items()


def test_each_attempt_is_numbered_and_named_by_its_span(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """A retried node's lines are told apart."""

    def node(state: State) -> State:
        attempt = run_fields()["attempt"]
        log.info("trying", number=attempt)
        if attempt == 1:
            raise ConnectionError("again")
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", node, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "a")
    colour.invoke(graph.compile(), {"xs": []})

    attempts = {span.attributes["tracegraph.attempt.number"]: ids(span) for span in trace.named("attempt")}
    assert [found["attempt"] for found in lines(out)] == [1, 2]
    assert all(found.items() >= attempts[found["attempt"]].items() for found in lines(out))


def test_a_span_of_the_node_s_own_is_the_one_named(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """The innermost span, the node of the run."""

    def node(state: State) -> State:
        with trace.tracer.start_as_current_span("mine"):
            log.info("inside")
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    assert only_fields(line(out, "inside")).items() >= (ids(the_span(trace, "mine")) | {"node": "a"}).items()


def test_concurrent_runs_and_nodes_are_never_mixed_up(out: io.StringIO, trace: Trace) -> None:
    """Three nodes side by side in four runs at once, all logging at the same time."""
    barrier = threading.Barrier(12)

    def node(name: str) -> Any:
        def body(state: State) -> State:
            barrier.wait(10)
            for number in range(20):
                log.info("busy", by=name, of=state["n"], number=number)
            return {}

        return body

    app = parallel(saving(), **{name: node(name) for name in "abc"})
    threads = [
        threading.Thread(target=app.invoke, args=({"xs": [], "n": i}, {"configurable": {"thread_id": f"t{i}"}})) for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    runs = {span.attributes["gen_ai.conversation.id"]: span for span in trace.named("invoke_workflow")}
    spans = {f"{s.context.span_id:016x}": s for s in trace.named("run_step")}
    assert len(lines(out)) == 240
    for found in lines(out):
        run, span = runs[found["thread_id"]], spans[found["span_id"]]
        assert (found["node"], found["thread_id"]) == (found["by"], f"t{found['of']}")
        assert found["run_id"] == run.attributes["tracegraph.run.id"]
        assert span.attributes["gen_ai.step.name"] == found["by"]
        assert found["trace_id"] == f"{run.context.trace_id:032x}"


def test_what_a_line_says_itself_stays(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """The application's own words win."""

    def node(state: State) -> State:
        log.info("hello", node="kubernetes-7")
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    assert line(out, "hello")["node"] == "kubernetes-7"


def test_an_exception_in_a_node_is_logged_as_data_without_locals(out: io.StringIO, trace: Trace, colour: Colour) -> None:
    """``dict_tracebacks``, but no values: they would be the state."""

    def node(state: State) -> State:
        secret = SECRET + state["xs"][0]
        try:
            raise ValueError(len(secret))
        except ValueError:
            log.exception("it failed")
        return {}

    colour.invoke(chain(a=node), {"xs": ["!"]})

    found = line(out, "it failed")
    (error,) = found["exception"]
    assert (error["exc_type"], found["level"], found["node"]) == ("ValueError", "error", "a")
    assert error["frames"][-1]["name"] == "node"
    assert SECRET not in out.getvalue()


def test_bound_context_variables_are_on_the_line_too(out: io.StringIO, colour: Colour) -> None:
    """What a web framework binds around the run."""

    def node(state: State) -> State:
        log.info("here")
        return {}

    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        colour.invoke(chain(a=node), {"xs": []})

    assert line(out, "here").items() >= {"request_id": "r-1", "node": "a"}.items()


def test_a_pause_logs_nothing_and_passes(out: io.StringIO, colour: Colour) -> None:
    """Logging in a node that asks a question does not touch the question."""

    def node(state: State) -> State:
        log.info("asking")
        return {"xs": [interrupt("?")]}

    found = colour.invoke(chain(saving(), a=node), {"xs": []}, THREAD)

    assert "__interrupt__" in found
    assert [line["event"] for line in lines(out)] == ["asking"]


def test_the_console_form_names_the_node_too(trace: Trace, colour: Colour) -> None:
    """For a person, on one line; a traceback without local values."""
    stream = io.StringIO()
    configure_logs("console", stream=stream)

    def node(state: State) -> State:
        secret = SECRET
        try:
            raise ValueError(len(secret))
        except ValueError:
            log.exception("it failed")
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    text = stream.getvalue()
    assert "it failed" in text
    assert "node=a" in text
    assert "ValueError" in text
    assert SECRET not in text.replace("secret = SECRET", "")
    assert "\x1b[" not in text


def test_lines_below_the_level_are_not_written() -> None:
    """A number or a name."""
    for level in ("warning", 30):
        stream = io.StringIO()
        configure_logs("json", level=level, stream=stream)
        log.info("low")
        log.warning("high")
        assert [line["event"] for line in lines(stream)] == ["high"]


@pytest.mark.parametrize(("form", "level"), [("xml", "INFO"), ("json", "LOUD")])
def test_what_is_unknown_is_refused(form: Any, level: str) -> None:
    """Before anything is configured."""
    with pytest.raises(InvalidInputError):
        configure_logs(form, level=level)
    assert not structlog.is_configured()


def test_an_application_s_own_configuration_is_left_alone(colour: Colour) -> None:
    """Its processors, its logger; the fields are its own to add, with one processor."""
    own = CapturingLogger()
    structlog.configure(processors=[add_run_fields, structlog.processors.JSONRenderer()], logger_factory=lambda *_: own)
    before = structlog.get_config()
    stream = io.StringIO()
    configure_logs("json", stream=stream)

    def node(state: State) -> State:
        structlog.get_logger().info("here")
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    assert structlog.get_config() == before
    assert stream.getvalue() == ""
    assert json.loads(own.calls[0].args[0])["node"] == "a"


def test_values_that_json_cannot_hold_do_not_fail_the_node(out: io.StringIO, colour: Colour) -> None:
    """The line is written with what can be said of them."""
    circle: list[Any] = []
    circle.append(circle)

    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    def node(state: State) -> State:
        log.info("odd", value={(1, 2): 3}, circle=circle, worse=Unprintable())
        return {"xs": ["done"]}

    assert colour.invoke(chain(a=node), {"xs": []})["xs"] == ["done"]
    assert line(out, "odd").items() >= {"node": "a", "circle": "[[...]]"}.items()


def test_a_closed_stream_does_not_fail_the_node(out: io.StringIO, colour: Colour) -> None:
    """A daemon whose terminal is gone goes on."""

    def node(state: State) -> State:
        out.close()
        log.info("lost")
        return {"xs": ["done"]}

    assert colour.invoke(chain(a=node), {"xs": []})["xs"] == ["done"]


def test_a_failure_to_read_the_fields_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, colour: Colour
) -> None:
    """The line comes without them, the node goes on."""

    def broken() -> dict[str, Any]:
        raise RuntimeError("no fields")

    monkeypatch.setattr(correlation, "run_fields", broken)
    monkeypatch.setattr(correlation, "_reported", set())
    stream = io.StringIO()
    configure_logs("json", stream=stream)

    def node(state: State) -> State:
        log.info("one")
        log.info("two")
        return {"xs": ["done"]}

    assert colour.invoke(chain(a=node), {"xs": []})["xs"] == ["done"]
    assert [line["event"] for line in lines(stream)] == ["one", "two"]
    assert [r.getMessage() for r in caplog.records] == ["log lines get no run fields; this is said once"]


def test_fields_cost_nothing_when_nobody_logs() -> None:
    """They are made by the first line of an attempt, and by that alone."""
    made: list[Any] = []

    def silent(state: State) -> State:
        made.append(CURRENT.get()._log_fields)
        run_fields()
        made.append(CURRENT.get()._log_fields)
        return {}

    SYNC.invoke(chain(a=silent), {"xs": []})

    assert made[0] is None
    assert made[1]["node"] == "a"
