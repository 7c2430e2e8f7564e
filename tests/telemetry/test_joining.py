"""Trace context and baggage across processes: a real server, a real client, the standard propagator."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from colours import Colour
from opentelemetry import baggage, context, propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import SpanKind
from serving import serving
from small_graphs import chain, parallel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tracegraph.telemetry import continue_trace, use_provider

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01", "tracestate": "vendor=1", "baggage": "tenant=acme"}


@pytest.fixture
def recorded(provider: TracerProvider, recorder: Any) -> Iterator[Any]:
    """Send the spans of runs to the recorder."""
    use_provider(provider)
    yield recorder
    use_provider(None)


class Service:
    """A web application whose requests run a graph, inside the span that an instrumented server makes of a request.

    Each node calls the service again, and the headers that arrive there are kept by node.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self.tracer = provider.get_tracer("server")
        self.arrived: dict[str, dict[str, str]] = {}
        self.tenants: dict[str, Any] = {}
        self.url = ""
        routes = [Route("/run/sync", self.run_sync), Route("/run/async", self.run_async), Route("/call/{node}", self.call)]
        self.app = Starlette(routes=routes)

    def run_sync(self, request: Request) -> JSONResponse:
        """In a thread of the server's pool, as every function that is not a coroutine."""
        token = context.attach(propagate.extract(request.headers))
        try:
            with self.tracer.start_as_current_span("GET /run", kind=SpanKind.SERVER):
                return JSONResponse(parallel(a=self.node("a"), b=self.node("b")).invoke({}))
        finally:
            context.detach(token)

    async def run_async(self, request: Request) -> JSONResponse:
        token = context.attach(propagate.extract(request.headers))
        try:
            with self.tracer.start_as_current_span("GET /run", kind=SpanKind.SERVER):
                return JSONResponse(await parallel(a=self.anode("a"), b=self.anode("b")).ainvoke({}))
        finally:
            context.detach(token)

    async def call(self, request: Request) -> JSONResponse:
        self.arrived[request.path_params["node"]] = dict(request.headers)
        return JSONResponse({})

    def node(self, name: str) -> Any:
        def body(_: Any) -> dict[str, Any]:
            self.tenants[name] = baggage.get_baggage("tenant")
            propagate.inject(headers := {})
            httpx.get(f"{self.url}/call/{name}", headers=headers, trust_env=False)
            return {"xs": [name]}

        return body

    def anode(self, name: str) -> Any:
        async def body(_: Any) -> dict[str, Any]:
            self.tenants[name] = baggage.get_baggage("tenant")
            propagate.inject(headers := {})
            async with httpx.AsyncClient(trust_env=False) as client:
                await client.get(f"{self.url}/call/{name}", headers=headers)
            return {"xs": [name]}

        return body


@pytest.fixture
async def service(provider: TracerProvider) -> AsyncIterator[Service]:
    made = Service(provider)
    async with serving(made.app) as made.url:
        yield made


async def ask(service: Service, colour: str, headers: dict[str, str]) -> Any:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{service.url}/run/{colour}", headers=headers)
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_run_in_a_request_joins_its_trace_and_hands_it_on(service: Service, recorded: Any, colour: str) -> None:
    """Client, server, run, node, the node's own call: one trace, each below the one before, with the client's baggage."""
    assert await ask(service, colour, HEADERS) == {"xs": ["a", "b"]}

    assert {f"{span.context.trace_id:032x}" for span in recorded.finished} == {TRACE_ID}
    server, run = recorded.one("GET /run"), recorded.one("invoke_workflow")
    assert f"{server.parent.span_id:016x}" == "b7ad6b7169203331"
    assert run.parent.span_id == server.context.span_id
    assert service.tenants == {"a": "acme", "b": "acme"}
    for node in ("a", "b"):
        span, arrived = recorded.one(f"run_step {node}"), service.arrived[node]
        assert arrived["traceparent"] == f"00-{TRACE_ID}-{span.context.span_id:016x}-01"
        assert (arrived["tracestate"], arrived["baggage"]) == ("vendor=1", "tenant=acme")


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_request_that_is_not_sampled_makes_no_span(service: Service, recorded: Any, colour: str) -> None:
    """The caller's decision holds here and at whatever the nodes call; its baggage goes all the way."""
    await ask(service, colour, HEADERS | {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-00"})

    assert recorded.finished == []
    for node in ("a", "b"):
        arrived = service.arrived[node]
        assert re.fullmatch(rf"00-{TRACE_ID}-[0-9a-f]{{16}}-00", arrived["traceparent"])
        assert (arrived["baggage"], service.tenants[node]) == ("tenant=acme", "acme")


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_baggage_goes_through_a_run_that_nobody_traces(service: Service, colour: str) -> None:
    """Without a provider for runs their nodes are in the request's context all the same."""
    await ask(service, colour, HEADERS)

    assert service.tenants == {"a": "acme", "b": "acme"}
    assert {arrived["baggage"] for arrived in service.arrived.values()} == {"tenant=acme"}
    assert {arrived["traceparent"][3:35] for arrived in service.arrived.values()} == {TRACE_ID}


CARRIERS = {
    "mapping": HEADERS,
    "environment": {name.upper(): value for name, value in HEADERS.items()} | {"PATH": "/bin"},
    "pairs of bytes": [(name.encode(), value.encode()) for name, value in HEADERS.items()],
}


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS.keys())
def test_run_joins_the_trace_that_a_message_names(recorded: Any, colour: Colour, carrier: Any) -> None:
    """Where nothing has made the sender's context current, `continue_trace` does, and takes it off again."""
    tenants: list[Any] = []

    def body(_: Any) -> dict[str, Any]:
        tenants.append(baggage.get_baggage("tenant"))
        return {"n": 1}

    with continue_trace(carrier):
        colour.invoke(chain(a=body), {})

    run: ReadableSpan = recorded.one("invoke_workflow")
    assert f"{run.context.trace_id:032x}" == TRACE_ID
    assert run.parent is not None
    assert run.parent.is_remote
    assert run.context.trace_state == {"vendor": "1"}
    assert tenants == ["acme"]
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert baggage.get_all() == {}


@pytest.mark.parametrize("traceparent", ["", "nonsense", f"00-{'0' * 32}-{'0' * 16}-01"])
def test_message_without_a_trace_begins_one(recorded: Any, colour: Colour, traceparent: str) -> None:
    """What a sender got wrong is no reason to fail; the ambient context stays what it was."""
    with continue_trace({"traceparent": traceparent}):
        colour.invoke(chain(a=lambda _: {"n": 1}), {})

    assert recorded.one("invoke_workflow").parent is None


def test_error_inside_leaves_the_context_as_it_was(recorded: Any) -> None:
    """Also when a run fails."""
    with pytest.raises(ZeroDivisionError), continue_trace(HEADERS):
        chain(a=lambda _: 1 // 0).invoke({})

    assert trace.get_current_span() is trace.INVALID_SPAN
    assert f"{recorded.one('invoke_workflow').context.trace_id:032x}" == TRACE_ID
