"""A sync run as an object: iterate over its events or projections, which moves it on; or ask for its output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self

from tracegraph.stream.v3.channel import Buffer, StreamChannel
from tracegraph.stream.v3.mux import StreamMux
from tracegraph.stream.v3.projections import ValuesTransformer
from tracegraph.stream.v3.protocol import ProtocolEvent, SubgraphStatus
from tracegraph.stream.v3.pump import GraphPump

__all__ = ["GraphRunStream", "RunView", "SubgraphFacts", "SubgraphRunStream"]


class RunView:
    """What a run object knows without moving the run on."""

    def __init__(self, mux: StreamMux) -> None:
        self.mux = mux
        self._hold = mux.hold()

    @property
    def extensions(self) -> Mapping[str, Any]:
        """All projections by name, those of the user's transformers included."""
        return MappingProxyType(self.mux.extensions)

    def __getattr__(self, name: str) -> Any:
        # Found only when the instance has no such attribute; without a mux yet there are no projections either.
        mux: StreamMux | None = self.__dict__.get("mux")
        if mux is not None and name in mux.native_keys:
            return mux.extensions[name]
        known = ", ".join(sorted(mux.native_keys)) if mux is not None else ""
        raise AttributeError(
            f"{type(self).__name__!r} has no attribute {name!r}; projections are {known}, and those of your own "
            "transformers are in extensions"
        )

    def _values(self) -> ValuesTransformer | None:
        found = self.mux.transformer_by_key("values")
        return found if isinstance(found, ValuesTransformer) else None

    def _latest(self) -> Any:
        values = self._values()
        return None if values is None else values.latest

    def _asked(self) -> list[Any]:
        values = self._values()
        return [] if values is None else list(values.interrupts)

    def _raise_if_failed(self) -> None:
        if self.mux.error is not None:
            raise self.mux.error


class GraphRunStream(RunView):
    """A run that its readers move on: nothing runs until one of its projections, or its output, is asked for.

    Iterating gives the events of the main log. ``values``, ``messages``, ``lifecycle``, ``subgraphs`` and whatever
    other native projections are registered are attributes. A ``with`` block ends the run when it is left.

    Args:
        graph_iter: parts of ``stream(version="v2", subgraphs=True)``; None if somebody else feeds the mux.
        wire_pump: let readers of the mux pull *graph_iter*.
    """

    def __init__(self, graph_iter: Iterator[Any] | None, mux: StreamMux, *, wire_pump: bool = True) -> None:
        self._pump: GraphPump | None = None
        if wire_pump:
            self._pump = GraphPump(graph_iter, mux)
            mux.bind_pump(self._pump, self._pump.hold)
        super().__init__(mux)

    def __iter__(self) -> Iterator[ProtocolEvent]:
        return iter(self.mux.events)

    @property
    def output(self) -> Any:
        """The last values of the run, which is moved on to its end; None if there were none."""
        self._drive()
        return self._latest()

    @property
    def interrupted(self) -> bool:
        """Whether the run, moved on to its end, waits for answers."""
        self._drive()
        return bool(self._asked())

    @property
    def interrupts(self) -> list[Any]:
        """The questions of the run, moved on to its end."""
        self._drive()
        return self._asked()

    def _drive(self) -> None:
        mux = self.mux
        while not mux.is_over and mux.pump is not None and mux.pump():
            pass
        self._raise_if_failed()

    def interleave(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Yield ``(name, item)`` of several projections in the order in which the items came.

        Raises:
            KeyError: there is no such projection.
            TypeError: it is no StreamChannel.
            RuntimeError: it has a consumer already.
        """
        channels = {name: self._channel(name) for name in names}
        return _interleaved(channels)

    def _channel(self, name: str) -> StreamChannel[Any]:
        found = self.mux.extensions[name]
        if not isinstance(found, StreamChannel):
            raise TypeError(f"projection {name!r} is a {type(found).__name__}, and only StreamChannels can be interleaved")
        return found

    def abort(self) -> None:
        """Stop the run, wait for the nodes that are running, and end all readings; call it any number of times."""
        if self._pump is not None:
            self._pump.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abort()


def _interleaved(channels: Mapping[str, StreamChannel[Any]]) -> Iterator[tuple[str, Any]]:
    buffers: dict[str, Buffer[Any]] = {}
    try:
        for name, channel in channels.items():
            buffers[name] = channel.subscribe()[0]
        while True:
            waiting = [(buffer.items[0][0], name) for name, buffer in buffers.items() if buffer.items]
            if waiting:
                name = min(waiting)[1]
                yield name, buffers[name].items.popleft()[1]
            elif not _pull_any(channels.values()) and not any(buffer.items for buffer in buffers.values()):
                break
        for channel in channels.values():
            if channel.error is not None:
                raise channel.error
    finally:
        for name in buffers:
            channels[name].release()


def _pull_any(channels: Iterable[StreamChannel[Any]]) -> bool:
    open_one = next((channel for channel in channels if not channel.is_closed), None)
    return open_one is not None and open_one.pull()


class SubgraphFacts(RunView):
    """Which graph a handle is of, and how it goes."""

    path: tuple[str, ...]
    """Its namespace."""
    graph_name: str | None
    trigger_call_id: str | None
    """Id of the task that runs it."""
    status: SubgraphStatus
    error: str | None
    """What failed it, as text."""

    def _note(self, path: tuple[str, ...], graph_name: str | None, trigger_call_id: str | None) -> None:
        self.path = path
        self.graph_name = graph_name
        self.trigger_call_id = trigger_call_id
        self.status = "started"
        self.error = None

    def end(self, status: SubgraphStatus, error: str | None) -> None:
        """Take note of how the graph ended; the run around it is no longer kept going for its sake."""
        self.status, self.error = status, error
        self._hold = None


class SubgraphRunStream(GraphRunStream, SubgraphFacts):
    """The run of a graph inside. Reading it moves the whole run on; its ``output`` stops at its own end."""

    def __init__(
        self, mux: StreamMux, *, path: tuple[str, ...], graph_name: str | None = None, trigger_call_id: str | None = None
    ) -> None:
        super().__init__(None, mux, wire_pump=False)
        self._note(path, graph_name, trigger_call_id)
