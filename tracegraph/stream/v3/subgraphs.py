"""Handles of the graphs that run directly inside a graph: run objects of their own."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from tracegraph.stream.v3.arun import AsyncSubgraphRunStream
from tracegraph.stream.v3.channel import StreamChannel
from tracegraph.stream.v3.flows import MuxFlow, arun_mux_flow, run_mux_flow
from tracegraph.stream.v3.graphs_inside import Ended, GraphsInside, Started
from tracegraph.stream.v3.mux import StreamMux
from tracegraph.stream.v3.protocol import ProtocolEvent
from tracegraph.stream.v3.run import SubgraphRunStream
from tracegraph.stream.v3.transformer import StreamTransformer

__all__ = ["SubgraphTransformer"]

Handle = SubgraphRunStream | AsyncSubgraphRunStream


class SubgraphTransformer(StreamTransformer):
    """Projection ``subgraphs``: a handle for each graph that runs directly inside; built in.

    A handle has its own mux with the same transformers. Its channels are lazy like all others: subscribe in the body of
    the loop over ``subgraphs``, before the next part is pulled.
    """

    _native = True
    required_stream_modes = ("tasks",)
    _methods = frozenset(required_stream_modes)
    _takes_inside = True
    supports_sync = True

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[Handle] = StreamChannel()
        self._graphs = GraphsInside(self.scope, depth=1)
        # Of handles only what nobody else could tell them: one that is dropped must not keep the run going.
        self._inside: dict[str, tuple[StreamMux, weakref.ref[Handle]]] = {}
        self._mux: StreamMux | None = None

    def init(self) -> dict[str, Any]:
        """Return the projection."""
        return {"subgraphs": self.channel}

    def _on_register(self, mux: StreamMux) -> None:
        self._mux = mux

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event."""
        return run_mux_flow(self._take(event))

    async def aprocess(self, event: ProtocolEvent) -> bool:
        """Take an event in an async run."""
        return await arun_mux_flow(self._take(event))

    def _take(self, event: ProtocolEvent) -> MuxFlow[bool]:
        changes = list(self._graphs.take(event)) if event["method"] == "tasks" else []
        for change in changes:
            if isinstance(change, Started):
                self._open(change)
        ns = event["params"]["namespace"]
        level = len(self.scope)
        if len(ns) > level and tuple(ns[:level]) == self.scope and (inside := self._inside.get(ns[level])) is not None:
            yield from inside[0].push_flow(event)
        for change in changes:
            if isinstance(change, Ended):
                yield from self._close(change)
        return event["method"] != "tasks"

    def _open(self, started: Started) -> None:
        assert self._mux is not None
        mux = self._mux.make_child(started.namespace)
        make: type[Handle] = AsyncSubgraphRunStream if mux.is_async else SubgraphRunStream
        handle = make(mux, path=started.namespace, graph_name=started.graph_name, trigger_call_id=started.trigger_call_id)
        self._inside[started.namespace[-1]] = (mux, weakref.ref(handle))
        self.channel.push(handle)

    def _close(self, ended: Ended) -> MuxFlow[None]:
        mux, reference = self._inside.pop(ended.namespace[-1])
        if (handle := reference()) is not None:
            handle.end(ended.status, ended.error)
        if ended.status == "failed":
            yield from mux.fail_flow(RuntimeError(ended.error))
        else:
            yield from mux.close_flow()

    def finalize(self) -> None:
        """End what is still open."""
        run_mux_flow(self._close_all(self._graphs.all_ended(None)))

    async def afinalize(self) -> None:
        """End what is still open, in an async run."""
        await arun_mux_flow(self._close_all(self._graphs.all_ended(None)))

    def fail(self, err: BaseException) -> None:
        """End what is still open with the run's error."""
        run_mux_flow(self._close_all(self._graphs.all_ended(err)))

    async def afail(self, err: BaseException) -> None:
        """End what is still open with the run's error, in an async run."""
        await arun_mux_flow(self._close_all(self._graphs.all_ended(err)))

    def _close_all(self, ends: Iterator[Ended]) -> MuxFlow[None]:
        for ended in list(ends):
            yield from self._close(ended)
