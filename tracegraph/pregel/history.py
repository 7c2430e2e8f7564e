"""A thread's past states, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracegraph.drivers.effects import Flow, ListTuples, ask
from tracegraph.pregel.addressing import graph_at
from tracegraph.pregel.snapshot import saver_of, snapshot, thread_config
from tracegraph.records import CheckpointTuple
from tracegraph.types import StateSnapshot

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["History"]

FIRST_PAGE: Final = 4
LARGEST_PAGE: Final = 256


class History:
    """A listing under way, newest first; whoever stops asking for pages leaves nothing open behind.

    Pages double in size: the newest few states cost little, and a whole thread few questions to the saver. Each page is
    a listing of its own, which begins where the last one ended.
    """

    def __init__(self, graph: Pregel, config: Any, *, filter: dict[str, Any] | None, before: Any, limit: int | None) -> None:
        spec, self._address = thread_config(graph, config)
        self._saver = saver_of(graph)
        self._graph = graph
        self._ns = spec.checkpoint_ns
        self._filter = filter
        self._before = before
        self._left = limit
        self._size = FIRST_PAGE
        self._last: CheckpointTuple | None = None

    def page(self) -> Flow[list[CheckpointTuple]]:
        """Load the next checkpoints; none if there are no more."""
        size = self._size if self._left is None else min(self._size, self._left)
        if size <= 0:
            return []
        before = self._before if self._last is None else self._last.config
        found = yield from ask(ListTuples(self._saver, self._address, self._filter, before, size))
        if self._last is not None and any(_id_of(saved) >= _id_of(self._last) for saved in found):
            found = yield from self._rest(self._last)
        self._size = min(2 * self._size, LARGEST_PAGE)
        if self._left is not None:
            self._left -= len(found)
        if found:
            self._last = found[-1]
        return found

    def _rest(self, last: CheckpointTuple) -> Flow[list[CheckpointTuple]]:
        """Load everything that is left, from a saver that pays no heed to ``before``."""
        every = yield from ask(ListTuples(self._saver, self._address, self._filter, self._before, None))
        return [saved for saved in every if _id_of(saved) < _id_of(last)][: self._left]

    def shown(self, saved: CheckpointTuple) -> StateSnapshot:
        """Return a checkpoint as a snapshot."""
        return snapshot(graph_at(self._graph, self._ns), saved, is_live=False, nested={})


def _id_of(saved: CheckpointTuple) -> str:
    found: str = saved.checkpoint["id"]
    return found
