"""Whatever the graph: metrics agree with the spans of the same run, and no time series is made for an id."""

from __future__ import annotations

from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from hypothesis import given
from libraries import ours
from measured import Measured
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from recipe_build import build
from recipe_strategies import recipes
from recipes import Recipe

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.telemetry import use_meter_provider, use_provider

ALLOWED = {
    "gen_ai.workflow.name", "gen_ai.step.name", "tracegraph.run.status", "tracegraph.task.status", "tracegraph.superstep.status",
    "tracegraph.nested", "error.type",
}  # fmt: skip
INSTRUMENTS = {
    "gen_ai.invoke_workflow.duration": "invoke_workflow",
    "gen_ai.run_step.duration": "run_step",
    "tracegraph.superstep.duration": "superstep",
}


@pytest.mark.hand_made_spans("Hypothesis seeds the random ids of spans, so those of its examples cannot be told apart")
@pytest.mark.parametrize("colour", [SYNC, ASYNC], ids=lambda colour: colour.name)
@given(recipe=recipes())
def test_metrics_agree_with_spans(colour: Colour, recipe: Recipe) -> None:
    """As many, as long, with the same error types; nothing stays active; only names and statuses are attributes."""
    measured, exporter = Measured(), InMemorySpanExporter()
    tracing = TracerProvider(shutdown_on_exit=False)
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    use_provider(tracing)
    use_meter_provider(measured.provider)
    try:
        run(colour, recipe)
    finally:
        use_provider(None)
        use_meter_provider(None)
    points, spans = measured.all(), exporter.get_finished_spans()
    measured.provider.shutdown()

    for name, word in INSTRUMENTS.items():
        found = [point for point in points if point.name == name]
        theirs = [span for span in spans if span.name.split()[0] == word]
        assert sum(point.count for point in found) == len(theirs)
        assert {point.attributes.get("error.type") for point in found} == {s.attributes.get("error.type") for s in theirs}
        lasted = sum(span.end_time - span.start_time for span in theirs) / 1e9
        assert sum(point.sum for point in found) == pytest.approx(lasted, abs=1e-6)
    assert {point.sum for point in points if point.name == "tracegraph.runs.active"} == {0}
    ids = {str(value) for span in spans for key, value in span.attributes.items() if key.endswith((".id", ".path"))}
    for point in points:
        assert point.attributes.keys() <= ALLOWED
        assert not ids & {str(value) for value in point.attributes.values()}


def run(colour: Colour, recipe: Recipe) -> Any:
    """Run the recipe on a thread; an error of the run is part of it."""
    app = build(recipe, ours(), colour.name, checkpointer=InMemorySaver())
    config = {"recursion_limit": recipe.recursion_limit, "configurable": {"thread_id": "thread-1"}}
    try:
        return colour.invoke(app, recipe.input(), config)
    except Exception:
        return None
