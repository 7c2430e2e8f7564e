"""Runs with spans of every kind, sent by OTLP, beside the spans as they were made: what receivers are held against."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from scripted_models import ScriptedModel
from spans import Trace

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import use_provider
from tracegraph.types import Command, RetryPolicy, Send, interrupt
from tracegraph_exporters.base import SpanRecord, to_record

Exporters = dict[str, Callable[[str], SpanExporter]]

EXPORTERS: Exporters = {
    "grpc": lambda url: GrpcExporter(endpoint=url, insecure=True),
    "grpc gzip": lambda url: GrpcExporter(endpoint=url, insecure=True, compression=grpc.Compression.Gzip),
    "http": lambda url: HttpExporter(endpoint=f"{url}/v1/traces"),
    "http gzip": lambda url: HttpExporter(endpoint=f"{url}/v1/traces", compression=HttpCompression.Gzip),
}


class RemoteSaver(InMemorySaver):
    """A saver that says it does I/O, as a database's does."""

    does_io = True


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


def graph() -> Any:
    """Return a graph with every kind of span: fan-out, retries, a subgraph, a model, saves, a pause."""
    failures = iter([ConnectionError("first\nof two")])

    def flaky(state: State) -> State:
        for error in failures:
            raise error
        return {"said": [ScriptedModel("a", "b", model="m").invoke([]).content]}

    inner = StateGraph(State).add_node("ask", lambda _: {"said": [interrupt("ok?")]}).add_edge(START, "ask").compile(name="inner")
    outer = StateGraph(State)
    outer.add_node("plan", lambda _: {})
    outer.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    outer.add_node("inner", inner)
    outer.add_edge(START, "plan")
    outer.add_conditional_edges("plan", lambda _: [Send("flaky", {}), Send("inner", {})], ["flaky", "inner"])
    return outer.compile(name="all kinds", checkpointer=RemoteSaver())


def run_all(exporter: SpanExporter) -> list[SpanRecord]:
    """Run the graph, resume it, and fail another; return the spans as they were made, once they are exported."""
    provider = TracerProvider(resource=Resource({"service.name": "received"}), shutdown_on_exit=False)
    trace = Trace(provider)
    provider.add_span_processor(trace)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    use_provider(provider)
    try:
        app, config = graph(), {"configurable": {"thread_id": "t-1"}}
        app.invoke({"said": []}, config, durability="sync")
        app.invoke(Command(resume="yes"), config, durability="sync")
        with pytest.raises(ZeroDivisionError):
            StateGraph(State).add_node("bad", lambda _: 1 / 0).add_edge(START, "bad").compile().invoke({"said": []})
    finally:
        use_provider(None)
        provider.shutdown()
    return [to_record(span) for span in trace.ended]
