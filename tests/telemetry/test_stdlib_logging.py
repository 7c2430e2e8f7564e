"""The standard library's logging inside nodes: fields by a filter, records to OpenTelemetry by a handler, lines by setup."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import logging.handlers
import queue
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from bare_root import bare_root
from colours import Colour
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from records import Records
from small_graphs import THREAD, State, chain, saving
from spans import Trace

from tracegraph.telemetry import (
    RUN_FIELDS,
    ForwardingHandler,
    RunFieldsFilter,
    add_run_fields,
    correlation,
    use_logger_provider,
)
from tracegraph.telemetry.log_lines import configure_logs

log = logging.getLogger("app.nodes")


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    log.setLevel(logging.DEBUG)
    yield
    log.setLevel(logging.NOTSET)


class attached:
    """A handler that is on the logger of this module for a while."""

    def __init__(self, handler: logging.Handler) -> None:
        self.handler = handler

    def __enter__(self) -> logging.Handler:
        log.addHandler(self.handler)
        return self.handler

    def __exit__(self, *error: object) -> None:
        log.removeHandler(self.handler)


def written(format: str, *, defaults: dict[str, Any] | None = None) -> tuple[logging.Handler, io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RunFieldsFilter())
    handler.setFormatter(logging.Formatter(format, defaults=defaults))
    return handler, stream


def node(state: State) -> State:
    log.info("fetched %s", "it", extra={"size": 3})
    return {}


def test_a_filter_on_a_handler_adds_the_fields(trace: Trace, colour: Colour) -> None:
    """Formats name them like any attribute of a record; defaults stand for them outside."""
    handler, stream = written(
        "%(message)s %(node)s %(superstep)s %(attempt)s %(thread_id)s %(trace_id)s %(span_id)s %(trace_flags)s",
        defaults=dict.fromkeys(RUN_FIELDS, "-"),
    )
    with attached(handler):
        log.info("before")
        colour.invoke(chain(saving(), a=node), {"xs": []}, THREAD)

    (span,) = (s.context for s in trace.ended if s.name == "run_step a")
    inside = f"fetched it a 1 1 t {span.trace_id:032x} {span.span_id:016x} {span.trace_flags:02x}"
    assert stream.getvalue().splitlines() == ["before - - - - - - -", inside]


def test_worker_threads_of_a_node_are_inside(trace: Trace) -> None:
    """``asyncio.to_thread`` hands the context on."""
    handler, stream = written("%(node)s %(message)s")

    async def far(state: State) -> State:
        await asyncio.to_thread(log.info, "thread")
        return {}

    with attached(handler):
        asyncio.run(chain(far=far).ainvoke({"xs": []}))

    assert stream.getvalue() == "far thread\n"


def test_behind_a_queue_the_fields_are_those_of_the_node(trace: Trace, colour: Colour) -> None:
    """The filter stands before the queue; the listener is in another thread."""
    far, stream = written("%(message)s %(node)s")
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    near = logging.handlers.QueueHandler(waiting)
    near.addFilter(RunFieldsFilter())
    listener = logging.handlers.QueueListener(waiting, far)
    listener.start()
    try:
        with attached(near):
            colour.invoke(chain(a=node), {"xs": []})
    finally:
        listener.stop()

    assert stream.getvalue() == "fetched it a\n"


def test_structlog_s_formatter_takes_the_fields_of_foreign_records(trace: Trace, colour: Colour) -> None:
    """The same processor, in its chain for what did not come from structlog."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, add_run_fields],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
        )
    )
    with attached(handler):
        colour.invoke(chain(a=node), {"xs": []})

    found = json.loads(stream.getvalue())
    assert found.items() >= {"event": "fetched it", "level": "info", "node": "a", "superstep": 1}.items()


def test_a_record_s_own_attribute_stays(colour: Colour) -> None:
    """What the caller passes as extra wins."""
    handler, stream = written("%(node)s")

    def own(state: State) -> State:
        log.info("hi", extra={"node": "kubernetes-7"})
        return {}

    with attached(handler):
        colour.invoke(chain(a=own), {"xs": []})

    assert stream.getvalue() == "kubernetes-7\n"


def test_a_failure_of_the_filter_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, colour: Colour
) -> None:
    """Records pass without fields."""

    def broken() -> dict[str, Any]:
        raise RuntimeError("no fields")

    monkeypatch.setattr(correlation, "run_fields", broken)
    monkeypatch.setattr(correlation, "_reported", set())
    handler, stream = written("%(message)s")
    with attached(handler):
        for _ in range(2):
            colour.invoke(chain(a=node), {"xs": []})

    assert stream.getvalue() == "fetched it\nfetched it\n"
    assert [r.getMessage() for r in caplog.records if r.name == "tracegraph.telemetry"] == [
        "log records get no run fields; this is said once"
    ]


# -- forwarding


def test_records_are_forwarded_with_where_they_come_from(records: Records, trace: Trace, colour: Colour) -> None:
    """Span, severity, time, node and code; what came as extra as attributes."""
    with attached(ForwardingHandler()):
        colour.invoke(chain(saving(), a=node), {"xs": []}, THREAD)

    (record,) = (found for found in records.all if found.event_name is None)
    (span,) = (s for s in trace.ended if s.name == "run_step a")
    assert (record.trace_id, record.span_id) == (span.context.trace_id, span.context.span_id)
    assert (record.body, record.severity_text) == ("fetched it", "INFO")
    expected = {
        "size": 3,
        "gen_ai.step.name": "a",
        "gen_ai.conversation.id": "t",
        "tracegraph.superstep": 1,
        "tracegraph.attempt.number": 1,
        "code.function.name": "node",
    }
    assert dict(record.attributes).items() >= expected.items()
    assert record.attributes["code.file.path"].endswith("test_stdlib_logging.py")
    assert "app.nodes" in records.scopes


