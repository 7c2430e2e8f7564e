"""Lines that the application logs go to the OpenTelemetry Logger API: from structlog and from the standard library.

Directly, and not through the SDK's ``LoggingHandler``, which is deprecated. A line goes under its logger's
name, belongs to the span that is current where it was logged, and names node, run and thread as spans do.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from tracegraph.telemetry import semconv
from tracegraph.telemetry.correlation import report_once, run_fields
from tracegraph.telemetry.log_provider import logger_in_use

__all__ = ["ForwardingHandler", "forward_line"]

_NAMES_ON_SPANS: Final = {
    "run_id": semconv.RUN_ID,
    "thread_id": semconv.CONVERSATION_ID,
    "node": semconv.STEP_NAME,
    "superstep": semconv.SUPERSTEP,
    "attempt": semconv.ATTEMPT_NUMBER,
}
_OF_THE_RECORD_ITSELF: Final = frozenset({"trace_id", "span_id", "trace_flags"})
_TOLD_OTHERWISE: Final = frozenset(
    {"event", "level", "level_number", "logger", "timestamp", "exc_info", "stack_info", "positional_args"}
)
_OF_EVERY_RECORD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "msg": logging.INFO,
    "log": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "err": logging.ERROR,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "failure": logging.ERROR,
    "fatal": logging.CRITICAL,
    "critical": logging.CRITICAL,
}
_MAX_DEPTH: Final = 8

_busy = threading.local()
"""``now``: this thread is forwarding a line. What the SDK logs meanwhile would be forwarded for ever."""


def forward_line(line_logger: Any, method: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Forward a line, as a structlog processor; the line itself passes unchanged, and it never raises.

    Put it behind what adds fields, and before what turns exceptions into text and the line into output. It
    does nothing while no logger provider is set.
    """
    try:
        name = event_dict.get("logger") or getattr(line_logger, "name", None) or "structlog"
        level = _LEVELS.get(str(event_dict.get("level", method)).lower(), logging.INFO)
        _forward(str(name), level, time.time_ns(), event_dict.get("event"), event_dict)
    except Exception as error:  # noqa: BLE001  # a log call must not fail for this
        report_once("log lines are not forwarded to OpenTelemetry", error)
    return event_dict


class ForwardingHandler(logging.Handler):
    """Forwards the records of the standard library's logging; does nothing while no logger provider is set.

    What OpenTelemetry itself logs is left out: an exporter that fails would have its complaints to export.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Forward one record; never raises."""
        if record.name == "opentelemetry" or record.name.startswith("opentelemetry."):
            return
        try:
            extra = {key: value for key, value in vars(record).items() if key not in _OF_EVERY_RECORD}
            body: Any = record.msg
            if isinstance(body, Mapping) and "event" in body:  # a line of structlog's on its way to a ProcessorFormatter
                extra = {**{key: value for key, value in extra.items() if not key.startswith("_")}, **body}
                body = body["event"]
            elif record.args or not isinstance(body, (str, Mapping)):
                body = record.getMessage()
            extra["exc_info"] = record.exc_info or extra.get("exc_info")
            extra[semconv.CODE_FILE_PATH] = record.pathname
            extra[semconv.CODE_FUNCTION_NAME] = record.funcName
            extra[semconv.CODE_LINE_NUMBER] = record.lineno
            _forward(record.name, record.levelno, int(record.created * 1e9), body, extra)
        except Exception as error:  # noqa: BLE001  # as above
            report_once("log records are not forwarded to OpenTelemetry", error)


def _forward(name: str, level: int, at_ns: int, body: Any, fields: Mapping[str, Any]) -> None:
    if getattr(_busy, "now", False) or (logger := logger_in_use(name)) is None:
        return
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.context import get_current, get_value

    if get_value("suppress_instrumentation"):  # an exporter at work
        return
    _busy.now = True
    try:
        severity = _severity(level, SeverityNumber)
        logger.emit(
            LogRecord(
                timestamp=at_ns,
                context=get_current(),
                severity_number=severity,
                severity_text=severity.name,
                body=_plain(body),
                attributes=_attributes(fields),
            )
        )
    finally:
        _busy.now = False


def _severity(level: int, numbers: Any) -> Any:
    """Return the lowest severity of the range that a level of Python's lies in."""
    for least, name in ((50, "FATAL"), (40, "ERROR"), (30, "WARN"), (20, "INFO"), (10, "DEBUG")):
        if level >= least:
            return numbers[name]
    return numbers.TRACE


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    here = run_fields()
    attributes: dict[str, Any] = {}
    for key, value in (here | dict(fields)).items():
        if key in _TOLD_OTHERWISE or key.startswith("_"):
            continue
        if key in here and value == here[key]:
            if key not in _OF_THE_RECORD_ITSELF:
                attributes[_NAMES_ON_SPANS[key]] = value
        else:
            attributes[key] = _plain(value)
    error = _error(fields.get("exc_info"))
    if error is not None:
        from tracegraph.telemetry.failure import exception_attributes

        attributes |= exception_attributes(error)
    return attributes


def _error(exc_info: Any) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if len(exc_info) == 3 else None
    return sys.exc_info()[1] if exc_info else None


def _plain(value: Any, depth: int = 0) -> Any:
    """Return *value* as the API takes it: what is neither a scalar nor made of such becomes its text."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if depth < _MAX_DEPTH and isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in value]
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # the application's own object
        return f"({type(value).__name__} that cannot be printed)"
