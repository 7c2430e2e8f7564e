"""Deterministic ids: a task's id says checkpoint, namespace, superstep, node and position, and nothing else.

Ids are xxh3-128 digests rendered as UUID text, so a replay makes the ids of the first run, on any machine.
Changing a byte of what is hashed orphans the stored writes of every paused thread: ``tests/engine`` holds
golden vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xxhash import xxh3_128_hexdigest

from tracegraph.constants import NODE_ERROR_HANDLER, NS_END, NS_SEP, PULL, PUSH

__all__ = ["hash_text", "interrupt_id", "path_text", "task_id", "task_namespace"]


def _as_uuid(digest: str) -> str:
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def hash_text(text: str) -> str:
    """Return the xxh3-128 hex digest of *text*."""
    return xxh3_128_hexdigest(text.encode())


def path_text(path: Any) -> str:
    """Return the sort key of a task path.

    >>> path_text(("__pregel_push", 0, False))
    '~__pregel_push, 0000000000, 0000000000'
    """
    if isinstance(path, (tuple, list)):
        return "~" + ", ".join(path_text(p) for p in path)
    return f"{int(path):010d}" if isinstance(path, int) else str(path)


def pull_path(name: str) -> tuple[Any, ...]:
    """Return the path of a task that a channel change triggered."""
    return (PULL, name)


def pull_suffix(name: str, triggers: Sequence[str]) -> bytes:
    """Return the constant tail of a PULL task's id parts; *triggers* are sorted."""
    return (name + PULL + "".join(triggers)).encode()


def graph_namespace(ns: str, name: str) -> str:
    """Return a node's namespace without the task id: what its task ids are hashed from."""
    return f"{ns}{NS_SEP}{name}" if ns else name


def task_namespace(ns: str, name: str, task_id: str) -> str:
    """Return the checkpoint namespace of a task: ``parent|node:task_id``."""
    return f"{graph_namespace(ns, name)}{NS_END}{task_id}"


def without_ids(ns: str) -> str:
    """Return a namespace with the task ids left out.

    >>> without_ids("outer:0a1b|inner:2c3d|1")
    'outer|inner|1'
    """
    return NS_SEP.join(segment.partition(NS_END)[0] for segment in ns.split(NS_SEP))


def task_id(checkpoint: bytes, ns: str, step: int, name: str, suffix: bytes) -> str:
    """Return a task's id, hashed from where it stands.

    *checkpoint* are the 16 raw bytes of the checkpoint's (or run's) UUID, *ns* is the graph's checkpoint namespace,
    *suffix* the kind-specific tail from :func:`pull_suffix`, :func:`send_suffix`, ...
    """
    return _as_uuid(xxh3_128_hexdigest(checkpoint + f"{graph_namespace(ns, name)}{step}".encode() + suffix))


def send_suffix(name: str, index: int) -> bytes:
    """Return the tail for the *index*-th Send of a superstep."""
    return f"{name}{PUSH}{index}".encode()


def call_suffix(name: str, caller_path: Any, index: int) -> bytes:
    """Return the tail for the *index*-th ``task()`` call of the task at *caller_path*."""
    return f"{name}{PUSH}{path_text(caller_path)}{index}".encode()


def handler_suffix(handler: str, failed_task_id: str) -> bytes:
    """Return the tail for the error handler of a failed task."""
    return f"{handler}{PUSH}{NODE_ERROR_HANDLER}{failed_task_id}".encode()


def interrupt_id(task_ns: str, answered: int) -> str:
    """Return the id of a task's next question, after *answered* answers."""
    return hash_text(task_ns if answered == 0 else f"{task_ns}{NS_SEP}{answered}")


def derived_uuid_text(*parts: Iterable[int] | bytes | str) -> str:
    """Return a UUID text hashed from *parts*, for the ids of runs inside a run."""
    return _as_uuid(xxh3_128_hexdigest(b"".join(p.encode() if isinstance(p, str) else bytes(p) for p in parts)))
