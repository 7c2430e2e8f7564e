"""What a run's calls come to, on its root span and the record of its end; and that nothing counts a token twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from measured import Measured
from opentelemetry.sdk.metrics import MeterProvider
from records import Records
from small_graphs import State, chain, parallel

from tracegraph.config import get_config
from tracegraph.graph import START, StateGraph
from tracegraph.messages import AIMessage
from tracegraph.telemetry.options import DEFAULT_OPTIONS, TelemetryOptions, use_options

TOTALS = "tracegraph.usage."
TOKEN_BUCKETS = tuple(4**power for power in range(14))


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    chosen: Colour = request.param
    return chosen


@pytest.fixture
def options() -> Iterator[Callable[..., None]]:
    yield lambda **given: use_options(TelemetryOptions(**given))
    use_options(DEFAULT_OPTIONS)


def spend(count_in: int | None, count_out: int = 0, **details: int) -> None:
    """Report one model call, which tells its tokens unless they are None."""
    (run,) = get_config()["callbacks"].on_chat_model_start({"name": "fake"}, [[]], model="m", provider="openai")
    usage: Any = None
    if count_in is not None:
        usage = {"input_tokens": count_in, "output_tokens": count_out, "total_tokens": count_in + count_out}
        if details:
            usage["input_token_details"] = {k: v for k, v in details.items() if k != "reasoning"}
            usage["output_token_details"] = {k: v for k, v in details.items() if k == "reasoning"}
    run.on_llm_end(AIMessage("x", usage_metadata=usage))


def look_up() -> None:
    get_config()["callbacks"].on_tool_start({"name": "lookup"}, "x").on_tool_end("y")


def body(*calls: Callable[[], Any]) -> Any:
    def work(_: State) -> State:
        for call in calls:
            call()
        return {"xs": []}

    return work


def totals(attributes: Any) -> dict[str, int]:
    return {key.removeprefix(TOTALS): value for key, value in attributes.items() if key.startswith(TOTALS)}


def with_subgraph() -> Any:
    inner = parallel(
        {"name": "inner"},
        a=body(lambda: spend(10, 5, cache_read=4, cache_creation=2, reasoning=3)),
        b=body(lambda: spend(7, 1), look_up),
    )
    builder: Any = StateGraph(State)
    builder.add_node("sub", inner).add_node("last", body(lambda: spend(100, 20), lambda: spend(None), look_up))
    return builder.add_edge(START, "sub").add_edge("sub", "last").compile(name="whole")


WHOLE = {
    "input_tokens": 117,
    "output_tokens": 26,
    "cache_read.input_tokens": 4,
    "cache_write.input_tokens": 2,
    "reasoning.output_tokens": 3,
    "model_calls": 4,
    "tool_calls": 2,
}


def test_root_says_what_all_calls_come_to(spans: Any, records: Records, colour: Colour) -> None:
    """Those of runs inside too, and only there: a sum over the trace under the calls' own names counts each token once."""
    colour.invoke(with_subgraph(), {})

    assert totals(spans.one("invoke_workflow whole").attributes) == WHOLE
    assert not totals(spans.one("invoke_workflow inner").attributes)
    assert sum(span.attributes.get("gen_ai.usage.input_tokens", 0) for span in spans.finished) == 117
    whole, inner = (
        next(r for r in records.named("run.ended") if r.attributes["gen_ai.workflow.name"] == name) for name in ("whole", "inner")
    )
    assert totals(whole.attributes) == WHOLE
    assert not totals(inner.attributes)


def test_record_has_the_totals_without_any_span(records: Records, colour: Colour) -> None:
    """Where runs are not traced, or are sampled out."""
    colour.invoke(with_subgraph(), {})

    assert [found for record in records.named("run.ended") if (found := totals(record.attributes))] == [WHOLE]


def test_what_nobody_told_is_absent(spans: Any, records: Records, colour: Colour) -> None:
    """Not 0: neither tokens that no answer told, nor calls of a graph that makes none."""
    colour.invoke(chain(a=body(lambda: spend(None))), {})
    assert totals(spans.one("invoke_workflow").attributes) == {"model_calls": 1}
    spans.clear()
    records.clear()

    colour.invoke(chain(a=body()), {})
    assert not totals(spans.one("invoke_workflow").attributes)
    assert not totals(records.one("run.ended").attributes)


def test_each_run_counts_for_itself(spans: Any, colour: Colour) -> None:
    """Totals start at nothing with each root run, and a failed run has those until its end."""

    def boom() -> None:
        raise ValueError("boom")

    for _ in range(2):
        with pytest.raises(ValueError, match="boom"):
            colour.invoke(chain(a=body(lambda: spend(3, 1), boom)), {})

    assert [totals(s.attributes) for s in spans.named("invoke_workflow")] == [
        {"input_tokens": 3, "output_tokens": 1, "model_calls": 1}
    ] * 2


# -- tokens in metrics, under the released conventions


def tokens_of(measured: Measured) -> list[str]:
    return sorted({point.name for point in measured.all() if "token" in point.name})


