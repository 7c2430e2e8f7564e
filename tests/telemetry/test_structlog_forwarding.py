"""Lines that nodes log through structlog, forwarded to the OpenTelemetry Logger API: what the records say."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from colours import Colour
from records import Records
from small_graphs import THREAD, State, chain, saving
from spans import Trace
from structlog.testing import CapturingLogger

from tracegraph.telemetry import add_run_fields, forward_line, forwarding
from tracegraph.telemetry.log_lines import _Configured, configure_logs

log = structlog.get_logger("app.nodes")


@pytest.fixture(autouse=True)
def _fresh_structlog() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    _Configured.processors = None


@pytest.fixture
def out() -> io.StringIO:
    """Where JSON lines go."""
    stream = io.StringIO()
    configure_logs("json", stream=stream)
    return stream


def line(out: io.StringIO, event: str) -> dict[str, Any]:
    (found,) = (line for line in map(json.loads, out.getvalue().splitlines()) if line["event"] == event)
    return found


def test_lines_are_forwarded_under_their_logger_s_name(out: io.StringIO, records: Records, trace: Trace, colour: Colour) -> None:
    """The span is the record's own, node and run have the names they have on spans; the line itself is as before."""

    def node(state: State) -> State:
        log.warning("slow", seconds=1.5, tags=["x"], obj=object)
        return {}

    colour.invoke(chain(saving(), a=node), {"xs": []}, THREAD)

    (record,) = (found for found in records.all if found.event_name is None)
    (span,) = trace.named("run_step a")
    (run,) = trace.named("invoke_workflow")
    assert (record.trace_id, record.span_id) == (span.context.trace_id, span.context.span_id)
    assert (record.body, record.severity_text) == ("slow", "WARN")
    assert dict(record.attributes) == {
        "tracegraph.run.id": run.attributes["tracegraph.run.id"],
        "gen_ai.conversation.id": "t",
        "gen_ai.step.name": "a",
        "tracegraph.superstep": 1,
        "tracegraph.attempt.number": 1,
        "seconds": 1.5,
        "tags": ("x",),
        "obj": "<class 'object'>",
    }
    assert "app.nodes" in records.scopes
    assert line(out, "slow")["seconds"] == 1.5


def test_a_forwarded_exception_has_the_conventions_attributes(out: io.StringIO, records: Records, colour: Colour) -> None:
    """Type, message, stack."""

    def node(state: State) -> State:
        try:
            raise ValueError("bad")
        except ValueError:
            log.exception("it failed")
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    (record,) = (found for found in records.all if found.event_name is None)
    assert record.severity_text == "ERROR"
    assert (record.attributes["exception.type"], record.attributes["exception.message"]) == ("ValueError", "bad")
    assert "in node" in record.attributes["exception.stacktrace"]


def test_an_own_configuration_forwards_with_one_processor(records: Records, colour: Colour) -> None:
    """Added to whatever chain there is."""
    own = CapturingLogger()
    chain_ = [add_run_fields, structlog.processors.add_log_level, forward_line, structlog.processors.JSONRenderer()]
    structlog.configure(processors=chain_, logger_factory=lambda *_: own)

    def node(state: State) -> State:
        structlog.get_logger().error("here")
        return {}

    colour.invoke(chain(a=node), {"xs": []})

    (record,) = (found for found in records.all if found.event_name is None)
    assert (record.body, record.severity_text, record.attributes["gen_ai.step.name"]) == ("here", "ERROR", "a")
    assert len(own.calls) == 1


def test_without_a_provider_nothing_is_forwarded_and_the_line_passes() -> None:
    """A processor that is always in the chain costs a look."""
    given = {"event": "x", "n": 1}

    assert forward_line(None, "info", given) is given
    assert given == {"event": "x", "n": 1}


def test_a_broken_provider_breaks_no_log_call(out: io.StringIO, monkeypatch: pytest.MonkeyPatch, colour: Colour) -> None:
    """The line is written, the failure is said once."""

    def broken(name: str) -> Any:
        raise RuntimeError("no logger")

    said: list[str] = []
    monkeypatch.setattr(forwarding, "logger_in_use", broken)
    monkeypatch.setattr(forwarding, "report_once", lambda what, error: said.append(what))

    def node(state: State) -> State:
        log.info("here")
        return {"xs": ["done"]}

    assert colour.invoke(chain(a=node), {"xs": []})["xs"] == ["done"]
    assert line(out, "here")["node"] == "a"
    assert said == ["log lines are not forwarded to OpenTelemetry"]
