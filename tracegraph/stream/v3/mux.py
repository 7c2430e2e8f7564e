"""The mux: takes each event through the transformers and into the main log, and brings the end to every reader."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tracegraph.stream.v3.channel import StreamChannel
from tracegraph.stream.v3.flows import MuxFlow, arun_mux_flow, run_mux_flow
from tracegraph.stream.v3.protocol import ProtocolEvent, own_event
from tracegraph.stream.v3.pulling import AsyncPump, Pump
from tracegraph.stream.v3.readership import Readership
from tracegraph.stream.v3.transformer import StreamTransformer

__all__ = ["StreamMux", "TransformerFactory"]

TransformerFactory: TypeAlias = Callable[[tuple[str, ...]], StreamTransformer]
"""Makes the transformer of a graph, given its namespace; a class will do."""


class StreamMux:
    """The transformers of one graph of a run, their projections, and the main log.

    Both colours decide alike; only ``push``, ``close`` and ``fail`` have a twin that awaits async transformers.

    Args:
        transformers: ready ones, for a mux of its own.
        factories: what makes the transformers, here and for the graphs inside.
        scope: namespace of the graph; events at or below it are pushed.
        assign_seq: number the events; only the mux of the whole run does.
        readership: what its readers have in common with those of the whole run.

    Raises:
        TypeError: a transformer's init() returns no dict.
        ValueError: two transformers have a projection of one name.
        RuntimeError: a transformer needs an async run, and this is none.
    """

    def __init__(
        self,
        transformers: Sequence[StreamTransformer] | None = None,
        *,
        is_async: bool = False,
        factories: Sequence[TransformerFactory] | None = None,
        scope: tuple[str, ...] = (),
        assign_seq: bool = True,
        readership: Readership | None = None,
    ) -> None:
        self.is_async = is_async
        self.readership = Readership() if readership is None else readership
        self.scope = scope
        self.factories = tuple(factories or ())
        self.events: StreamChannel[ProtocolEvent] = StreamChannel()
        """The main log."""
        self.events.bind(self, label="events")
        self.extensions: dict[str, Any] = {}
        """All projections by name."""
        self.native_keys: set[str] = set()
        """Those that are attributes of the run."""
        self.error: BaseException | None = None
        self.is_over = False
        self.pump: Pump | None = None
        self.apump: AsyncPump | None = None
        self.hold: Callable[[], Any] = lambda: None
        self._numbers_events = assign_seq
        self._seq = itertools.count(1)
        self._stamps = itertools.count(1)
        self._owners: dict[str, StreamTransformer] = {}
        self._channels: list[StreamChannel[Any]] = []
        self._transformers: list[StreamTransformer] = []
        self._takers: dict[tuple[str, bool], tuple[StreamTransformer, ...]] = {}
        """Which transformers see an event of a method, of the own graph or of one inside; found when one comes."""
        self._awaited: set[StreamTransformer] = set()
        """Those whose async hooks are called."""
        for transformer in [*(transformers or ()), *(make(scope) for make in self.factories)]:
            self._register(transformer)

    # --- what it is made of --------------------------------------------------------------------------------

    @property
    def transformers(self) -> tuple[StreamTransformer, ...]:
        """The transformers, in the order in which they see an event."""
        return tuple(self._transformers)

    def transformer_by_key(self, key: str) -> StreamTransformer | None:
        """Return the transformer that owns the projection *key*."""
        return self._owners.get(key)

    def _register(self, transformer: StreamTransformer) -> None:
        name = type(transformer).__name__
        if not self.is_async and transformer.has_async_hooks() and not transformer.supports_sync:
            raise RuntimeError(
                f"{name} requires an async run: it overrides aprocess(), afinalize() or afail(), or sets requires_async; "
                "use astream_events(), or set supports_sync=True if its sync hooks do as well"
            )
        made = transformer.init()
        if not isinstance(made, dict):
            raise TypeError(f"{name}.init() must return a dict of projections, not {type(made).__name__}")
        for key in made:
            if key in self._owners:
                owner = type(self._owners[key]).__name__
                raise ValueError(f"{name} has a projection {key!r}, but {owner} has one of that name already; rename it")
        self._transformers.append(transformer)
        if self.is_async and transformer.has_async_hooks():
            self._awaited.add(transformer)
        is_native = transformer._native  # noqa: SLF001  # part of how transformers are written
        for key, value in made.items():
            self._owners[key] = transformer
            self.extensions[key] = value
            if is_native:
                self.native_keys.add(key)
            if isinstance(value, StreamChannel):
                self._bind(key, value, is_native=is_native)
        transformer._on_register(self)  # noqa: SLF001  # part of how transformers are written

    def _bind(self, key: str, channel: StreamChannel[Any], *, is_native: bool) -> None:
        self._channels.append(channel)
        if channel.name is None:
            channel.bind(self, label=key)
            return
        method = channel.name if is_native else f"custom:{channel.name}"
        channel.bind(self, lambda item: self._log(own_event(method, item)), label=key)

    def bind_pump(self, pump: Pump, hold: Callable[[], Any] | None = None) -> None:
        """Let readers move a sync run on; *hold* makes what keeps it going while they read."""
        self.pump = pump
        self._tell_pump("_bind_pump", pump, hold)

    def bind_apump(self, apump: AsyncPump, hold: Callable[[], Any] | None = None) -> None:
        """Let readers move an async run on; *hold* makes what keeps it going while they read."""
        self.apump = apump
        self._tell_pump("_bind_apump", apump, hold)

    def _tell_pump(self, hook: str, pump: Any, hold: Callable[[], Any] | None) -> None:
        if hold is not None:
            self.hold = hold
        for transformer in self._transformers:
            if (tell := getattr(transformer, hook, None)) is not None:
                tell(pump)

    def make_child(self, scope: tuple[str, ...]) -> StreamMux:
        """Return the mux of a graph inside, with transformers of its own, whose readers move this run on."""
        shared = self.readership
        child = StreamMux(factories=self.factories, scope=scope, is_async=self.is_async, assign_seq=False, readership=shared)
        if self.pump is not None:
            child.bind_pump(self.pump, self.hold)
        if self.apump is not None:
            child.bind_apump(self.apump, self.hold)
        return child

    def next_stamp(self) -> int:
        """Return the next number in the order of everything that is pushed."""
        return next(self._stamps)

    # --- events --------------------------------------------------------------------------------------------

    def push(self, event: ProtocolEvent) -> None:
        """Take an event through the transformers and, unless one of them says no, into the main log."""
        if self._awaited:
            run_mux_flow(self.push_flow(event))  # which tells of the bug that this is
            return
        is_kept = True
        for transformer in self._takers_of(event):
            is_kept = transformer.process(event) is not False and is_kept
        if is_kept:
            self._log(event)

    async def apush(self, event: ProtocolEvent) -> None:
        """Do what :meth:`push` does, awaiting async transformers."""
        await arun_mux_flow(self.push_flow(event))

    def push_flow(self, event: ProtocolEvent) -> MuxFlow[None]:
        """Decide what becomes of an event."""
        is_kept = True
        for transformer in self._takers_of(event):
            if transformer in self._awaited:
                is_kept = (yield transformer.aprocess(event)) is not False and is_kept
            else:
                is_kept = transformer.process(event) is not False and is_kept
        if is_kept:
            self._log(event)

    def _takers_of(self, event: ProtocolEvent) -> tuple[StreamTransformer, ...]:
        key = event["method"], len(event["params"]["namespace"]) > len(self.scope)
        found = self._takers.get(key)
        if found is None:
            method, is_inside = key
            found = self._takers[key] = tuple(
                transformer
                for transformer in self._transformers
                if (methods := transformer._methods) is None  # noqa: SLF001  # part of how transformers are written
                or method in methods
                or (is_inside and transformer._takes_inside)  # noqa: SLF001
            )
        return found

    def _log(self, event: ProtocolEvent) -> None:
        if self._numbers_events:
            event["seq"] = next(self._seq)
        self.events.push(event)

    # --- the end -------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End every reading: the run is over."""
        run_mux_flow(self.close_flow())

    async def aclose(self) -> None:
        """Do what :meth:`close` does, after what transformers have scheduled is done."""
        await arun_mux_flow(self.close_flow())

    def fail(self, err: BaseException) -> None:
        """Raise *err* in every reader, once each."""
        run_mux_flow(self.fail_flow(err))

    async def afail(self, err: BaseException) -> None:
        """Do what :meth:`fail` does, awaiting async transformers."""
        await arun_mux_flow(self.fail_flow(err))

    def close_flow(self) -> MuxFlow[None]:
        """Let the transformers finish; what they raise fails the run, the first one first."""
        if self.is_over:
            return
        errors: list[BaseException] = yield from self._settle_scheduled()
        for transformer in self._transformers:
            try:
                if transformer in self._awaited:
                    yield transformer.afinalize()
                else:
                    transformer.finalize()
            except Exception as error:  # noqa: BLE001  user code: the others still have to finish
                errors.append(error)
        if errors:
            self._end(errors[0])
            raise errors[0]
        self._end(None)

    def _settle_scheduled(self) -> MuxFlow[list[BaseException]]:
        errors: list[BaseException] = []
        while waiting := [(transformer, task) for transformer in self._transformers for task in transformer.scheduled]:
            for transformer, task in waiting:
                yield asyncio.wait([task])
                on_error = transformer.scheduled.pop(task, None)
                if on_error == "raise" and not task.cancelled() and (error := task.exception()) is not None:
                    errors.append(error)
        return errors

    def fail_flow(self, err: BaseException) -> MuxFlow[None]:
        """Tell the transformers, whose own errors no longer matter, and then the readers."""
        if self.is_over:
            return
        self.cancel_scheduled()
        for transformer in self._transformers:
            try:
                if transformer in self._awaited:
                    yield transformer.afail(err)
                else:
                    transformer.fail(err)
            except Exception:  # noqa: BLE001, S112  # the run's own error is what readers are told
                continue
        self._end(err)

    def cancel_scheduled(self) -> None:
        """Cancel what transformers have scheduled."""
        for transformer in self._transformers:
            for task in transformer.scheduled:
                if not task.cancel() and not task.cancelled():
                    task.exception()  # marked as seen: the run has ended otherwise
            transformer.scheduled.clear()

    def _end(self, error: BaseException | None) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.error = error
        for channel in (*self._channels, self.events):
            if error is None:
                channel.close()
            else:
                channel.fail(error)
