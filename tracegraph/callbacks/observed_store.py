"""A store that tells of what it is asked.

Where somebody observes a run, the runtime puts this around the graph's store. Store classes need not know of it: they
are called as ever, and what they call on themselves is not told again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from tracegraph.callbacks.inner import MemoryRun
from tracegraph.callbacks.manager import CallbackManager
from tracegraph.callbacks.store_calls import READERS, Asked, asked_of, found_by
from tracegraph.current import CURRENT, Here
from tracegraph.events import MEMORY_KINDS

__all__ = ["observed_store"]

_METHODS: Final = ("get", "search", "put", "delete")
"""What makes an object a store, in one colour at least."""

_BATCHES: Final = frozenset({"batch", "abatch"})


def _nowhere() -> Here | None:
    """Return what there is where no attempt is."""
    return None


def observed_store(store: Any, attempt: Callable[[], Here | None] = _nowhere) -> Any:
    """Return what stands for *store* and tells the run, in whose node it is called, of what it is asked.

    ``get`` and ``search`` become ``search_memory`` calls, ``put`` ``upsert_memory``, ``delete`` and a ``put`` of None
    ``delete_memory``; a ``batch`` is one call for each of these kinds that is in it, and the async forms do as well.
    Everything else is the store's: ``isinstance``, attributes, ``==``, ``with``. Only ``is`` and ``type()`` tell the two
    apart. The runtime does this to ``compile(store=...)``; it is for stores that nodes get elsewhere.

    An object without the methods of a store is returned as it is. The store may say two things of itself: ``store_id``,
    a name that is the same in all processes and has nothing about users, and ``is_in_process``, whether it is in this one.

    Args:
        attempt: returns what runs where the store is called in a thread without a node's context; None for nothing.

    >>> class Notes(dict):
    ...     def put(self, namespace, key, value):
    ...         self[namespace, key] = value
    ...
    ...     def search(self, namespace_prefix, *, query=None):
    ...         return list(self.values())
    ...
    ...     def delete(self, namespace, key):
    ...         del self[namespace, key]
    >>> notes = observed_store(Notes())
    >>> notes.put(("ann",), "tea", {"likes": True})
    >>> isinstance(notes, Notes), len(notes), notes
    (True, 1, {(('ann',), 'tea'): {'likes': True}})
    >>> observed_store("no store")
    'no store'
    """
    store = _bare(store)
    kind = type(store)
    if not all(hasattr(kind, name) or hasattr(kind, f"a{name}") for name in _METHODS):
        return store
    return _class_for(kind)(store, attempt)  # type: ignore[arg-type]  # classes are hashable, which mypy does not know of type[Any]


class _ObservedStore:
    """Stands for a store. A subclass for each class of stores has the special methods that the class has."""

    __slots__ = ("__weakref__", "_attempt", "_observed")

    def __init__(self, store: Any, attempt: Callable[[], Here | None]) -> None:
        object.__setattr__(self, "_observed", store)
        object.__setattr__(self, "_attempt", attempt)

    @property  # type: ignore[misc]  # what isinstance() goes by
    def __class__(self) -> type[Any]:
        return type(self._observed)

    def __getattr__(self, name: str) -> Any:
        # Asked for whatever the slots are not.
        value = getattr(self._observed, name)
        return _reporting(value, name, self._observed, self._attempt) if name in READERS and callable(value) else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._observed, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._observed, name)

    def __dir__(self) -> list[str]:
        return dir(self._observed)


_OWN: Final = frozenset(
    {
        *vars(_ObservedStore),
        "__new__",
        "__getattribute__",
        "__init_subclass__",
        "__subclasshook__",
        "__class_getitem__",
        "__del__",
        "__getstate__",
    }
)
"""Special methods that are the stand-in's own, or the class's. ``__reduce_ex__`` is not: a copy is one of the store."""


@functools.lru_cache(maxsize=64)
def _class_for(kind: type[Any]) -> type[_ObservedStore]:
    """Return the class that stands for *kind*: special methods are looked up there, and not by ``__getattr__``."""
    methods: dict[str, Any] = {"__slots__": ()}
    for name in dir(kind):
        if name.startswith("__") and name.endswith("__") and name not in _OWN:
            found = getattr(kind, name, None)
            if callable(found):
                methods[name] = _special(name)
            elif name == "__hash__":
                methods[name] = None
    return type(f"Observed{kind.__name__}", (_ObservedStore,), methods)


def _special(name: str) -> Callable[..., Any]:
    def method(self: _ObservedStore, *args: Any, **kwargs: Any) -> Any:
        store = self._observed
        result = getattr(type(store), name)(store, *map(_bare, args), **kwargs)
        return self if result is store else result  # `with store as s`

    return method


def _bare(value: Any) -> Any:
    return value._observed if issubclass(type(value), _ObservedStore) else value  # noqa: SLF001  # it has no public side


# --- calls --------------------------------------------------------------------------------------------------------


def _reporting(method: Callable[..., Any], name: str, store: Any, attempt: Callable[[], Here | None]) -> Callable[..., Any]:
    """Return what calls *method* of *store* and tells of it."""
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = _read_once(name, args, kwargs)
            calls = _Calls.begin(name, store, attempt, args, kwargs)
            return await calls.awaited(method(*args, **kwargs))

        return acall

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _read_once(name, args, kwargs)
        calls = _Calls.begin(name, store, attempt, args, kwargs)
        try:
            result = method(*args, **kwargs)
        except BaseException as error:
            calls.failed(error)
            raise
        if inspect.isawaitable(result):
            return calls.awaited(result)
        calls.ended(result)
        return result

    return call


def _read_once(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments in a form that can be read twice: operations may come from an iterator."""
    if name not in _BATCHES:
        return args, kwargs
    if args:
        return (_listed(args[0]), *args[1:]), kwargs
    return args, {key: _listed(value) if key == "ops" else value for key, value in kwargs.items()}


