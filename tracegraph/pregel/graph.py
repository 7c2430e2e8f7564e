"""The executable graph's public face: a few lines each over a driver."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Literal, Self, TypeVar, Unpack, overload

from tracegraph.channels.base import BaseChannel
from tracegraph.config import RunnableConfig, merge_configs
from tracegraph.drivers.async_driver import AsyncRun
from tracegraph.drivers.effects import arun_flow, run_flow
from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.engine.actions import Finish
from tracegraph.engine.nesting import NestedField
from tracegraph.engine.node import Node
from tracegraph.engine.topology import Topology
from tracegraph.pregel import updating
from tracegraph.pregel.batch import abatch, batch
from tracegraph.pregel.history import History
from tracegraph.pregel.launch import CallArguments, CallOptions, make_launch
from tracegraph.pregel.node_builder import NodeBuilder
from tracegraph.pregel.snapshot import state_flow
from tracegraph.pregel.stream_events import checked_factories, flat_events, open_async_run, open_run, refuse_version
from tracegraph.pregel.streaming import StreamPlan, checked_keys, of_parts
from tracegraph.pregel.validation import check_graph, refuse_unsupported
from tracegraph.stream.parts import Typed
from tracegraph.stream.readers import AsyncPartReader, PartReader
from tracegraph.stream.v3.arun import AsyncGraphRunStream
from tracegraph.stream.v3.run import GraphRunStream
from tracegraph.types import GraphOutput, RetryPolicy, StateSnapshot, StreamBuffer

__all__ = ["Pregel"]

R = TypeVar("R", SyncRun, AsyncRun)


class Pregel:
    """Named nodes that read and write channels in supersteps; compiled graphs and low-level ones alike.

    It holds no run state, so one object serves any number of threads and event loops at once.
    """

    is_compiled_graph: ClassVar[bool] = True
    typed_output: Typed | None = None
    """Makes an instance of the output schema of values, where that is a dataclass or a Pydantic model."""
    typed_state: Typed | None = None
    """The same for the state."""

    def __init__(
        self,
        *,
        nodes: Mapping[str, Node | NodeBuilder],
        channels: Mapping[str, BaseChannel[Any, Any, Any]] | None,
        input_channels: str | Sequence[str],
        output_channels: str | Sequence[str],
        stream_channels: str | Sequence[str] | None = None,
        managed: Mapping[str, Any] | None = None,
        interrupt_before_nodes: Sequence[str] | str = (),
        interrupt_after_nodes: Sequence[str] | str = (),
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] = (),
        cache_policy: Any = None,
        context_schema: type[Any] | None = None,
        config: RunnableConfig | None = None,
        stream_mode: str = "values",
        stream_eager: bool = False,
        step_timeout: float | timedelta | None = None,
        name: str = "LangGraph",
        is_named: bool = False,
        debug: bool | None = None,
        joins: Mapping[str, tuple[tuple[str, ...], str]] | None = None,
        nested: Mapping[str, NestedField] | None = None,
        auto_validate: bool = True,
        strict: bool = False,
        concurrent_runs: Literal["reject", "queue"] = "reject",
        max_state_bytes: int | None = None,
        stream_transformers: Sequence[Any] | None = None,
    ) -> None:
        self.nodes: dict[str, Node] = {
            key: node.build(key) if isinstance(node, NodeBuilder) else node for key, node in nodes.items()
        }
        self.channels = {key: _keyed(key, channel) for key, channel in (channels or {}).items()}
        self.managed = dict(managed or {})
        self.input_channels = _as_given(input_channels)
        self.output_channels = _as_given(output_channels)
        self.stream_channels = tuple(self.channels) if stream_channels is None else _as_given(stream_channels)
        self.interrupt_before = _breakpoints(interrupt_before_nodes)
        self.interrupt_after = _breakpoints(interrupt_after_nodes)
        self.checkpointer = checkpointer
        self.store = store
        self.cache = cache
        self.cache_policy = cache_policy
        self.default_retry = (retry_policy,) if isinstance(retry_policy, RetryPolicy) else tuple(retry_policy)
        self.context_schema = context_schema
        self.config = config
        self.stream_mode = stream_mode
        self.stream_eager = stream_eager
        self.step_timeout = step_timeout
        self.name = name
        self.is_named = is_named
        self.debug = bool(debug)
        self.joins = dict(joins or {})
        self.nested = dict(nested or {})
        self.strict = strict
        self.concurrent_runs = concurrent_runs
        self.max_state_bytes = max_state_bytes
        self.stream_transformers = checked_factories(stream_transformers)
        refuse_unsupported(self)
        if auto_validate:
            self.validate()
        self.topology = self._topology()

    def _topology(self) -> Topology:
        return Topology(
            self.nodes,
            self.channels,
            input_channels=self.input_channels,
            output_channels=self.output_channels,
            stream_channels=self.stream_channels,
            joins=self.joins,
            nested=self.nested,
        )

    def validate(self) -> Self:
        """Check nodes and channels against each other.

        Raises:
            GraphDefinitionError: with everything that is wrong.
        """
        check_graph(self)
        return self

    @property
    def interrupt_before_nodes(self) -> Sequence[str] | str:
        """Nodes before which every run pauses, or "*"."""
        return self.interrupt_before if isinstance(self.interrupt_before, str) else sorted(self.interrupt_before)

    @property
    def interrupt_after_nodes(self) -> Sequence[str] | str:
        """Nodes after which every run pauses, or "*"."""
        return self.interrupt_after if isinstance(self.interrupt_after, str) else sorted(self.interrupt_after)

    # --- facts ---------------------------------------------------------------------------------------------

    @property
    def workflow_name(self) -> str | None:
        """What traces call the graph: its name, if somebody chose one."""
        return self.name if self.is_named else None

    def get_name(self) -> str:
        """Return the name the graph was compiled with, ``LangGraph`` if nobody chose one."""
        return self.name

    @property
    def stream_channels_list(self) -> list[str]:
        """Names of the streamed channels."""
        return [self.stream_channels] if isinstance(self.stream_channels, str) else list(self.stream_channels)

    @property
    def stream_channels_asis(self) -> str | Sequence[str]:
        """The streamed channels; a single one that is shown bare is a string."""
        return self.stream_channels

    def copy(self, update: Mapping[str, Any] | None = None) -> Self:
        """Return a shallow copy with some attributes changed."""
        made = copy.copy(self)
        for key, value in (update or {}).items():
            setattr(made, key, value)
        made.topology = type(made)._topology(made)  # noqa: SLF001  # a copy of its own class
        return made

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """Return a copy bound to a config; what a call passes is merged over it."""
        made = copy.copy(self)
        made.config = merge_configs(self.config, config, kwargs)  # type: ignore[arg-type]  # config keys as keywords
        return made

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Any:  # noqa: ARG002  # as Runnables have it
        """Return the graph's drawing (``draw_mermaid()``, ``to_json()``, ...); nothing of the user's is called.

        ``xray`` opens subgraphs: True at all levels, a number so many levels.
        """
        from tracegraph.drawing import draw

        return draw(self, xray=xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Any:
        """Do what :meth:`get_graph` does, which never waits."""
        return self.get_graph(config, xray=xray)

    def get_subgraphs(self, *, namespace: str | None = None, recurse: bool = False) -> Iterator[tuple[str, Pregel]]:
        """Yield the compiled graphs that nodes run, with their names joined by ``|``; *namespace* picks one."""
        for name, node in self.nodes.items():
            if (child := node.subgraph) is None or (namespace is not None and namespace.partition("|")[0] != name):
                continue
            if namespace is None or namespace == name:
                yield name, child
            if recurse or (namespace is not None and namespace != name):
                rest = None if namespace is None else namespace.partition("|")[2] or None
                for inner, graph in child.get_subgraphs(namespace=rest, recurse=recurse):
                    yield f"{name}|{inner}", graph

    async def aget_subgraphs(self, *, namespace: str | None = None, recurse: bool = False) -> AsyncIterator[tuple[str, Pregel]]:
        """Do what :meth:`get_subgraphs` does, which never waits."""
        for found in self.get_subgraphs(namespace=namespace, recurse=recurse):
            yield found

    # --- running -------------------------------------------------------------------------------------------

    def invoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        stream_mode: str | Sequence[str] = "values",
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        version: Literal["v1", "v2"] = "v1",
        **options: Unpack[CallArguments],
    ) -> Any:
        """Run to the end, or to an interrupt, and return the output.

        A pause shows as the key ``__interrupt__`` of the result, or, with ``version="v2"``, in ``GraphOutput.interrupts``.
        With another ``stream_mode`` the list of its parts is returned.
        """
        plan = self._plan(stream_mode, print_mode, self._output_keys(output_keys), subgraphs=False, version=version)
        if stream_mode == "values" and not print_mode:
            run = SyncRun(make_launch(self, input, config, CallOptions(**options)))
            return self._result(run.drive(), run, output_keys, version)
        reader = PartReader(partial(self.begin_stream, SyncRun, input, config, CallOptions(**options), plan), plan.format)
        return of_parts(list(reader), stream_mode, version)

    async def ainvoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        stream_mode: str | Sequence[str] = "values",
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        version: Literal["v1", "v2"] = "v1",
        **options: Unpack[CallArguments],
    ) -> Any:
        """Do what :meth:`invoke` does, on the running event loop."""
        plan = self._plan(stream_mode, print_mode, self._output_keys(output_keys), subgraphs=False, version=version)
        if stream_mode == "values" and not print_mode:
            run = AsyncRun(make_launch(self, input, config, CallOptions(**options)))
            return self._result(await run.drive(), run, output_keys, version)
        reader = AsyncPartReader(partial(self.begin_stream, AsyncRun, input, config, CallOptions(**options), plan), plan.format)
        return of_parts([part async for part in reader], stream_mode, version)

    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        stream_mode: str | Sequence[str] | None = None,
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1", "v2"] = "v1",
        buffer: StreamBuffer | None = None,
        **options: Unpack[CallArguments],
    ) -> PartReader:
        """Run and yield the parts of the chosen stream modes; nothing runs before the first one is asked for.

        One mode as a string gives bare payloads, several give ``(mode, payload)``; ``subgraphs`` puts the namespace in front,
        ``version="v2"`` gives ``{"type", "ns", "data"}`` dicts. ``close()`` stops the run. ``buffer=(max, what)`` bounds what is
        kept unread: then the reader loses the oldest ("drop_oldest"), the run waits ("block"), or it ends ("fail").
        """
        mode, printed = self._stream_mode(stream_mode), self._print_mode(print_mode, debug)
        plan = self._plan(mode, printed, output_keys, subgraphs=subgraphs, version=version, buffer=buffer)
        return PartReader(partial(self.begin_stream, SyncRun, input, config, CallOptions(**options), plan), plan.format)

    def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        stream_mode: str | Sequence[str] | None = None,
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1", "v2"] = "v1",
        buffer: StreamBuffer | None = None,
        **options: Unpack[CallArguments],
    ) -> AsyncPartReader:
        """Do what :meth:`stream` does, on the running event loop; ``aclose()`` stops the run."""
        mode, printed = self._stream_mode(stream_mode), self._print_mode(print_mode, debug)
        plan = self._plan(mode, printed, output_keys, subgraphs=subgraphs, version=version, buffer=buffer)
        return AsyncPartReader(partial(self.begin_stream, AsyncRun, input, config, CallOptions(**options), plan), plan.format)

    def stream_events(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v3",
        transformers: Sequence[Any] | None = None,
        **options: Any,
    ) -> GraphRunStream:
        """Return a run as an object, which its readers move on; nothing runs before something of it is asked for.

        *transformers* are classes of :class:`~tracegraph.stream.StreamTransformer`, besides those given to ``compile()``;
        *options* are those of :meth:`stream`; ``buffer`` holds for each reader. ``when_left`` is "stop", or "finish" for a run
        that goes on to its end when all its readers have left.

        Raises:
            TypeError: ``stream_mode`` or ``subgraphs`` is given, or a transformer is no class or function.
            NotImplementedError: the version is another one.
        """
        if version != "v3":
            refuse_version(version, "stream_events")
        return open_run(self, input, config, transformers, options)

    @overload
    def astream_events(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: Literal["v3"],
        transformers: Sequence[Any] | None = None,
        **options: Any,
    ) -> Awaitable[AsyncGraphRunStream]: ...
    @overload
    def astream_events(
        self, input: Any, config: RunnableConfig | None = None, *, version: Literal["v2"] = "v2", **options: Any
    ) -> AsyncPartReader: ...
    def astream_events(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v2",
        transformers: Sequence[Any] | None = None,
        **options: Any,
    ) -> Any:
        """Return what happens in a run: awaited with ``version="v3"``, a run as an object.

        With "v2" it is an async iterator of dicts with ``event``, ``name``, ``run_id``, ``parent_ids``, ``tags``,
        ``metadata`` and ``data``, one for each start, piece and end of graphs, nodes, models, tools, ... It takes
        ``include_names``, ``include_types``, ``include_tags`` and ``exclude_*``, and the options of :meth:`astream`, which
        say what the pieces of the graph itself are.

        Raises:
            NotImplementedError: the version is another one.
        """
        if version == "v3":
            return open_async_run(self, input, config, transformers, options)
        if version != "v2":
            refuse_version(version, "astream_events")
        return flat_events(self, input, config, transformers, options)

    def batch(self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any) -> list[Any]:
        """Invoke once per input, in threads, and return the outputs in order; ``config`` is one or one per input."""
        return batch(self.invoke, inputs, config, return_exceptions=return_exceptions, **kwargs)

    async def abatch(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Do what :meth:`batch` does, as asyncio tasks."""
        return await abatch(self.ainvoke, inputs, config, return_exceptions=return_exceptions, **kwargs)

    # --- state ---------------------------------------------------------------------------------------------

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state of a thread: the newest, or at the checkpoint that *config* names."""
        return run_flow(state_flow(self, config, subgraphs=subgraphs))

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Do what :meth:`get_state` does, awaiting the saver."""
        return await arun_flow(state_flow(self, config, subgraphs=subgraphs))

    def get_state_history(
        self, config: RunnableConfig, *, filter: dict[str, Any] | None = None, before: Any = None, limit: int | None = None
    ) -> Iterator[StateSnapshot]:
        """Yield a thread's states, newest first: those whose metadata match *filter*, older than *before*, at most *limit*.

        They are loaded a page at a time, as they are asked for.
        """
        history = History(self, config, filter=filter, before=before, limit=limit)
        while page := run_flow(history.page()):
            yield from map(history.shown, page)

    async def aget_state_history(
        self, config: RunnableConfig, *, filter: dict[str, Any] | None = None, before: Any = None, limit: int | None = None
    ) -> AsyncIterator[StateSnapshot]:
        """Do what :meth:`get_state_history` does, awaiting the saver."""
        history = History(self, config, filter=filter, before=before, limit=limit)
        while page := await arun_flow(history.page()):
            for saved in page:
                yield history.shown(saved)

    update_state = updating.update_state
    aupdate_state = updating.aupdate_state
    bulk_update_state = updating.bulk_update_state
    abulk_update_state = updating.abulk_update_state

    # --- inside --------------------------------------------------------------------------------------------

    def _plan(self, mode: Any, print_mode: Any, output_keys: Any, *, buffer: Any = None, **shape: Any) -> StreamPlan:
        keys = self.stream_channels if output_keys is None else checked_keys(self, output_keys)
        return StreamPlan(
            mode,
            print_mode,
            keys,
            **shape,
            is_eager=self.stream_eager,
            buffer=buffer,
            output=self.typed_output if keys is self.stream_channels or keys is self.output_channels else None,
            state=self.typed_state,
        )

    def plan_stream(self, options: dict[str, Any], **shape: Any) -> StreamPlan:
        """Take what a stream shows out of the *options* of a call, checked."""
        shape = {"version": "v1", "subgraphs": options.pop("subgraphs", False), "buffer": options.pop("buffer", None), **shape}
        mode = self._stream_mode(options.pop("stream_mode", None))
        printed = self._print_mode(options.pop("print_mode", ()), options.pop("debug", None))
        return self._plan(mode, printed, options.pop("output_keys", None), **shape)

    def begin_stream(self, kind: type[R], given: Any, config: RunnableConfig | None, options: CallOptions, plan: StreamPlan) -> R:
        """Make the run of a stream, which begins when its first part is asked for."""
        launch = make_launch(self, given, config, options)
        plan.prepare(launch)
        run = kind(launch)
        plan.connect(run)
        return run

    def _output_keys(self, given: str | Sequence[str] | None) -> str | Sequence[str]:
        return self.output_channels if given is None else given

    def _stream_mode(self, given: str | Sequence[str] | None) -> str | Sequence[str]:
        from tracegraph.current import CURRENT

        if given is not None:
            return given
        # A graph streamed by a node most likely wants what its own caller wants: whole states.
        return "values" if CURRENT.get() is not None else self.stream_mode

    def _print_mode(self, given: str | Sequence[str], debug: bool | None) -> str | Sequence[str]:
        return ("updates", "values") if (self.debug if debug is None else debug) else given

    def _result(self, finish: Finish, run: SyncRun | AsyncRun, output_keys: str | Sequence[str] | None, version: str) -> Any:
        value = finish.output
        if output_keys is not None:
            value = run.read_output(checked_keys(self, output_keys))
        if version == "v2":
            typed = self.typed_output if output_keys is None else None
            return GraphOutput(value if typed is None else typed(value), finish.interrupts)
        if finish.interrupts:
            shown = list(finish.interrupts)
            return {**value, "__interrupt__": shown} if isinstance(value, dict) else {"__interrupt__": shown}
        return value


def _keyed(key: str, channel: BaseChannel[Any, Any, Any]) -> BaseChannel[Any, Any, Any]:
    # One channel object may stand in several annotations: each name gets its own.
    made = channel.copy() if channel.key and channel.key != key else channel
    made.key = key
    return made


def _as_given(channels: str | Sequence[str]) -> str | tuple[str, ...]:
    return channels if isinstance(channels, (str, tuple)) else tuple(channels)


def _breakpoints(names: Sequence[str] | str) -> frozenset[str] | str:
    return "*" if names == "*" else frozenset((names,) if isinstance(names, str) else names)
