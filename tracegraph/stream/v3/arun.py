"""An async run as an object: the twin of :mod:`tracegraph.stream.v3.run`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Self

from tracegraph.stream.v3.mux import StreamMux
from tracegraph.stream.v3.protocol import ProtocolEvent
from tracegraph.stream.v3.pump import AsyncGraphPump
from tracegraph.stream.v3.run import RunView, SubgraphFacts

__all__ = ["AsyncGraphRunStream", "AsyncSubgraphRunStream"]


class AsyncGraphRunStream(RunView):
    """A run on the event loop that its readers move on; any number of them at once, each in a task of its own.

    Iterating gives the events of the main log. ``values``, ``messages``, ``lifecycle``, ``subgraphs`` and whatever
    other native projections are registered are attributes. An ``async with`` block ends the run when it is left. A
    reader that is cancelled stops the run.

    Args:
        graph_aiter: parts of ``astream(version="v2", subgraphs=True)``; None if somebody else feeds the mux.
        wire_pump: let readers of the mux pull *graph_aiter*.
    """

    def __init__(self, graph_aiter: AsyncIterator[Any] | None, mux: StreamMux, *, wire_pump: bool = True) -> None:
        self._pump: AsyncGraphPump | None = None
        if wire_pump:
            self._pump = AsyncGraphPump(graph_aiter, mux)
            mux.bind_apump(self._pump, self._pump.hold)
        super().__init__(mux)

    def __aiter__(self) -> AsyncIterator[ProtocolEvent]:
        return aiter(self.mux.events)

    async def output(self) -> Any:
        """Move the run on to its end and return its last values, None if there were none."""
        await self._drive()
        return self._latest()

    async def interrupted(self) -> bool:
        """Move the run on to its end and say whether it waits for answers."""
        await self._drive()
        return bool(self._asked())

    async def interrupts(self) -> list[Any]:
        """Move the run on to its end and return its questions."""
        await self._drive()
        return self._asked()

    async def _drive(self) -> None:
        mux = self.mux
        while not mux.is_over and mux.apump is not None and await mux.apump():
            pass
        self._raise_if_failed()

    async def abort(self) -> None:
        """Stop the run, cancel its nodes and wait for them, and end all readings; call it any number of times.

        The run is stopped before anything is awaited, so this works in a scope that is being cancelled, too.
        """
        if self._pump is not None:
            await self._pump.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.abort()


class AsyncSubgraphRunStream(AsyncGraphRunStream, SubgraphFacts):
    """The run of a graph inside. Reading it moves the whole run on; its ``output()`` stops at its own end."""

    def __init__(
        self, mux: StreamMux, *, path: tuple[str, ...], graph_name: str | None = None, trigger_call_id: str | None = None
    ) -> None:
        super().__init__(None, mux, wire_pump=False)
        self._note(path, graph_name, trigger_call_id)
