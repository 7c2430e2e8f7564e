"""What node code finds in ``config["callbacks"]``: models and tools report through it, and it publishes events.

A manager that stands in a run publishes on that run's Hub, so spans, streams and handlers hear of a model call from
the same object. Handlers that the Hub does not know (given to one call only), or all of them if there is no run,
are called directly. The attributes are those of LangChain's managers, which read them to make their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self, get_args
from uuid import UUID

from tracegraph.callbacks.inner import ChainRun, MemoryRun, ModelRun, RetrieverRun, ToolRun
from tracegraph.callbacks.place import NOWHERE, Place, Reporter
from tracegraph.callbacks.runs import BODY_TAG, node_run_id
from tracegraph.current import here
from tracegraph.errors import InvalidInputError
from tracegraph.events import CustomEmitted, MemoryOperation, MemoryStarted, ModelStarted, RetrievalStarted, ToolStarted

__all__ = ["CallbackManager", "adispatch_custom_event", "dispatch_custom_event", "handlers_of"]

_MEMORY_OPERATIONS: Final = get_args(MemoryOperation)


class CallbackManager:
    """Handlers, and the tags and metadata of what is called with them.

    Without a ``place`` it belongs to no run: its handlers are told of the calls made through it, and nobody else.
    """

    is_async = False

    def __init__(
        self,
        handlers: Iterable[Any] = (),
        inheritable_handlers: Iterable[Any] | None = None,
        parent_run_id: UUID | None = None,
        *,
        tags: Iterable[str] | None = None,
        inheritable_tags: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        inheritable_metadata: Mapping[str, Any] | None = None,
        place: Place = NOWHERE,
        parent_call_id: UUID | None = None,
    ) -> None:
        self.handlers: list[Any] = list(handlers)
        self.inheritable_handlers: list[Any] = list(inheritable_handlers or ())
        self.parent_run_id = parent_run_id
        self.tags: list[str] = list(tags or ())
        self.inheritable_tags: list[str] = list(inheritable_tags or ())
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.inheritable_metadata: dict[str, Any] = dict(inheritable_metadata or {})
        self.place = place
        self.parent_call_id = parent_call_id
        """The call of a model, tool, retriever or store this manager stands in, if any: a node run is not one."""

    @classmethod
    def at(
        cls,
        place: Place,
        *,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        own_tags: Sequence[str] = (BODY_TAG,),
        foreign: Any = None,
    ) -> CallbackManager:
        """Return the manager for node code at *place*, or for a path function whose run is *parent_run_id*.

        *tags* and *metadata* are those of run and node: all that is called inherits them. *own_tags* are for what
        is called directly, not for what that calls in turn (a path function passes none). *foreign* stands for the run
        in managers that LangChain makes of this one.
        """
        parent = parent_run_id or node_run_id(place.run_id, place.task_id, place.attempt)
        handlers = place.heard if foreign is None else (*place.heard, foreign)
        return cls(
            handlers,
            handlers,
            parent,
            tags=[*own_tags, *tags],
            inheritable_tags=tags,
            metadata=metadata,
            inheritable_metadata=metadata,
            place=place,
        )

    def below(self, call_id: UUID, tag: str | None = None) -> CallbackManager:
        """Return the manager for what is called inside call *call_id*, which was made through this one."""
        return type(self)(
            self.inheritable_handlers,
            self.inheritable_handlers,
            call_id,
            tags=[*([tag] if tag else []), *self.inheritable_tags],
            inheritable_tags=self.inheritable_tags,
            metadata=self.inheritable_metadata,
            inheritable_metadata=self.inheritable_metadata,
            place=self.place,
            parent_call_id=call_id,
        )

    # What LangChain's managers have, too

    def copy(self) -> Self:
        """Return an independent copy that stands at the same place."""
        return type(self)(
            self.handlers,
            self.inheritable_handlers,
            self.parent_run_id,
            tags=self.tags,
            inheritable_tags=self.inheritable_tags,
            metadata=self.metadata,
            inheritable_metadata=self.inheritable_metadata,
            place=self.place,
            parent_call_id=self.parent_call_id,
        )

    def merge(self, other: Any) -> Self:
        """Return a manager with the handlers, tags and metadata of both, at this one's place."""
        merged = self.copy()
        for handler in other.handlers:
            merged.add_handler(handler, inherit=False)
        for handler in other.inheritable_handlers:
            merged.add_handler(handler, inherit=True)
        merged.tags = list(dict.fromkeys([*self.tags, *other.tags]))
        merged.inheritable_tags = list(dict.fromkeys([*self.inheritable_tags, *other.inheritable_tags]))
        merged.metadata = {**self.metadata, **other.metadata}
        merged.inheritable_metadata = {**self.inheritable_metadata, **other.inheritable_metadata}
        return merged

    def add_handler(self, handler: Any, inherit: bool = True) -> None:
        """Add a handler unless it is there; *inherit* says whether it hears of what is called in turn."""
        _add(self.handlers, handler)
        if inherit:
            _add(self.inheritable_handlers, handler)

    def remove_handler(self, handler: Any) -> None:
        """Take a handler off, if it is there."""
        self.handlers = [h for h in self.handlers if h is not handler]
        self.inheritable_handlers = [h for h in self.inheritable_handlers if h is not handler]

    def set_handlers(self, handlers: Iterable[Any], inherit: bool = True) -> None:
        """Replace all handlers."""
        self.handlers = []
        self.inheritable_handlers = []
        for handler in handlers:
            self.add_handler(handler, inherit)

    def set_handler(self, handler: Any, inherit: bool = True) -> None:
        """Replace all handlers by one."""
        self.set_handlers([handler], inherit)

    def add_tags(self, tags: Iterable[str], inherit: bool = True) -> None:
        """Add tags; those that are there move to the end."""
        tags = list(tags)
        self.tags = [tag for tag in self.tags if tag not in tags] + tags
        if inherit:
            self.inheritable_tags = [tag for tag in self.inheritable_tags if tag not in tags] + tags

    def remove_tags(self, tags: Iterable[str]) -> None:
        """Take tags off."""
        gone = set(tags)
        self.tags = [tag for tag in self.tags if tag not in gone]
        self.inheritable_tags = [tag for tag in self.inheritable_tags if tag not in gone]

    def add_metadata(self, metadata: Mapping[str, Any], inherit: bool = True) -> None:
        """Add metadata, replacing equal keys."""
        self.metadata.update(metadata)
        if inherit:
            self.inheritable_metadata.update(metadata)

    def remove_metadata(self, keys: Iterable[str]) -> None:
        """Take metadata off."""
        for key in keys:
            self.metadata.pop(key, None)
            self.inheritable_metadata.pop(key, None)

    # Calls that begin here; each returned object reports how its call goes on

    def on_chat_model_start(
        self, serialized: Mapping[str, Any] | None, messages: Sequence[Sequence[Any]], run_id: UUID | None = None, **params: Any
    ) -> list[ModelRun]:
        """Announce a chat model call for each message list; *params* are what the model is called with."""
        batches = [list(batch) for batch in messages]
        return [self._model_started(serialized, batch, None if i else run_id, params, True) for i, batch in enumerate(batches)]

    def on_llm_start(
        self, serialized: Mapping[str, Any] | None, prompts: Sequence[str], run_id: UUID | None = None, **params: Any
    ) -> list[ModelRun]:
        """Announce a model call for each prompt."""
        return [self._model_started(serialized, prompt, None if i else run_id, params, False) for i, prompt in enumerate(prompts)]

    def _model_started(
        self, serialized: Mapping[str, Any] | None, batch: Any, run_id: UUID | None, params: Mapping[str, Any], is_chat: bool
    ) -> ModelRun:
        reporter = self._reporter()
        run = ModelRun(self, reporter, run_id or self.place.next_call_id(), name_of(serialized, params.get("name")))
        if reporter.wants(ModelStarted.bit):
            params = {key: value for key, value in params.items() if key != "name"}
            reporter.publish(ModelStarted(*run.facts(), serialized, is_chat, [batch], params, [*self.tags], {**self.metadata}))
        return run

    def on_tool_start(
        self,
        serialized: Mapping[str, Any] | None,
        input_str: str,
        run_id: UUID | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        tool_call_id: str | None = None,
        name: str | None = None,
        **_: Any,
    ) -> ToolRun:
        """Announce a tool call; *tool_call_id* is the model's id of it."""
        reporter = self._reporter()
        run = ToolRun(self, reporter, run_id or self.place.next_call_id(), name_of(serialized, name))
        if reporter.wants(ToolStarted.bit):
            given = input_str if inputs is None else dict(inputs)
            reporter.publish(ToolStarted(*run.facts(), serialized, given, tool_call_id, [*self.tags], {**self.metadata}))
        return run

    def on_retriever_start(
        self, serialized: Mapping[str, Any] | None, query: str, run_id: UUID | None = None, *, name: str | None = None, **_: Any
    ) -> RetrieverRun:
        """Announce that a retriever is asked."""
        reporter = self._reporter()
        run = RetrieverRun(self, reporter, run_id or self.place.next_call_id(), name_of(serialized, name))
        if reporter.wants(RetrievalStarted.bit):
            reporter.publish(RetrievalStarted(*run.facts(), serialized, query, [*self.tags], {**self.metadata}))
        return run

    def on_memory_start(
        self,
        operation: MemoryOperation,
        run_id: UUID | None = None,
        *,
        store_id: str | None = None,
        record_id: str | None = None,
        namespace: Sequence[str] | None = None,
        query: Any = None,
        records: Any = None,
        is_in_process: bool = False,
        name: str | None = None,
    ) -> MemoryRun:
        """Announce that long-term memory is asked for something. What a graph's store is asked is announced by itself.

        Args:
            operation: what is done; to read one record is a ``search_memory``, to write it, new or not, an ``upsert_memory``.
            store_id: what the store is called, if that is the same in all processes. Nothing about users: it is on every span.
            namespace: where in the store; for handlers and, if content is recorded, there.
            records: those to be written.
            is_in_process: the store is in this process, so nothing is sent anywhere.
            name: of the store, for people; else *store_id*.

        Raises:
            InvalidInputError: *operation* is none.
        """
        if operation not in _MEMORY_OPERATIONS:
            raise InvalidInputError(f"operation must be one of {', '.join(_MEMORY_OPERATIONS)}, not {operation!r}")
        reporter = self._reporter()
        run = MemoryRun(self, reporter, run_id or self.place.next_call_id(), name or store_id or "unnamed")
        if reporter.wants(MemoryStarted.bit):
            asked = (operation, store_id, record_id, namespace, query, records, is_in_process)
            reporter.publish(MemoryStarted(*run.facts(), *asked, [*self.tags], {**self.metadata}))
        return run

    def on_chain_start(
        self, serialized: Mapping[str, Any] | None, inputs: Any, run_id: UUID | None = None, *, name: str | None = None, **_: Any
    ) -> ChainRun:
        """Announce some other runnable, to handlers only."""
        run = ChainRun(self, self._reporter(), run_id or self.place.next_call_id(), name_of(serialized, name))
        run.on_chain_start(serialized, inputs)
        return run

    def on_custom_event(self, name: str, data: Any, **_: Any) -> Reporter:
        """Announce an event of the caller's own, below the node; await ``settled()`` of what is returned.

        Raises:
            RuntimeError: this manager belongs to no run, so there is nothing the event could be about.
        """
        at = self.place
        if at.hub is None:
            raise RuntimeError(f"custom event {name!r} was dispatched outside a run; dispatch it in a node")
        reporter = self._reporter()
        if reporter.wants(CustomEmitted.bit):
            facts = (at.run_id, at.ns, at.step, at.now(), at.task_id, at.node)
            reporter.publish(CustomEmitted(*facts, name, data, [*self.tags], {**self.metadata}))
        return reporter

    def _reporter(self) -> Reporter:
        heard = self.place.heard
        return Reporter(self.place, [h for h in self.handlers if not (_holds(heard, h) or _is_of_a_run(h))], self.parent_run_id)


