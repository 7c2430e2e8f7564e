"""What logging costs those who do not log: counted in Python calls, which a busy machine does not change."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from records import recording
from small_graphs import State, chain

from tracegraph.telemetry import ForwardingHandler, RunFieldsFilter
from tracegraph.telemetry.log_lines import _Configured, configure_logs
from tracegraph.telemetry.mirroring import use_events


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    use_events(None)
    structlog.reset_defaults()
    _Configured.processors = None


def silent(state: State) -> State:
    return {"n": 1}


SHORT, LONG = (chain(**{f"n{i}": silent for i in range(steps)}) for steps in (5, 25))


def calls(app: Any) -> int:
    """Return how many Python functions one run calls, the second time."""
    app.invoke({"n": 0}, {"recursion_limit": 100})
    count = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        app.invoke({"n": 0}, {"recursion_limit": 100})
    finally:
        sys.setprofile(None)
    return count


def calls_of_20_steps() -> int:
    return calls(LONG) - calls(SHORT)


def test_configured_lines_cost_a_silent_step_nothing() -> None:
    """Processors, filters and handlers are there; nobody logs, and there is no provider."""
    before = calls_of_20_steps()
    configure_logs("json", stream=io.StringIO())
    root, handler = logging.getLogger(), ForwardingHandler()
    handler.addFilter(RunFieldsFilter())
    root.addHandler(handler)
    try:
        assert calls_of_20_steps() == before
    finally:
        root.removeHandler(handler)


def test_a_provider_without_records_costs_a_step_nothing() -> None:
    """``events="spans"``: no observer is there."""
    before = calls_of_20_steps()
    use_events("spans")
    with recording():
        assert calls_of_20_steps() == before


def test_a_provider_that_nobody_reads_costs_a_step_nothing() -> None:
    """A provider without processors says itself that it is not enabled, where its API is new enough to."""
    from opentelemetry.sdk._logs import LoggerProvider

    from tracegraph.telemetry import use_logger_provider

    provider = LoggerProvider(shutdown_on_exit=False)
    if not hasattr(provider.get_logger("x"), "enabled"):
        pytest.skip("this API has no way to ask")
    before = calls_of_20_steps()
    use_logger_provider(provider)
    try:
        assert calls_of_20_steps() == before
    finally:
        use_logger_provider(None)
