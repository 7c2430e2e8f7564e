"""The size of every container that can be reached from long-lived objects, by the path that leads there."""

from __future__ import annotations

import functools
import queue
import sys
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

__all__ = ["container_sizes", "module_roots"]

PACKAGES: Final = ("tracegraph", "tracegraph_exporters", "opentelemetry.sdk", "concurrent.futures", "benchmarks.soak.service")
"""Whose objects are looked into; of other objects only the containers themselves count."""

SIZED: Final = (
    *(dict, list, tuple, set, frozenset, deque),
    *(weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet),
)
_LRU: Final = type(functools.lru_cache(lambda: None))


def module_roots(packages: Iterable[str] = PACKAGES[:2]) -> dict[str, object]:
    """Return the loaded modules of *packages* by name."""
    wanted = tuple(packages)
    return {name: module for name, module in sorted(sys.modules.items()) if _is_of(name, wanted)}


def container_sizes(roots: Mapping[str, object]) -> dict[str, int]:
    """Return path -> size of what can be reached from *roots*; what several elements of a container have is added up.

    A cache counts if it has no limit: one that has cannot grow with the number of runs.

    >>> container_sizes({"table": {1: [10, 11], 2: [12]}})
    {'table': 2, 'table[*]': 3}
    """
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    waiting = deque((path, thing, True) for path, thing in roots.items())
    while waiting:
        path, thing, is_root = waiting.popleft()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if (size := _size(thing)) is not None:
            sizes[path] += size
        waiting.extend((path + step, part, False) for step, part in _parts(thing, is_root=is_root))
    return dict(sizes)


def _size(thing: object) -> int | None:
    if isinstance(thing, SIZED):
        return len(thing)
    if isinstance(thing, queue.Queue | queue.SimpleQueue):
        return thing.qsize()
    if isinstance(thing, _LRU):
        info = thing.cache_info()
        return info.currsize if info.maxsize is None else None
    return None


def _parts(thing: Any, *, is_root: bool) -> Iterator[tuple[str, Any]]:
    """Yield what a thing holds, and how one gets there."""
    if isinstance(thing, ModuleType):
        if is_root:
            # A copy: other threads may import something meanwhile.
            yield from ((f".{name}", value) for name, value in vars(thing).copy().items() if not name.startswith("__"))
    elif isinstance(thing, dict):
        yield from (("[*]", part) for pair in thing.copy().items() for part in pair)
    elif isinstance(thing, SIZED):
        yield from (("[*]", part) for part in list(thing))
    elif isinstance(thing, MethodType):
        yield "", thing.__self__
        yield "", thing.__func__
    elif isinstance(thing, FunctionType | _LRU):
        yield from _parts_of_function(thing)
    elif is_root or _is_of((thing if isinstance(thing, type) else type(thing)).__module__, PACKAGES):
        yield from _attributes(thing)


def _parts_of_function(function: Any) -> Iterator[tuple[str, Any]]:
    if not _is_of(str(getattr(function, "__module__", None)), PACKAGES):
        return
    yield from ((f".{name}", value) for name, value in vars(function).items())
    for name, cell in zip(_free_names(function), getattr(function, "__closure__", None) or (), strict=False):
        try:
            yield f"<{name}>", cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _free_names(function: Any) -> tuple[str, ...]:
    return function.__code__.co_freevars if isinstance(function, FunctionType) else ()


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    own = getattr(thing, "__dict__", {})
    yield from ((f".{name}", value) for name, value in dict(own).items() if not name.startswith("__"))
    for kind in () if isinstance(thing, type) else type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            name = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            value = None if name == "__weakref__" else getattr(thing, name, None)
            if value is not None:
                yield f".{name}", value


def _is_of(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)