def _listed(ops: Any) -> Any:
    return list(ops) if isinstance(ops, Iterator) else ops


class _Calls:
    """The memory calls that one call of a store is: none if nobody listens, one, or for a batch one of each kind."""

    __slots__ = ("_is_batch", "_runs")

    def __init__(self, runs: list[tuple[MemoryRun, Asked]], *, is_batch: bool) -> None:
        self._runs = runs
        self._is_batch = is_batch

    @classmethod
    def begin(
        cls, name: str, store: Any, attempt: Callable[[], Here | None], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Calls:
        """Announce what *store* is about to be asked."""
        manager = _manager(attempt)
        if manager is None:
            return cls([], is_batch=False)
        store_id = getattr(store, "store_id", None)
        runs = []
        for asked in asked_of(READERS[name](args, kwargs)):
            run = manager.on_memory_start(
                asked.operation,
                store_id=store_id if isinstance(store_id, str) else None,
                record_id=asked.record_id,
                namespace=asked.namespace,
                query=asked.query,
                records=asked.records,
                is_in_process=_is_in_process(store),
                name=type(store).__name__,
            )
            runs.append((run, asked))
        return cls(runs, is_batch=name in _BATCHES)

    def ended(self, result: Any) -> None:
        """Tell of what the store answered."""
        answers = result if self._is_batch else [result]
        for run, asked in self._runs:
            records, count = found_by(asked, answers)
            run.on_memory_end(records, count=count)

    def failed(self, error: BaseException) -> None:
        """Tell of what it raised."""
        for run, _ in self._runs:
            run.on_memory_error(error)

    async def awaited(self, answer: Awaitable[Any]) -> Any:
        """Return what *answer* brings, and tell of it."""
        try:
            result = await answer
        except BaseException as error:
            self.failed(error)
            raise
        self.ended(result)
        for run, _ in self._runs:
            await run.settled()
        return result


def _manager(attempt: Callable[[], Here | None]) -> CallbackManager | None:
    """Return the manager of the node whose code is running, else of *attempt*; None if nobody would be told."""
    here: Here | None = CURRENT.get() or attempt()
    manager = None if here is None else here.config().get("callbacks")
    if not isinstance(manager, CallbackManager) or manager.place.hub is None or not manager.place.hub.wants & MEMORY_KINDS:
        return None
    # Whether a node is silent must not depend on whether somebody listens, so this is no sign of progress.
    quiet = manager.copy()
    quiet.place = replace(manager.place, progress=None)
    return quiet


def _is_in_process(store: Any) -> bool:
    told = getattr(store, "is_in_process", None)
    if isinstance(told, bool):
        return told
    return any(kind.__module__ == "langgraph.store.memory" for kind in type(store).__mro__)
