"""The limit of a thread's state: what a superstep, an input or an update would make of it is measured before it is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracegraph.channels.base import BaseChannel
from tracegraph.constants import MISSING
from tracegraph.errors import StateSizeError
from tracegraph.records import Growth

__all__ = ["SizeLimit", "StateSize", "told_of_step"]

_SHOWN = 5
"""How many channels an error names."""

StateOf = Callable[[Mapping[str, Any], str], Any]
"""The state of a channel with those given laid over it."""


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """How large the state of one thread and namespace may become."""

    max_bytes: int
    measure: Callable[[str, Any], int]
    """(channel, its value as it is saved) -> its size in bytes."""
    thread_id: str | None = None


@contextmanager
def told_of_step(step: int) -> Iterator[None]:
    """Say on the error which superstep's result was too large: channels do not know."""
    try:
        yield
    except StateSizeError as error:
        error.step = step
        raise


class _Size(NamedTuple):
    """What is known of a channel's size: how large it was when last measured as a whole, and what was added since."""

    whole: int
    added: int = 0

    @property
    def total(self) -> int:
        return self.whole + self.added


_NONE = _Size(0)


class StateSize:
    """The sizes of one run's channels, as far as they had to be measured.

    Of a channel that only grew, what was added is measured; so a count of pieces differs from the size of the whole by
    what a serialiser puts around a list. Before anything is refused, all that was counted so is measured as a whole.
    """

    __slots__ = ("_channels", "_limit", "_sizes")

    def __init__(self, limit: SizeLimit, channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> None:
        self._limit = limit
        self._channels = channels
        self._sizes: dict[str, _Size] | None = None

    def admit(
        self,
        changed: Mapping[str, Any],
        grown: Mapping[str, tuple[Growth, list[Any]] | None],
        known: Iterable[str],
        state: StateOf,
    ) -> None:
        """Take note of what channels change to.

        A state that is too large already may still change to one that is not larger.

        Args:
            changed: the new states of the channels that change.
            grown: what those of them that only grew had added.
            known: the channels that are part of the state, as it is before the change.
            state: tells it.

        Raises:
            StateSizeError: the state would become too large. UnserializableValueError: a value has no size.
        """
        if self._sizes is None:
            self._sizes = {name: _Size(self._whole(name, state({}, name))) for name in known}
        sizes = {name: self._after(self._sizes.get(name, _NONE), name, new, grown.get(name)) for name, new in changed.items()}
        if sum(size.total for size in ({**self._sizes, **sizes}).values()) > self._limit.max_bytes:
            sizes = self._checked(sizes, changed, state)
        self._sizes.update(sizes)

    def _after(self, before: _Size, name: str, new: Any, grown: tuple[Growth, list[Any]] | None) -> _Size:
        if grown is None or new is MISSING:
            return _Size(self._whole(name, new))
        growth, items = grown
        size = _Size(before.whole, before.added + self._limit.measure(name, items))
        if growth == "fold" and size.added > size.whole:
            # What is folded in need not make the value larger; looked at when it would have doubled, that costs little.
            return _Size(self._whole(name, new))
        return size

    def _checked(self, sizes: Mapping[str, _Size], changed: Mapping[str, Any], state: StateOf) -> dict[str, _Size]:
        """Return *sizes* measured as wholes, if the state may become as large as that."""
        assert self._sizes is not None
        for name, size in self._sizes.items():
            if size.added:
                self._sizes[name] = _Size(self._whole(name, state({}, name)))
        exact = {name: _Size(self._whole(name, changed[name])) if size.added else size for name, size in sizes.items()}
        after = {**self._sizes, **exact}
        total = sum(size.whole for size in after.values())
        if total > max(self._limit.max_bytes, sum(size.whole for size in self._sizes.values())):
            largest = sorted(after, key=lambda name: (-after[name].whole, name))[:_SHOWN]
            raise StateSizeError(
                thread_id=self._limit.thread_id,
                limit=self._limit.max_bytes,
                size_bytes=total,
                channels={name: after[name].whole for name in largest if after[name].whole},
            )
        return exact

    def _whole(self, name: str, state: Any) -> int:
        rule = self._channels.get(name)
        if state is MISSING or rule is None or not rule.is_saved:
            return 0
        saved = rule.dump(state)
        return 0 if saved is MISSING else self._limit.measure(name, saved)