def _is_of_a_run(handler: Any) -> bool:
    return getattr(handler, "is_of_the_run", False) is True


def _holds(handlers: Iterable[Any], handler: Any) -> bool:
    # By identity: a handler may well define an odd __eq__.
    return any(h is handler for h in handlers)


def _add(handlers: list[Any], handler: Any) -> None:
    if not _holds(handlers, handler):
        handlers.append(handler)


def name_of(serialized: Mapping[str, Any] | None, name: str | None) -> str:
    """Return the name of a called thing: the one given, else what its serialized form says.

    >>> name_of({"id": ["vendor", "chat", "FastModel"]}, None)
    'FastModel'
    """
    if name is not None:
        return name
    described = serialized or {}
    path = described.get("id") or ("unnamed",)
    return str(described.get("name") or path[-1])


def handlers_of(callbacks: Any, known: Iterable[Any] = ()) -> list[Any]:
    """Return the handlers in a config's ``callbacks`` (list, manager of ours or LangChain's, None), but not *known* ones.

    >>> handlers_of(["a", "b", "a"], known=["b"])
    ['a']
    """
    if callbacks is None:
        return []
    given = callbacks if isinstance(callbacks, (list, tuple)) else [*callbacks.handlers, *callbacks.inheritable_handlers]
    known = tuple(known)
    found: list[Any] = []
    for handler in given:
        if not (_holds(known, handler) or _is_of_a_run(handler)):
            _add(found, handler)
    return found


def dispatch_custom_event(name: str, data: Any, *, config: Mapping[str, Any] | None = None) -> None:
    """Tell handlers and observers of an event of your own, in a node; *config* is for threads without the node's context.

    Raises:
        RuntimeError: called outside a run.
    """
    _custom(name, data, config)


async def adispatch_custom_event(name: str, data: Any, *, config: Mapping[str, Any] | None = None) -> None:
    """Do what :func:`dispatch_custom_event` does, and wait for the async handlers that were given to this call only.

    Raises:
        RuntimeError: called outside a run.
    """
    await _custom(name, data, config).settled()


def _custom(name: str, data: Any, config: Mapping[str, Any] | None) -> Reporter:
    manager = None if config is None else config.get("callbacks")
    if not isinstance(manager, CallbackManager):
        manager = here("dispatch_custom_event()").config().get("callbacks")
    if isinstance(manager, CallbackManager):
        return manager.on_custom_event(name, data)
    raise RuntimeError(f"custom event {name!r} was dispatched where the config has no callback manager of the run")
