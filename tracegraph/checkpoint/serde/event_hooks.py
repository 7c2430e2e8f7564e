"""Who is told when stored bytes name a type that nobody allowed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal, NotRequired, TypedDict

from tracegraph.errors import TracegraphWarning

__all__ = ["SerdeEvent", "emit_serde_event", "register_serde_event_listener"]


class SerdeEvent(TypedDict):
    """A type that was revived although nobody allowed it, or was not revived because nobody did."""

    kind: Literal["msgpack_unregistered_allowed", "msgpack_blocked"]
    module: str
    name: str
    method: NotRequired[str]


_listeners: list[Callable[[SerdeEvent], None]] = []


def register_serde_event_listener(listener: Callable[[SerdeEvent], None]) -> Callable[[], None]:
    """Call *listener* with every event from now on, in the thread that loads; return a function that ends it.

    >>> seen = []
    >>> stop = register_serde_event_listener(seen.append)
    >>> emit_serde_event({"kind": "msgpack_blocked", "module": "app", "name": "User"})
    >>> stop()
    >>> seen
    [{'kind': 'msgpack_blocked', 'module': 'app', 'name': 'User'}]
    """
    _listeners.append(listener)

    def stop() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return stop


def emit_serde_event(event: SerdeEvent) -> None:
    """Tell all listeners; one that raises becomes a warning, since a checkpoint must load nevertheless."""
    for listener in tuple(_listeners):
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001  # a listener may raise anything
            warnings.warn(f"serde event listener {listener!r} raised {error!r}", TracegraphWarning, stacklevel=2)
