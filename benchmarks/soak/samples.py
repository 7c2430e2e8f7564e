"""What is looked at between two rounds, when nothing runs: memory, and the number of everything that could be left behind."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import gc
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from benchmarks.soak.containers import container_sizes, module_roots
from benchmarks.soak.service import Service
from tracegraph.drivers import workers

__all__ = ["Kind", "Sample", "Sizes", "busy_threads", "file_descriptors", "take_sample", "trimmed_rss_bytes"]

Kind: TypeAlias = Literal["count", "table", "type"]
Sizes: TypeAlias = dict[str, int]

_STATM: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """The figures after so many runs."""

    runs: int
    rss_bytes: int
    totals: Sizes
    """Sums, to be read rather than judged."""
    sizes: Mapping[Kind, Sizes]
    """count: threads, file descriptors, tasks, spans and the like; table: containers by path, and tables of the database;
    type: objects that the garbage collector knows, by class."""


def take_sample(service: Service) -> Sample:
    """Collect the garbage and look at everything."""
    service.flush()
    gc.collect()
    # First, for what follows makes thousands of objects.
    rss_bytes, blocks, malloc_bytes = _rss_bytes(), sys.getallocatedblocks(), _malloc_bytes()
    tables = container_sizes(_roots(service)) | {f"rows of {name}": count for name, count in service.rows().items()}
    types = _types()
    totals = {
        "bytes in use in malloc's main arena": malloc_bytes,
        "blocks in use in Python's allocator": blocks,
        "items of all containers": sum(tables.values()),
        "objects known to the garbage collector": sum(types.values()),
    }
    return Sample(service.runs, rss_bytes, totals, {"count": _counts(service), "table": tables, "type": types})


def busy_threads() -> list[str]:
    """Return the names of all threads, without those of our workers that have nothing to do: they end by themselves."""
    idle = set(workers._idle)  # noqa: SLF001  # only the pool itself knows
    return sorted(thread.name for thread in threading.enumerate() if thread not in idle)


def file_descriptors() -> int:
    """Return how many file descriptors are open."""
    return len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208  # without the folder's own


def trimmed_rss_bytes() -> int:
    """Return what is left once the allocator has given back all it can: what grew and goes away here was nobody's."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)
    return _rss_bytes()


class _MallInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    )


def _malloc_bytes() -> int:
    """Return the bytes in use in glibc's main arena, 0 with another allocator."""
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        return 0
    mallinfo2.restype = _MallInfo
    return int(mallinfo2().uordblks)


def _rss_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES


def _roots(service: Service) -> dict[str, object]:
    handlers = (*service.handlers, service.async_open_runs)
    roots: dict[str, Any] = {f"handler {type(handler).__name__}": handler for handler in handlers}
    roots |= {"spans": service.spans, "provider": service.provider}
    roots |= {f"{name} saver": saver for name, saver in service.savers.items()}
    roots |= {"loop timers": getattr(service.loop, "_scheduled", ()), "loop callbacks": getattr(service.loop, "_ready", ())}
    return {**module_roots(), **roots, "service": service}


def _counts(service: Service) -> dict[str, int]:
    idle = len(workers._idle)  # noqa: SLF001  # see busy_threads
    return {
        "threads": len(busy_threads()),
        "threads of the system": len(os.listdir("/proc/self/task")) - idle,  # noqa: PTH208  # counts only
        "file descriptors": file_descriptors(),
        "asyncio tasks": len(asyncio.all_tasks(service.loop)),
        "open spans": len(service.spans.names),
        "open runs of handlers": len(service.open_runs.names) + len(service.async_open_runs.names),
        "spans ended twice": len(service.spans.ended_twice),
        "spans ended, not exported": service.spans.ended - service.exporter.count,
        "context variables": len(contextvars.copy_context()),
        "uncollectable objects": len(gc.garbage),
    }


def _types() -> dict[str, int]:
    kinds = Counter(map(type, gc.get_objects()))
    # A connection of sqlite3 keeps some 200 dead ones to its cursors before it looks them through.
    del kinds[weakref.ReferenceType]
    found: Counter[str] = Counter()
    for kind, count in kinds.items():
        found[f"{kind.__module__}.{kind.__qualname__}"] += count
    return dict(found)
