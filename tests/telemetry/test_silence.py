"""With every signal off, telemetry is not there: a step makes the very same Python calls as one that nobody could watch."""

from __future__ import annotations

import asyncio
import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pytest
from colours import SYNC, Colour
from measured import Measured
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NoOpTracerProvider
from small_graphs import chain, says

from tracegraph.pregel import launch
from tracegraph.telemetry import use_meter_provider, use_provider

STEPS = 40


MEASURES = 3


def calls_of(run: Callable[[], Any]) -> Counter[str]:
    """Return how often each Python function is called by *run* in this thread: the fewest of some measures.

    A run may also start one more worker thread, or take two completions at once: what it always does is in every measure.
    """
    run()  # what is made once has been made
    return reduce(operator.and_, (_calls_once(run) for _ in range(MEASURES)))


def _calls_once(run: Callable[[], Any]) -> Counter[str]:
    seen: Counter[str] = Counter()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            seen[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


@pytest.fixture(params=["no provider", "providers that do nothing", "sampled out"])
def signals_off(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "providers that do nothing":
        use_provider(NoOpTracerProvider())
        use_meter_provider(NoOpMeterProvider())
    if request.param == "sampled out":
        use_provider(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    yield
    use_provider(None)
    use_meter_provider(None)


def per_step(colour: Colour) -> dict[str, float]:
    """Return the calls that each further step of a run makes."""

    def of(length: int) -> Counter[str]:
        app = chain({"name": "g"}, **{f"n{i:02}": says("x") for i in range(length)})
        loop = asyncio.new_event_loop()
        run = (lambda: app.invoke({})) if colour is SYNC else (lambda: loop.run_until_complete(app.ainvoke({})))
        try:
            return calls_of(run)
        finally:
            loop.close()

    short, long = of(STEPS), of(2 * STEPS)
    return {name: (long[name] - short[name]) / STEPS for name in long if long[name] != short[name]}


def test_steps_call_the_same_functions_as_without_telemetry(
    signals_off: None, colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Function by function, as often as in a program that has no telemetry at all."""
    off = per_step(colour)
    monkeypatch.setattr(launch, "observers_for_root", lambda started: ([], None))
    absent = per_step(colour)

    assert off == absent
    assert sum(off.values()) > 10
    assert not [name for name in off if "/telemetry/" in name or "opentelemetry" in name]


def test_one_more_call_in_a_step_would_be_seen(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself can fail: an observer that wants tasks is found."""
    absent = per_step(colour)
    measured = Measured()
    use_meter_provider(measured.provider)
    try:
        watched = per_step(colour)
    finally:
        use_meter_provider(None)
        measured.provider.shutdown()

    assert sum(watched.values()) > sum(absent.values()) + 2
