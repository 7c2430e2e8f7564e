"""Where in a run the code is that logs a line: read when it does, so that nobody pays who logs nothing.

Loads neither OpenTelemetry nor structlog.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

from tracegraph.current import CURRENT

__all__ = ["RUN_FIELDS", "RunFieldsFilter", "add_run_fields", "report_once", "run_fields"]

RUN_FIELDS: Final = ("trace_id", "span_id", "trace_flags", "run_id", "thread_id", "node", "superstep", "attempt")
"""Every field there may be; ``superstep`` and ``attempt`` are numbers, the others texts."""

logger = logging.getLogger("tracegraph.telemetry")
_reported: set[str] = set()


def run_fields() -> dict[str, Any]:
    """Return the fields of the code that runs here: of the span it is in, and of the node of the innermost run around it.

    Empty outside a run (and outside any span). A thread that node code starts itself has to run in
    ``contextvars.copy_context()`` to be inside; ``asyncio.to_thread`` and tasks are so by themselves.

    >>> run_fields()
    {}
    """
    found: dict[str, Any] = {}
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None:
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            found["trace_id"] = f"{span.trace_id:032x}"
            found["span_id"] = f"{span.span_id:016x}"
            found["trace_flags"] = f"{span.trace_flags:02x}"
    here = CURRENT.get()
    if here is not None:
        found |= here.log_fields
    return found


def add_run_fields(_logger: Any, _method: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add :func:`run_fields` to a line, as a structlog processor. What the line says already stays; it never raises.

    >>> import structlog
    >>> structlog.wrap_logger(structlog.PrintLogger(), processors=[add_run_fields, structlog.processors.KeyValueRenderer()]).info(
    ...     "hi"
    ... )
    event='hi'
    """
    try:
        for key, value in run_fields().items():
            event_dict.setdefault(key, value)
    except Exception as error:  # noqa: BLE001  # a log call must not fail for this
        report_once("log lines get no run fields", error)
    return event_dict


class RunFieldsFilter(logging.Filter):
    """Adds :func:`run_fields` to the records of the standard library's logging; lets every record pass.

    Put it on a *handler*: a logger's own filters do not see what its children log. A ``QueueHandler`` needs it
    too, since what stands behind the queue runs elsewhere. Outside a run a record has none of the fields, so
    a format that names them wants ``logging.Formatter(..., defaults=dict.fromkeys(RUN_FIELDS, "-"))``.

    >>> record = logging.makeLogRecord({"msg": "hi"})
    >>> RunFieldsFilter().filter(record), hasattr(record, "run_id")
    (True, False)
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields that *record* does not have."""
        try:
            for key, value in run_fields().items():
                record.__dict__.setdefault(key, value)
        except Exception as error:  # noqa: BLE001  # as above
            report_once("log records get no run fields", error)
        return True


def report_once(what: str, error: BaseException) -> None:
    """Log *what* goes wrong with logging, the first time that it does."""
    if what not in _reported:
        _reported.add(what)  # before it is logged, which may come here again
        logger.error("%s; this is said once", what, exc_info=error)
