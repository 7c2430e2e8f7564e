"""How long a question waited for its answer (no event: an item of :class:`tracegraph.events.Resumed`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["AskedAt", "Wait", "asked_in", "waits_for"]

AskedAt: TypeAlias = tuple[int, str, str | None]
"""When a question was first asked (wall clock, ns), by which node, in a graph of which workflow name."""


@dataclass(slots=True)
class Wait:
    """A question that is answered. ``seconds`` is None if no time is stored with it, as older versions stored none."""

    interrupt_id: str
    seconds: float | None
    node: str | None = None
    workflow_name: str | None = None


def asked_in(stored: Any) -> dict[str, AskedAt]:
    """Return what *stored* says of when questions were asked; other programs write to databases too, so it may be anything.

    >>> asked_in({"a1": [5, "ask", None], "b2": "soon"})
    {'a1': (5, 'ask', None)}
    """
    found: dict[str, AskedAt] = {}
    for interrupt_id, about in stored.items() if isinstance(stored, Mapping) else ():
        match about:
            case [int(at_ns), str(node), (str() | None) as workflow]:
                found[interrupt_id] = (at_ns, node, workflow)
            case _:
                pass
    return found


def waits_for(answered: Iterable[str], asked: Mapping[str, AskedAt], now_ns: int) -> tuple[Wait, ...]:
    """Return how long each question that is answered *now* has waited; never less than nothing, as clocks differ.

    >>> waits_for(["a1", "b2"], {"a1": (5, "ask", None)}, 2_000_000_005)[0].seconds
    2.0
    """
    waits: list[Wait] = []
    for interrupt_id in answered:
        if (found := asked.get(interrupt_id)) is None:
            waits.append(Wait(interrupt_id, None))
        else:
            at_ns, node, workflow = found
            waits.append(Wait(interrupt_id, max(now_ns - at_ns, 0) / 1e9, node, workflow))
    return tuple(waits)
