"""What a ``stream`` call asks for, and how a run's events become its parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tracegraph.drivers.async_driver import AsyncRun
from tracegraph.drivers.launch import LIVE, Launch, Readers
from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.drivers.unread import BlockingUnread, Buffering, unread_of
from tracegraph.engine.nesting import NestedKeys
from tracegraph.errors import InvalidInputError
from tracegraph.stream.joining import Joining
from tracegraph.stream.parts import Part, Shape, Typed, checked_modes
from tracegraph.stream.projector import Projector
from tracegraph.types import GraphOutput, StreamBuffer

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["PartReaders", "StreamPlan", "checked_keys", "of_parts"]

_LIVE_MODES = frozenset({"custom", "messages", "tools", "events"})
"""Modes whose parts are read while nodes run."""


class PartReaders(Readers, Protocol):
    """Who reads the parts of a stream, if they say what they need of it as it goes on."""

    def want(self, mode: str, ns: tuple[str, ...]) -> bool:
        """Say whether anybody needs a part of *mode* that was made just now of the graph at *ns*."""


class StreamPlan:
    """What a ``stream`` call asked for, checked at the call."""

    def __init__(
        self,
        mode: Any,
        print_mode: Any,
        output_keys: str | Sequence[str],
        *,
        subgraphs: bool,
        is_eager: bool,
        version: str,
        buffer: StreamBuffer | Buffering | None = None,
        output: Typed | None = None,
        state: Typed | None = None,
        readers: PartReaders | None = None,
    ) -> None:
        self._modes = checked_modes(mode)
        self._printed = frozenset(checked_modes(print_mode))
        self._subgraphs = subgraphs
        self._keys = output_keys
        self._is_eager = is_eager
        self._readers = readers
        self._is_joinable = version == "v2" and readers is None
        self._buffering = Buffering.of(buffer)
        self.format = Shape.of(mode, subgraphs=subgraphs, version=version).formatter(output, state)

    def prepare(self, launch: Launch) -> None:
        """Tell the driver that somebody reads while it runs."""
        launch.is_streaming = True
        if self._readers is not None:
            launch.readers = self._readers
        elif self._subgraphs or self._is_eager or not _LIVE_MODES.isdisjoint(self._modes):
            launch.readers = LIVE

    def connect(self, run: SyncRun | AsyncRun, take: Callable[[Part], None] | None = None) -> None:
        """Let the run's events become parts; *take* gets them instead of the run's reader."""
        parts = run.parts = unread_of(self._buffering, partial(self._whose, run))
        part_added, count = run.part_added, itertools.count(1)

        def give(part: Part) -> None:
            if part.meta is not None:
                part.meta.seq = next(count)
            parts.put(part)
            part_added()

        def give_wanted(part: Part) -> None:
            if want(part.mode, part.ns):
                parts.put(part)
                part_added()

        if self._readers is not None:
            want, take = self._readers.want, give_wanted
        take = take or give
        projector = Projector(
            (*self._modes, *self._printed),
            run_id=run.run_id,
            ns=run.ns,
            subgraphs=self._subgraphs,
            output_keys=self._keys,
            sink=self._printing(take) if self._printed else take,
            meta=Joining(run.hub.span_of) if self._is_joinable else None,
            gate=parts if isinstance(parts, BlockingUnread) else None,
        )
        if isinstance(parts, BlockingUnread):
            parts.shows = projector.shows
            parts.number = lambda: run.hub.seq
            parts.stop = run.fail_for_reader
        run.launch.own_observers = [*run.launch.own_observers, projector]

    def _whose(self, run: SyncRun | AsyncRun) -> str:
        modes = ", ".join(map(repr, self._modes))
        thread = "" if run.thread_id is None else f" on thread {run.thread_id!r}"
        return f"the reader of stream mode{'s' if len(self._modes) > 1 else ''} {modes} of run {run.run_id}{thread}"

    def _printing(self, take: Callable[[Part], None]) -> Callable[[Part], None]:
        wanted, printed = frozenset(self._modes), self._printed

        def sink(part: Part) -> None:
            if part.mode in printed:
                print(f"[{part.mode}]", *(["|".join(part.ns)] if part.ns else []), repr(part.data))  # noqa: T201  # what print_mode is for
            if part.mode in wanted:
                take(part)

        return sink


def checked_keys(graph: Pregel, keys: str | Sequence[str]) -> str | Sequence[str]:
    """Return *keys*, with a nested field as the channels of its sub-fields.

    Raises:
        InvalidInputError: one of them is no channel and no nested field.
    """
    nested = graph.topology.nested
    for key in (keys,) if isinstance(keys, str) else keys:
        if key not in graph.channels and key not in nested:
            known = ", ".join(map(repr, (*graph.stream_channels_list, *nested)))
            raise InvalidInputError(f"output key {key!r} is no channel; there are {known}")
    return _expanded(graph, keys) if nested else keys


def _expanded(graph: Pregel, keys: str | Sequence[str]) -> str | Sequence[str]:
    topology = graph.topology
    if isinstance(keys, str):
        if keys not in topology.nested:
            return keys
        return NestedKeys(topology.nested[keys].channel_names(), topology.paths, keys)
    names = (name for key in keys for name in (topology.nested[key].channel_names() if key in topology.nested else (key,)))
    return NestedKeys(dict.fromkeys(names), topology.paths)


def of_parts(parts: list[Any], stream_mode: str | Sequence[str], version: str) -> Any:
    """Return what ``invoke`` returns of a streamed run: the last values, or with another mode all parts."""
    if stream_mode != "values":
        return parts
    last = parts[-1] if parts else None
    if version != "v2":
        return last
    return GraphOutput(None) if last is None else GraphOutput(last["data"], last["interrupts"])
