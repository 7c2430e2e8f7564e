"""``stream_events`` and ``astream_events``: a run as an object (version "v3"), and flat events ("v2")."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tracegraph.config import RunnableConfig, merge_configs
from tracegraph.current import CURRENT
from tracegraph.drivers.async_driver import AsyncRun
from tracegraph.drivers.launch import LIVE
from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.drivers.unread import Buffering
from tracegraph.pregel.launch import CallOptions, make_launch
from tracegraph.pregel.streaming import StreamPlan
from tracegraph.stream.flat.choice import EventChoice
from tracegraph.stream.flat.handler import FlatEvents
from tracegraph.stream.readers import AsyncPartReader, PartReader
from tracegraph.stream.v3.arun import AsyncGraphRunStream
from tracegraph.stream.v3.lifecycle import LifecycleTransformer
from tracegraph.stream.v3.messages.transformer import MessagesTransformer
from tracegraph.stream.v3.mux import StreamMux, TransformerFactory
from tracegraph.stream.v3.projections import (
    CheckpointsTransformer,
    CustomTransformer,
    DebugTransformer,
    TasksTransformer,
    UpdatesTransformer,
    ValuesTransformer,
)
from tracegraph.stream.v3.protocol import GRAPH_TASKS, MESSAGE_EVENTS
from tracegraph.stream.v3.readership import Readership
from tracegraph.stream.v3.run import GraphRunStream
from tracegraph.stream.v3.subgraphs import SubgraphTransformer
from tracegraph.stream.v3.tool_calls import ToolCallTransformer
from tracegraph.stream.v3.transformer import StreamTransformer

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["checked_factories", "flat_events", "open_async_run", "open_run", "refuse_version"]

_BUILT_IN: Final[tuple[TransformerFactory, ...]] = (
    ValuesTransformer,
    MessagesTransformer,
    LifecycleTransformer,
    SubgraphTransformer,
)

_OURS: Final = frozenset(
    {
        *_BUILT_IN,
        CheckpointsTransformer,
        CustomTransformer,
        DebugTransformer,
        TasksTransformer,
        ToolCallTransformer,
        UpdatesTransformer,
    }
)

_CHOICES: Final = tuple(choice.name for choice in fields(EventChoice))


def checked_factories(given: Sequence[Any] | None) -> tuple[TransformerFactory, ...]:
    """Return what makes transformers.

    Raises:
        TypeError: something is no class or function that takes a scope, such as a transformer that is made already.
    """
    for factory in given or ():
        if isinstance(factory, StreamTransformer) or not callable(factory):
            what = type(factory).__name__
            raise TypeError(
                f"transformers= takes classes, or functions of the scope, not {what} objects: each graph of a run gets a "
                "transformer of its own"
            )
    return tuple(given or ())


def refuse_version(version: str, method: str) -> None:
    """Raise for a version that *method* does not speak."""
    hint = "astream_events() speaks 'v2' and 'v3'" if method == "astream_events" else "use 'v3', or astream_events() for 'v2'"
    raise NotImplementedError(f"{method}(version={version!r}) is not supported; {hint}")


def open_run(
    graph: Pregel, given: Any, config: RunnableConfig | None, transformers: Any, options: dict[str, Any]
) -> GraphRunStream:
    """Return a sync run as an object; nothing runs yet."""
    mux, plan = _make_mux(graph, transformers, options, is_async=False)
    parts = PartReader(partial(graph.begin_stream, SyncRun, given, config, CallOptions(**options), plan), plan.format)
    mux.readership.about = partial(_about, weakref.ref(parts))
    return GraphRunStream(parts, mux)


async def open_async_run(
    graph: Pregel, given: Any, config: RunnableConfig | None, transformers: Any, options: dict[str, Any]
) -> AsyncGraphRunStream:
    """Return an async run as an object; nothing runs yet."""
    mux, plan = _make_mux(graph, transformers, options, is_async=True)
    parts = AsyncPartReader(partial(graph.begin_stream, AsyncRun, given, config, CallOptions(**options), plan), plan.format)
    mux.readership.about = partial(_about, weakref.ref(parts))
    return AsyncGraphRunStream(parts, mux)


def _about(parts: weakref.ref[PartReader] | weakref.ref[AsyncPartReader]) -> str:
    # Weakly: what keeps a run going are those who read it alone.
    reader = parts()
    return "a run that was left" if reader is None else reader.about


def _make_mux(graph: Pregel, transformers: Any, options: dict[str, Any], *, is_async: bool) -> tuple[StreamMux, StreamPlan]:
    for taken in ("stream_mode", "subgraphs"):
        if taken in options:
            raise TypeError(
                f"stream_events(version='v3') takes no {taken}: the transformers say which modes there are, and graphs "
                "inside are always streamed"
            )
    buffering = Buffering.of(options.pop("buffer", None))
    readership = Readership(buffering, options.pop("when_left", "stop"))
    own = (*graph.stream_transformers, *checked_factories(transformers))
    factories = sorted((*_BUILT_IN, *own), key=lambda make: not getattr(make, "before_builtins", False))
    mux = StreamMux(factories=factories, is_async=is_async, scope=_scope(), readership=readership)
    if graph.stream_eager or buffering.when_full is not None or not _are_ours(mux):
        readership.is_live = True
    options["stream_mode"] = _modes(mux)
    return mux, graph.plan_stream(options, version="v2", subgraphs=True, buffer=buffering.of_feed(), readers=readership)


def _scope() -> tuple[str, ...]:
    here = CURRENT.get()
    return () if here is None else tuple(here.namespace.split("|"))


def _are_ours(mux: StreamMux) -> bool:
    """Say whether it is known of all transformers which events they read, and what they do with them."""
    return all(type(transformer) in _OURS for transformer in mux.transformers)


def _modes(mux: StreamMux) -> list[str]:
    wanted = dict.fromkeys(mode for transformer in mux.transformers for mode in transformer.required_stream_modes)
    of_ours = {"messages": MESSAGE_EVENTS}
    if _are_ours(mux) and not any(type(transformer) is TasksTransformer for transformer in mux.transformers):
        of_ours["tasks"] = GRAPH_TASKS
    return [of_ours.get(mode, mode) for mode in wanted]


def flat_events(
    graph: Pregel, given: Any, config: RunnableConfig | None, transformers: Any, options: dict[str, Any]
) -> AsyncPartReader:
    """Return the flat events of a run, which begins when the first one is asked for.

    Raises:
        TypeError: *transformers* are given, which make projections of a "v3" run, or another option does not exist.
    """
    if transformers:
        raise TypeError("transformers= is for astream_events(version='v3'): flat events have no projections")
    choice = EventChoice(**{name: options.pop(name) for name in _CHOICES if name in options})
    plan = graph.plan_stream(options)
    call = CallOptions(**options)

    def begin() -> AsyncRun:
        sink = _Sink()
        handler = FlatEvents(choice, sink.put)
        launch = make_launch(graph, given, merge_configs(config, {"callbacks": [handler]}), call)
        plan.prepare(launch)
        launch.readers = LIVE
        run = AsyncRun(launch)
        plan.connect(run, lambda part: handler.root_chunk(plan.format(part)))
        sink.connect(run)
        return run

    return AsyncPartReader(begin, lambda event: event)


class _Sink:
    """Where events go once there is a run."""

    def __init__(self) -> None:
        self._run: AsyncRun | None = None

    def connect(self, run: AsyncRun) -> None:
        self._run = run

    def put(self, event: dict[str, Any]) -> None:
        assert self._run is not None
        self._run.parts.put(event)
        self._run.ring()
