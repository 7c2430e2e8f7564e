"""What the signals ask of the SDK, which is most of what they cost: counted, for a clock would say more of the machine."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from measured import Measured
from records import recording
from small_graphs import chain, says

from tracegraph.config import get_config
from tracegraph.messages import AIMessage
from tracegraph.telemetry import use_meter_provider, use_provider

ASKED = ("Tracer.start_span", "Histogram.record", "Counter.add", "UpDownCounter.add", "Logger.emit")
ANSWER = AIMessage("hello", usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7})


@pytest.fixture(autouse=True)
def every_signal(provider: Any) -> Iterator[None]:
    """Spans, metrics and log records go to the SDK."""
    measured = Measured()
    use_provider(provider)
    use_meter_provider(measured.provider)
    with recording():
        yield
    use_meter_provider(None)
    use_provider(None)
    measured.provider.shutdown()


def asked_by(run: Callable[[], Any]) -> Counter[str]:
    """Return how often *run* asks the SDK for what, the second time."""
    run()
    seen: Counter[str] = Counter()

    def profile(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and "opentelemetry" in code.co_filename and code.co_qualname in ASKED:
            seen[code.co_qualname] += 1

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def answers(*, calls: int, chunks: int = 0) -> Callable[[], Any]:
    """Return runs of a graph whose one node has a model answer so often."""

    def ask(_: Any) -> Any:
        for _ in range(calls):
            (run,) = get_config()["callbacks"].on_chat_model_start({"name": "m"}, [[]], model="m")
            for _ in range(chunks):
                run.on_llm_new_token("x")
            run.on_llm_end(ANSWER)

    app = chain(a=ask)
    return lambda: app.invoke({})


def steps(number: int) -> Callable[[], Any]:
    """Return runs of so many steps."""
    app = chain(**{f"n{i:02}": says("x") for i in range(number)})
    return lambda: app.invoke({})


def test_a_step_is_one_span_and_one_measurement() -> None:
    """And no record: those are of what happens to a run, and of what fails."""
    assert asked_by(steps(30)) - asked_by(steps(10)) == {"Tracer.start_span": 20, "Histogram.record": 20}


def test_a_run_is_one_span_one_measurement_and_two_records() -> None:
    """Beside those of its step; how many runs are active is asked for when it is read."""
    assert asked_by(steps(1)) == {"Tracer.start_span": 2, "Histogram.record": 2, "Logger.emit": 2}


def test_a_model_call_is_one_span_and_three_measurements() -> None:
    """Its duration and tokens in and out; sums of tokens are asked for when they are read."""
    more = asked_by(answers(calls=10)) - asked_by(answers(calls=5))

    assert more == {"Tracer.start_span": 5, "Histogram.record": 15}


def test_a_chunk_is_one_measurement() -> None:
    """As the conventions have it."""
    more = asked_by(answers(calls=1, chunks=10)) - asked_by(answers(calls=1, chunks=5))

    assert more == {"Histogram.record": 5}
