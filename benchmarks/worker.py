"""One process that measures one library in one mode, one measurement per line of standard input.

The parent keeps a worker for each library and mode and asks them in turn, so that whatever else the
machine does meanwhile falls on all of them alike.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.case import Case, load
from benchmarks.clocks import Clocks
from benchmarks.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["METRICS", "MODES", "serve"]

MODES = ("untraced", "sampled out", "traced")
METRICS = "traced + metrics"
"""Of tracegraph alone."""

QUEUE_SIZE = 1 << 17
"""Spans waiting for export. Above any run here: a dropped span would make the one who drops look faster."""


def set_up_tracing(library: str, mode: str) -> Callable[[], int]:
    """Install an SDK provider for *mode*; return a function that flushes and counts the spans exported so far."""
    if mode == "untraced":
        return lambda: 0
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

    class EncodeOnly(SpanExporter):
        """Does all the work of an OTLP exporter but the sending."""

        count = 0

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            encode_spans(spans).SerializeToString()
            self.count += len(spans)
            return SpanExportResult.SUCCESS

    exporter = EncodeOnly()
    provider = TracerProvider(sampler=ALWAYS_OFF if mode == "sampled out" else ALWAYS_ON)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=QUEUE_SIZE))
    trace.set_tracer_provider(provider)
    if mode == METRICS:
        from opentelemetry import metrics
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader

        # What a periodic export costs has nothing to do with steps; recording does.
        metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    if library == "langgraph":
        # LangGraph makes no OpenTelemetry spans of its own.
        from openinference.instrumentation.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=provider)

    def flush() -> int:
        provider.force_flush()
        return exporter.count

    return flush


def _run(case: Case, colour: str, runs: int) -> None:
    config = {"recursion_limit": 100_000}
    if colour == "sync":
        for _ in range(runs):
            case.graph.invoke(case.input, config)
        return

    async def go() -> None:
        for _ in range(runs):
            await case.graph.ainvoke(case.input, config)

    asyncio.run(go())


def _measure(case: Case, colour: str, runs: int, flush: Callable[[], int]) -> dict[str, float]:
    before = flush()
    case.firsts.clear()
    gc.collect()
    began = Clocks.now()
    _run(case, colour, runs)
    ran = began.passed()
    spans = flush() - before
    flushed = began.passed()
    units = runs * case.units
    found = {
        "wall": ran.wall * 1e6 / units,
        "wall_flushed": flushed.wall * 1e6 / units,
        "cpu": ran.cpu * 1e6 / units,
        "cpu_flushed": flushed.cpu * 1e6 / units,
        "spans": spans / runs,
    }
    if case.firsts:
        found["wall_first"] = median(first.wall for first in case.firsts) * 1e6
        found["cpu_first"] = median(first.cpu for first in case.firsts) * 1e6
    return found


def serve(library: str, mode: str, is_quick: bool) -> None:
    """Answer requests ``[scenario index, colour]`` with one JSON line each, until standard input ends."""
    lib = load(library)
    flush = set_up_tracing(library, mode)
    cases: dict[tuple[int, str], Case] = {}
    for line in sys.stdin:
        index, colour = json.loads(line)
        scenario = SCENARIOS[index]
        key = (index, colour)
        if key not in cases:
            size = scenario.quick_size if is_quick else scenario.size
            cases.clear()  # a graph of the last scenario would only burden the garbage collector
            cases[key] = scenario.build(lib, size, colour == "async")
            _run(cases[key], colour, 1)
        answer = _measure(cases[key], colour, scenario.runs, flush)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], sys.argv[3] == "quick")
