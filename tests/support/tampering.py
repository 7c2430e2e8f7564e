"""Schedules of failures: a recipe's nodes fail as often as a list says, leave dirt, and count what they finished."""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st
from libraries import ours
from recipes import Recipe, Step, text_of

from tracegraph.config import get_stream_writer
from tracegraph.errors import UnknownTargetError
from tracegraph.types import RetryPolicy

Way: TypeAlias = Literal["first", "last", "on the way out"]
"""An attempt fails before its function has done anything, after it has done everything, or when its result is taken."""

DIRT = "dirt"


class Odd(Exception):
    """Fails, and is some policy's business."""


class Even(Exception):
    """Fails, and is another policy's business."""


@dataclass(frozen=True)
class Failure:
    """How one attempt fails."""

    way: Way
    error: type[Exception]


Schedule: TypeAlias = dict[str, list[Failure | None]]
"""For each node, by its path, how its attempts go in the order in which they begin; after the last, all go well."""


def schedules(recipe: Recipe) -> st.SearchStrategy[Schedule]:
    """Return a strategy of failures for the nodes of a recipe and of the graphs inside it."""
    attempt = st.none() | st.builds(Failure, st.sampled_from(["first", "last", "on the way out"]), st.sampled_from([Odd, Even]))
    return st.fixed_dictionaries({path: st.lists(attempt, max_size=4) for path in paths(recipe)})


def paths(recipe: Recipe, prefix: str = "") -> list[str]:
    """Return the paths of all nodes that have a function."""
    found = []
    for step in recipe.steps:
        if step.inner is None or step.use != "node":
            found.append(prefix + step.name)
        if step.inner is not None:
            found += paths(step.inner, f"{prefix}{step.name}/")
    return found


class Tampering:
    """Carries a schedule out. ``finished`` counts what functions did whose attempt was not to fail."""

    def __init__(self, schedule: Schedule, policies: Sequence[RetryPolicy]) -> None:
        self.options: dict[str, Any] = {"retry_policy": tuple(policies)} if policies else {}
        self.finished: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        """How often each node's attempts have failed, by its path."""
        self._left = {path: list(attempts) for path, attempts in schedule.items()}
        self._lock = threading.Lock()

    def at(self, prefix: str = "") -> At:
        """Return what stands between a graph and its nodes."""
        return At(self, prefix)

    def next(self, path: str) -> Failure | None:
        """Return how the attempt that begins now will go."""
        with self._lock:
            left = self._left.get(path)
            failure = left.pop(0) if left else None
            self.failed[path] += failure is not None
            return failure

    def finish(self, path: str, returned: Any) -> None:
        """Count a function that did its work."""
        with self._lock:
            self.finished[f"{path} -> {text_of(returned)}"] += 1


class At:
    """A tampering at one graph."""

    def __init__(self, tampering: Tampering, prefix: str) -> None:
        self._tampering = tampering
        self._prefix = prefix
        self.options = tampering.options

    def inside(self, step: Step) -> At:
        """Return the same for the graph inside *step*."""
        return self._tampering.at(f"{self._prefix}{step.name}/")

    def body(self, step: Step, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function that fails as the schedule says."""
        tampering, path = self._tampering, self._prefix + step.name

        def tampered(state: Any) -> Any:
            failure = tampering.next(path)
            if failure is not None and failure.way == "first":
                raise soiled(state, failure)
            returned = body(state)
            return tampering.finish(path, returned) or returned if failure is None else _failed(state, failure, returned)

        async def atampered(state: Any) -> Any:
            failure = tampering.next(path)
            if failure is not None and failure.way == "first":
                raise soiled(state, failure)
            returned = await body(state)
            return tampering.finish(path, returned) or returned if failure is None else _failed(state, failure, returned)

        return atampered if inspect.iscoroutinefunction(body) else tampered


def _failed(state: Any, failure: Failure, returned: Any) -> Any:
    error = soiled(state, failure)
    if failure.way == "last":
        raise error
    # Its writes are taken one after the other: the last of them addresses a node that does not exist.
    rest = returned if isinstance(returned, list) else [] if returned is None else [returned]
    return [*rest, ours().Command(goto="nowhere")]


def soiled(state: Any, failure: Failure) -> Exception:
    """Leave dirt wherever an attempt can reach, and return what it fails with."""
    get_stream_writer()(DIRT)
    values = state if isinstance(state, dict) else vars(state)
    for name, value in list(values.items()):
        if isinstance(value, list):
            value.append(DIRT)
        values[name] = DIRT
    return failure.error(DIRT)


def is_scheduled(error: BaseException) -> bool:
    """Say whether an error is one of a schedule's."""
    return isinstance(error, Odd | Even) or (isinstance(error, UnknownTargetError) and error.target == "nowhere")
