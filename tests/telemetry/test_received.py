"""What receivers get by OTLP is what was made: ours on the official protocol definitions, and a real collector of others'."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from collector import NO_ROTEL, Part, Rotel, find_rotel, is_expected_here, running_rotel
from opentelemetry.sdk.trace.export import SpanExporter
from otlp_receiver import OtlpGrpcReceiver, OtlpReceiver
from otlp_spans import records_of
from sent_runs import EXPORTERS, run_all
from span_watch import all_problems

from tracegraph.telemetry import semconv
from tracegraph_exporters.base import SpanRecord


@pytest.fixture(params=EXPORTERS)
def receiver(request: pytest.FixtureRequest) -> Iterator[tuple[Any, SpanExporter]]:
    """A receiver in this process, and an exporter that sends there."""
    made = OtlpGrpcReceiver() if request.param.startswith("grpc") else OtlpReceiver()
    yield made, EXPORTERS[request.param](made.url)
    made.close()


def test_what_is_received_is_what_was_made(receiver: Any) -> None:
    """Ids, parents, times, kinds, status, attributes and their types, events, links, resource: all of it."""
    server, exporter = receiver

    made = run_all(exporter)

    received = {record.span_id: record for record in records_of(server.requests)}
    assert len(received) == len(made)
    assert {span.span_id: span for span in made} == received
    kinds = {span.name.partition(" ")[0] for span in made}
    assert kinds == {"invoke_workflow", "superstep", "run_step", "attempt", "chat", "checkpoint"}
    assert all_problems(received.values()) == []


def test_scope_and_schema_are_received(receiver: Any) -> None:
    """Which software made the spans, by which conventions."""
    server, exporter = receiver
    run_all(exporter)

    scopes = {
        (part.scope.name, part.scope.version, part.schema_url)
        for request in server.requests
        for resource in request.resource_spans
        for part in resource.scope_spans
    }
    assert scopes == {(semconv.SCOPE_NAME, semconv.SCOPE_VERSION, semconv.SCHEMA_URL)}


@pytest.fixture(scope="module")
def rotel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rotel]:
    """A collector for the tests of this module."""
    program = find_rotel()
    if program is None:
        # Where the extra brings it, its absence is a mistake that must not hide behind skipped tests.
        (pytest.fail if is_expected_here() else pytest.skip)(NO_ROTEL)
    with running_rotel(program, tmp_path_factory.mktemp("rotel")) as running:
        yield running


@pytest.mark.parametrize("protocol", EXPORTERS)
def test_a_real_collector_reads_what_was_made(rotel: Rotel, protocol: str) -> None:
    """By its own decoder, written in another language: the tree, attributes with their types, events and links."""
    made = run_all(EXPORTERS[protocol](rotel.grpc_endpoint if protocol.startswith("grpc") else rotel.http_endpoint))

    received = rotel.spans({span.span_id for span in made})

    for span in made:
        assert told(received[span.span_id]) == as_told(span)
    linked = [span for span in made if span.links]
    assert {link.attributes[semconv.LINK_KIND] for span in linked for link in span.links} == {"producer", "resumed"}


def told(part: Part) -> dict[str, Any]:
    """Return what the collector printed of a span, in the form of :func:`as_told`."""
    return {
        "trace": part.fields["Trace ID"],
        "parent": part.fields["Parent ID"] or None,
        "name": part.fields["Name"],
        "kind": part.fields["Kind"].removeprefix("SPAN_KIND_").lower(),
        "start": int(part.fields["Start"]),
        "end": int(part.fields["End"]),
        "status": part.fields["Status code"].removeprefix("STATUS_CODE_").lower(),
        "attributes": part.attributes,
        "events": [(event.fields["Name"], int(event.fields["Timestamp"]), event.attributes) for event in part.events],
        "links": [(link.fields["Trace ID"], link.fields["ID"], link.attributes) for link in part.links],
        "scope": part.scope,
    }


def as_told(span: SpanRecord) -> dict[str, Any]:
    return {
        "trace": span.trace_id,
        "parent": span.parent_id,
        "name": span.name,
        "kind": span.kind,
        "start": span.start_ns,
        "end": span.end_ns,
        "status": span.status,
        "attributes": dict(span.attributes),
        "events": [(event.name, event.at_ns, dict(event.attributes)) for event in span.events],
        "links": [(link.trace_id, link.span_id, dict(link.attributes)) for link in span.links],
        "scope": f"{semconv.SCOPE_NAME} {semconv.SCOPE_VERSION}",
    }