@pytest.mark.parametrize(
    ("level", "text"),
    [(5, "TRACE"), (10, "DEBUG"), (20, "INFO"), (25, "INFO"), (30, "WARN"), (40, "ERROR"), (50, "FATAL")],
)
def test_levels_are_severities(records: Records, level: int, text: str) -> None:
    """Levels between two are in the range of the lower."""
    ForwardingHandler().emit(logging.makeLogRecord({"name": "x", "levelno": level, "msg": "m"}))

    (record,) = records.all
    assert record.severity_text == text


def test_outside_a_run_a_forwarded_record_names_none(records: Records) -> None:
    """No run, no node, no span."""
    ForwardingHandler().emit(logging.makeLogRecord({"name": "x", "levelno": 20, "msg": "m"}))

    (record,) = records.all
    assert (record.trace_id, record.span_id) == (0, 0)
    assert [key for key in record.attributes if key.startswith(("tracegraph.", "gen_ai."))] == []


def test_an_exception_is_forwarded_with_the_conventions_attributes(records: Records, colour: Colour) -> None:
    """As on a span."""

    def failing(state: State) -> State:
        try:
            raise ValueError("bad")
        except ValueError:
            log.exception("it failed")
        return {}

    with attached(ForwardingHandler()):
        colour.invoke(chain(a=failing), {"xs": []})

    (record,) = (found for found in records.all if found.event_name is None)
    assert (record.attributes["exception.type"], record.attributes["exception.message"]) == ("ValueError", "bad")


def test_a_structlog_line_on_its_way_to_a_formatter_is_forwarded_as_one(records: Records) -> None:
    """Its event is the body, its fields are attributes."""
    chain_ = [structlog.stdlib.add_log_level, structlog.stdlib.ProcessorFormatter.wrap_for_formatter]
    with attached(ForwardingHandler()):
        structlog.wrap_logger(log, processors=chain_, wrapper_class=structlog.stdlib.BoundLogger).info("hi", n=1)

    (record,) = records.all
    assert (record.body, record.attributes["n"]) == ("hi", 1)
    assert [key for key in record.attributes if key.startswith("_")] == []


class _Complaining(InMemoryLogRecordExporter):
    """An exporter that logs, and fails."""

    def export(self, batch: Any) -> Any:
        log.error("the exporter complains")
        super().export(batch)
        raise RuntimeError("export failed")


def test_an_exporter_that_logs_and_fails_is_not_fed_with_its_own_complaints(caplog: pytest.LogCaptureFixture) -> None:
    """One record, however often the exporter and OpenTelemetry complain about it."""
    exporter = _Complaining()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    use_logger_provider(provider)
    root = logging.getLogger()
    handler = ForwardingHandler()
    root.addHandler(handler)
    try:
        log.info("one")
    finally:
        root.removeHandler(handler)
        use_logger_provider(None)

    assert [found.log_record.body for found in exporter.get_finished_logs()] == ["one"]
    assert any("Exception while exporting" in record.getMessage() for record in caplog.records)


def test_a_value_that_cannot_be_printed_is_forwarded_by_its_type(records: Records) -> None:
    """A log call must not fail for the application's own object."""

    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no")

    circle: dict[str, Any] = {}
    circle["self"] = circle
    with attached(ForwardingHandler()):
        log.info("odd", extra={"worse": Unprintable(), "circle": circle})

    (record,) = records.all
    assert record.attributes["worse"] == "(Unprintable that cannot be printed)"
    assert "circle" in record.attributes


# -- lines, where nothing was configured


def test_setup_writes_the_standard_library_s_records_as_json_too(records: Records, trace: Trace, colour: Colour) -> None:
    """One form for both; extras are fields, exceptions are data."""
    stream = io.StringIO()

    def mixed(state: State) -> State:
        log.debug("not written")
        log.info("fetched %s", "it", extra={"size": 3})
        structlog.get_logger("other").info("and so is this")
        try:
            raise ValueError("bad")
        except ValueError:
            log.exception("it failed")
        return {}

    log.setLevel(logging.NOTSET)
    with bare_root():
        configure_logs("json", stream=stream)
        colour.invoke(chain(saving(), a=mixed), {"xs": []}, THREAD)

    first, second, third = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first.items() >= {"event": "fetched it", "size": 3, "logger": "app.nodes", "level": "info"}.items()
    assert second.items() >= {"event": "and so is this", "logger": "other"}.items()
    assert third["exception"][0]["exc_type"] == "ValueError"
    (span,) = (s.context for s in trace.ended if s.name == "run_step a")
    for found in (first, second, third):
        assert found.items() >= {"node": "a", "thread_id": "t", "span_id": f"{span.span_id:016x}"}.items()
    forwarded = [record.body for record in records.all if record.event_name is None]
    assert forwarded == ["fetched it", "and so is this", "it failed"]


def test_configured_again_the_last_form_counts() -> None:
    """No line is written twice."""
    first, second = io.StringIO(), io.StringIO()
    with bare_root() as root:
        configure_logs("json", stream=first)
        configure_logs("console", stream=second, level="DEBUG")
        logging.getLogger("x").debug("hello")
        structlog.get_logger().debug("hello too")
        count = len(root.handlers)

    assert first.getvalue() == ""
    assert second.getvalue().count("hello") == 2
    assert count == 2


def test_a_root_logger_with_handlers_is_left_alone() -> None:
    """The application's own, its level too."""
    own = logging.NullHandler()
    with bare_root() as root:
        root.addHandler(own)
        configure_logs("json", stream=io.StringIO())

        assert (root.handlers, root.level) == ([own], logging.WARNING)
