"""From a call's arguments to a :class:`~tracegraph.drivers.run.Launch`: whose hub, which saver, which namespace.

A graph called in node code finds the enclosing task through ``current`` and shares its hub; it shares thread and
namespace too, unless the call brings a thread of its own (design 6.5).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from tracegraph.callbacks.dispatch import HandlerObserver
from tracegraph.callbacks.hub import Hub, Observer
from tracegraph.callbacks.manager import CallbackManager, handlers_of
from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.config import RunSpec, ensure_config
from tracegraph.current import CURRENT
from tracegraph.drivers.here import HereNow
from tracegraph.drivers.launch import Launch
from tracegraph.drivers.saves import SaverPort
from tracegraph.engine.identity import without_ids
from tracegraph.errors import InvalidInputError
from tracegraph.events import RunStarted
from tracegraph.runtime import RunControl, Runtime, ServerInfo, coerce_context
from tracegraph.telemetry import attach_here, observers_for_root
from tracegraph.types import Durability, seconds_of

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["CallArguments", "CallOptions", "make_launch", "resolve_saver"]

_new_bits = random.Random().getrandbits  # noqa: S311  # run ids need to be different, not secret


class CallArguments(TypedDict, total=False):
    """What ``invoke``, ``stream`` and their async twins take alike."""

    context: Any
    """The run's context: an instance of the context schema, or a dict it is made of."""
    interrupt_before: Sequence[str] | str | None
    """Nodes to pause before, "*" for all; instead of those given to ``compile()``."""
    interrupt_after: Sequence[str] | str | None
    durability: Durability | None
    control: RunControl | None
    """Handle through which the run can be asked to stop between two supersteps, and which may limit its time."""


