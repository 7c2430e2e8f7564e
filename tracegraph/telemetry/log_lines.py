"""Log lines as JSON or for a person, for an application that has not configured logging: structlog's, and the standard library's.

This is the one place that imports structlog. Tracebacks show no local variables: those are content.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO, TypeAlias

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.correlation import add_run_fields, report_once
from tracegraph.telemetry.forwarding import ForwardingHandler, forward_line
from tracegraph.telemetry.quoted_values import without_values, without_values_inside

__all__ = ["LogForm", "check_form", "configure_logs"]

LogForm: TypeAlias = Literal["json", "console"]

_as_dicts: Final = ExceptionDictTransformer(show_locals=False)


def _as_dicts_without_values(exc_info: Any) -> Any:
    """Return an exception and its causes as data; the values that one refuses are as much content as local variables are."""
    return without_values_inside(_as_dicts(exc_info))


def _print_without_values(out: TextIO, exc_info: Any) -> None:
    whole = io.StringIO()
    structlog.dev.plain_traceback(whole, exc_info)
    out.write(without_values(whole.getvalue()))


_dict_tracebacks: Final = structlog.processors.ExceptionRenderer(_as_dicts_without_values)
_stamp: Final = structlog.processors.TimeStamper(fmt="iso", utc=True)


class _Configured:
    """What was configured here, to tell it from the application's own."""

    processors: list[Any] | None = None
    handlers: tuple[logging.Handler, ...] = ()
    lock = threading.Lock()


def configure_logs(form: LogForm = "json", *, level: int | str = "INFO", stream: TextIO | None = None) -> None:
    """Write log lines to *stream* (standard error), with the fields of the run they come from; forward them to OpenTelemetry.

    structlog is left alone if the application has configured it, the standard library's logging if its root
    logger has handlers; each for itself. Called again, what was configured here is replaced.

    Args:
        form: ``json``: one object a line; ``console``: for a person, in colours on a terminal.
        level: the lowest level that is written, a number or a name of the standard library's.

    Raises:
        InvalidInputError: *form* or *level* is unknown.
    """
    check_form(form)
    number = level if isinstance(level, int) else logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise InvalidInputError(f"there is no log level {level!r}; known: {', '.join(logging.getLevelNamesMapping())}")
    out = sys.stderr if stream is None else stream
    with _Configured.lock:
        _configure_structlog(form, number, out)
        _configure_logging(form, number, out)


def check_form(form: LogForm) -> None:
    """Refuse a form that :func:`configure_logs` refuses, and change nothing."""
    if form not in ("json", "console"):
        raise InvalidInputError(f"logs are written as 'json' or 'console', not {form!r}")


def _configure_structlog(form: LogForm, level: int, out: TextIO) -> None:
    if structlog.is_configured() and structlog.get_config()["processors"] is not _Configured.processors:
        return
    _Configured.processors = [
        structlog.contextvars.merge_contextvars,
        add_run_fields,
        _add_logger_name,
        structlog.processors.add_log_level,
        structlog.processors.StackInfoRenderer(),
        _stamp,
        forward_line,
        *_rendering(form, out),
    ]
    structlog.configure(
        processors=_Configured.processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        context_class=dict,
        logger_factory=lambda *names: _LineLogger(out, names[0] if names else None),
        cache_logger_on_first_use=False,
    )


def _configure_logging(form: LogForm, level: int, out: TextIO) -> None:
    root = logging.getLogger()
    if any(handler not in _Configured.handlers for handler in root.handlers):
        return
    for handler in _Configured.handlers:
        root.removeHandler(handler)
    written = logging.StreamHandler(out)
    written.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.ExtraAdder(),
                add_run_fields,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                _stamp,
            ],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(form, out)],
        )
    )
    _Configured.handlers = (written, ForwardingHandler())
    for handler in _Configured.handlers:
        root.addHandler(handler)
    root.setLevel(level)


def _rendering(form: LogForm, out: TextIO) -> list[Any]:
    if form == "json":
        return [_dict_tracebacks, _render_json]
    is_terminal = bool(getattr(out, "isatty", lambda: False)())
    return [structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=_print_without_values)]


_json: Final = structlog.processors.JSONRenderer(ensure_ascii=False)


def _render_json(logger: Any, method: str, event_dict: MutableMapping[str, Any]) -> str:
    """Return the line as JSON; where its values cannot be written as such, their ``repr``."""
    try:
        return str(_json(logger, method, event_dict))
    except Exception as error:  # noqa: BLE001  # keys that are no texts, values that contain themselves
        report_once("log lines hold what JSON cannot", error)
        return str(_json(logger, method, {str(key): _shown(value) for key, value in event_dict.items()}))


def _shown(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # the application's own object
        return f"({type(value).__name__} that cannot be printed)"


def _add_logger_name(logger: Any, _method: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if (name := getattr(logger, "name", None)) is not None:
        event_dict.setdefault("logger", name)
    return event_dict


class _LineLogger(structlog.PrintLogger):
    """Writes finished lines, whole, and never fails: a closed stream must not end a run."""

    def __init__(self, out: TextIO, name: str | None) -> None:
        super().__init__(out)
        self.name = name

    def msg(self, message: str) -> None:
        """Write one line."""
        try:
            super().msg(message)
        except Exception as error:  # noqa: BLE001  # whatever the stream raises
            report_once("log lines cannot be written", error)

    log = debug = info = warn = warning = fatal = failure = err = error = critical = exception = msg