def test_released_conventions_have_one_metric_of_tokens(measured: Measured, colour: Colour, options: Callable[..., None]) -> None:
    """A histogram by type, in place of all newer ones."""
    options(semconv="1.41")
    colour.invoke(chain({"name": "agent"}, think=body(lambda: spend(50, 30, cache_read=20, cache_creation=10))), {})

    assert tokens_of(measured) == ["gen_ai.client.token.usage"]
    for kind, count in (("input", 50), ("output", 30)):
        point = measured.one("gen_ai.client.token.usage", gen_ai_token_type=kind)
        assert (point.unit, point.count, point.sum, point.bounds) == ("{token}", 1, count, TOKEN_BUCKETS)
        assert point.attributes == {
            "gen_ai.workflow.name": "agent",
            "gen_ai.step.name": "think",
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "m",
            "gen_ai.token.type": kind,
        }


def test_released_conventions_leave_tokens_out_that_nobody_told(
    measured: Measured, colour: Colour, options: Callable[..., None]
) -> None:
    """Absent, never 0; the call itself is measured as ever."""
    options(semconv="1.41")
    colour.invoke(chain(a=body(lambda: spend(None))), {})

    assert not tokens_of(measured)
    assert measured.one("gen_ai.client.operation.duration").count == 1


def test_released_name_is_not_used_otherwise(measured: Measured, colour: Colour) -> None:
    """Both at once would be twice the tokens."""
    colour.invoke(chain(a=body(lambda: spend(1, 1))), {})

    assert "gen_ai.client.token.usage" not in tokens_of(measured)
    assert len(tokens_of(measured)) == 4


# -- model calls that something else traces


class Instrumented:
    """What instrumentations of providers do: each call has their span, and their measurements under the standard's names."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter("opentelemetry.instrumentation.openai_v2")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}")
        self._duration = meter.create_histogram("gen_ai.client.operation.duration", "s")

    def spend(self, count: int) -> None:
        spend(count)
        self._duration.record(0.1, {"gen_ai.operation.name": "chat"})
        self._tokens.record(count, {"gen_ai.operation.name": "chat", "gen_ai.token.type": "input"})


@pytest.mark.parametrize("semconv", ["latest", "1.41"])
def test_calls_whose_spans_others_make_are_measured_by_them(
    measured: Measured, spans: Any, colour: Colour, options: Callable[..., None], semconv: str
) -> None:
    """One span, one count of tokens: of ours nothing is left but what is said of the run and its other calls."""
    options(model_spans="never", semconv=semconv)
    theirs = Instrumented(measured.provider)
    colour.invoke(chain({"name": "agent"}, think=body(lambda: theirs.spend(40), look_up)), {})

    assert sum(point.sum for point in measured.all() if "token" in point.name) == 40
    assert sum(point.count for point in measured.of("gen_ai.client.operation.duration")) == 1
    assert measured.one("gen_ai.execute_tool.duration").count == 1
    assert measured.one("gen_ai.invoke_workflow.inference_calls").sum == 1
    assert totals(spans.one("invoke_workflow agent").attributes)["input_tokens"] == 40


@pytest.mark.parametrize(
    ("given", "is_measured"),
    [
        ({"model_spans": "never", "model_metrics": "always"}, True),
        ({"model_metrics": "never"}, False),
        ({"model_metrics": "with_spans"}, True),
    ],
)
def test_metrics_of_models_can_be_chosen_apart_from_spans(
    measured: Measured, colour: Colour, options: Callable[..., None], given: Any, is_measured: bool
) -> None:
    """Some instrumentations only trace, others only measure."""
    options(**given)
    colour.invoke(chain(a=body(lambda: spend(1, 1))), {})

    assert bool([point for point in measured.all() if point.name.startswith("gen_ai.client.")]) is is_measured


REAL = """
import sys
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from typing import TypedDict
from tracegraph import START, StateGraph
from tracegraph.telemetry import TelemetryOptions, setup

reader, provider = InMemoryMetricReader(), TracerProvider()
metrics.set_meter_provider(MeterProvider([reader]))
setup(provider=provider, store=False, options=TelemetryOptions(model_spans="never", model_metrics=sys.argv[1]))
LangChainInstrumentor().instrument(tracer_provider=provider)

class State(TypedDict, total=False):
    n: int

usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
model = GenericFakeChatModel(messages=iter([AIMessage("x", usage_metadata=usage)]))
graph = StateGraph(State).add_node("ask", lambda _: {"n": len(model.invoke("hi").content)}).add_edge(START, "ask").compile()
graph.invoke({})
found = [m for r in reader.get_metrics_data().resource_metrics for s in r.scope_metrics for m in s.metrics]
used = [p for m in found if m.name == "gen_ai.client.inference.usage.input_tokens" for p in m.data.data_points]
print(sum(point.value for point in used))
"""


@pytest.mark.parametrize(("model_metrics", "tokens"), [("with_spans", 0), ("always", 9)])
def test_real_instrumentation_that_only_traces_leaves_measuring_to_us_if_asked(model_metrics: str, tokens: int) -> None:
    """OpenInference's, for LangChain."""
    done = subprocess.run([sys.executable, "-c", REAL, model_metrics], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tokens}\n"