class CallOptions:
    """The arguments of ``invoke`` and ``stream`` beside input and config."""

    __slots__ = ("context", "control", "durability", "interrupt_after", "interrupt_before")

    def __init__(
        self,
        *,
        context: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Durability | None = None,
        control: RunControl | None = None,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            hint = f": give control=RunControl({name}=...)" if name in ("deadline_s", "max_tasks") else ""
            raise TypeError(f"a graph is not called with {name!r}{hint}")
        self.context = context
        self.interrupt_before = interrupt_before
        self.interrupt_after = interrupt_after
        self.durability = durability
        self.control = control


def make_launch(graph: Pregel, given: Any, config: Any, options: CallOptions) -> Launch:
    """Resolve a call.

    Raises:
        InvalidInputError: the arguments contradict each other (durability without a checkpointer, no thread_id, ...).
    """
    parent: HereNow | None = CURRENT.get() or _attempt_of(config) or _attempt_of(graph.config)
    if parent is not None and not config and not graph.config:
        spec = parent.inherited_spec()
    else:
        spec = RunSpec.of(ensure_config(graph.config, config))
    is_nested = parent is not None and spec.thread_id == parent.run.thread_id and spec.checkpoint_ns == parent.namespace
    run_id = spec.run_id or _new_run_id()
    saver = resolve_saver(graph, parent if is_nested else None)
    ns, origin_ns = _namespaces(graph, parent) if is_nested and parent is not None else ("", None)
    port = _port(saver, spec, ns, parent.run.saver if is_nested and parent is not None else None)
    hub, handlers, own = _audience(spec, parent, run_id)
    return Launch(
        topology=graph.topology,
        name=spec.run_name or graph.name,
        workflow_name=spec.run_name or graph.workflow_name,
        spec=spec,
        run_id=run_id,
        input=given,
        hub=hub,
        is_root=parent is None,
        parent=parent,
        is_nested=is_nested,
        saver=port,
        ns=ns,
        thread_id=spec.thread_id,
        durability=_durability(options.durability, saver, parent if is_nested else None),
        runtime=_runtime(graph, spec, parent, options),
        handlers=handlers,
        own_observers=own,
        observer_factory=_telemetry if parent is None else None,
        interrupt_before=_names(options.interrupt_before) or graph.interrupt_before,
        interrupt_after=_names(options.interrupt_after) or graph.interrupt_after,
        default_retry=graph.default_retry,
        is_strict=graph.strict,
        max_state_bytes=graph.max_state_bytes,
        step_timeout=None if graph.step_timeout is None else seconds_of(graph.step_timeout, "step_timeout"),
        deadline_s=_deadline_s(parent, options.control),
        takes_turns=port is not None and not is_nested and graph.concurrent_runs == "queue" and not _has_turn(parent, port),
        is_stateful=is_nested and graph.checkpointer is True,
        origin_ns=origin_ns,
        parents=parent.run.checkpoint_map() if is_nested and parent is not None else {},
    )


def _attempt_of(config: Any) -> HereNow | None:
    """Return the attempt that handed *config* out, while it lasts: in a thread of a node's own nothing else leads to it."""
    manager = config.get("callbacks") if config else None
    found: HereNow | None = manager.place.attempt_here() if isinstance(manager, CallbackManager) else None
    return None if found is None or found.is_over else found


def _port(saver: BaseCheckpointSaver | None, spec: RunSpec, ns: str, around: SaverPort | None) -> SaverPort | None:
    """Return the run's way to its saver; *around* is that of the run around it."""
    if saver is None:
        return None
    if spec.thread_id is None:
        raise InvalidInputError(
            'a graph with a checkpointer needs a thread to save under: invoke(..., {"configurable": {"thread_id": "..."}})'
        )
    return SaverPort(
        saver,
        thread_id=spec.thread_id,
        ns=ns,
        configurable=spec.configurable,
        metadata=spec.metadata,
        newest=None if around is None else around.newest,
    )


def _has_turn(parent: HereNow | None, port: SaverPort) -> bool:
    """Say whether a run around this one has the thread already: it would wait for itself."""
    while parent is not None:
        run = parent.run
        if run.turn is not None and run.saver is not None:
            # Not the savers themselves: compile() gives graphs with different state copies of one.
            its, ours = run.saver.saver.storage_key, port.saver.storage_key
            if its is ours and run.thread_id == port.thread_id:
                return True
        parent = run.parent
    return False


def _new_run_id() -> UUID:
    # uuid4 asks the system for every id; one generator seeded by the system is as unique and ten times faster.
    return UUID(int=_new_bits(128) & ~(0xF000 << 64) & ~(0xC000 << 48) | 0x4000 << 64 | 0x8000 << 48)


def _telemetry(started: RunStarted) -> tuple[Sequence[Observer], Any]:
    observers, context = observers_for_root(started)
    return observers, None if context is None else partial(attach_here, context)


def _audience(spec: RunSpec, parent: HereNow | None, run_id: UUID) -> tuple[Hub, Sequence[Any], Sequence[Observer]]:
    """Return the hub, the handlers it knows, and the observers that come and go with this run."""
    if parent is None:
        handlers = handlers_of(spec.callbacks)
        if not handlers:
            return Hub(), (), ()
        parent_run_id = getattr(spec.callbacks, "parent_run_id", None)
        return Hub([HandlerObserver(handlers, parent_run_id=parent_run_id)]), handlers, ()
    known = parent.run.handlers
    added = handlers_of(spec.callbacks, known)
    if not added:
        return parent.run.hub, known, ()
    observer = HandlerObserver(added, run_id=run_id, parent_run_id=getattr(spec.callbacks, "parent_run_id", None))
    return parent.run.hub, [*known, *added], (observer,)


def resolve_saver(graph: Pregel, parent: HereNow | None) -> BaseCheckpointSaver | None:
    """Return the saver of a run: a nested one uses its parent's, unless it was compiled without."""
    own = graph.checkpointer
    if parent is not None:
        if own is False:
            return None
        port = parent.run.saver
        return None if port is None else port.saver
    if own is True:
        raise InvalidInputError("checkpointer=True means 'the parent graph's', so this graph cannot be the one that is invoked")
    return None if own is None or own is False else own


def _namespaces(graph: Pregel, parent: HereNow) -> tuple[str, str | None]:
    """Return where a nested run is filed, and where it was in the superstep of the past that is done again, if one is."""
    ns, then = parent.child_namespace(), parent.origin_namespace
    origin = None if then is None else then + ns.removeprefix(parent.namespace)
    if graph.checkpointer is True:
        # State that lives on between calls must not be filed under the ids of one call.
        return without_ids(ns), None if origin is None else without_ids(origin)
    return ns, origin


def _durability(given: Durability | None, saver: Any, parent: HereNow | None) -> Durability | None:
    if given is not None and given not in ("sync", "async", "exit"):
        raise InvalidInputError(f"durability must be 'sync', 'async' or 'exit', not {given!r}")
    if saver is None:
        if given is not None:
            raise InvalidInputError(f"durability={given!r} needs a checkpointer: compile(checkpointer=...)")
        return None
    if given is not None:
        return given
    return (parent.run.launch.durability if parent is not None else None) or "async"


def _deadline_s(parent: HereNow | None, control: RunControl | None) -> float | None:
    """Return the time limit of the run that *control* is given to.

    A run inside it has none of its own, even if node code passes the control on: the two would end at nearly the same
    time, and the inner one's error must not get to the node before the outer run's end does.
    """
    if control is None or (parent is not None and parent.run.runtime.control is control):
        return None
    return control.deadline_s


def _names(given: Any) -> frozenset[str] | str:
    if not given:
        return frozenset()
    return "*" if given == "*" else frozenset((given,) if isinstance(given, str) else given)


def _runtime(graph: Pregel, spec: RunSpec, parent: HereNow | None, options: CallOptions) -> Runtime[Any]:
    context = coerce_context(graph.context_schema, options.context)
    if parent is not None:
        outer = parent.run.runtime
        if context is None and options.control is None:
            return outer
        return outer.override(
            context=outer.context if context is None else context,
            control=options.control or outer.control,
        )
    return Runtime(context=context, store=graph.store, control=options.control, server_info=_server_info(spec))


def _server_info(spec: RunSpec) -> ServerInfo | None:
    found = spec.configurable
    if "assistant_id" not in found and "graph_id" not in found:
        return None
    assistant_id, graph_id = (str(found.get(key) or "") for key in ("assistant_id", "graph_id"))
    return ServerInfo(assistant_id, graph_id, found.get("langgraph_auth_user"))
