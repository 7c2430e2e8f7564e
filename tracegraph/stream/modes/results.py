"""What a task did, in the form in which ``tasks`` and ``checkpoints`` show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tracegraph.engine.nesting import NestedKeys
from tracegraph.engine.views import isolated
from tracegraph.records import Write
from tracegraph.types import Interrupt

__all__ = ["question_dicts", "written"]


def written(writes: Sequence[Write], keys: str | Sequence[str]) -> dict[str, Any]:
    """Return what was written to *keys*, by channel; several writes to one are listed under ``$writes``.

    >>> written([("log", 1), ("log", 2), ("n", 3), ("other", 4)], ["log", "n"])
    {'log': {'$writes': [1, 2]}, 'n': 3}
    """
    shown = (keys,) if isinstance(keys, str) else keys
    found: dict[str, list[Any]] = {}
    for channel, value in writes:
        if channel in shown:
            found.setdefault(channel, []).append(isolated(value))
    result = {channel: values[0] if len(values) == 1 else {"$writes": values} for channel, values in found.items()}
    return keys.show_writes(result) if type(keys) is NestedKeys else result


def question_dicts(interrupts: Iterable[Interrupt]) -> list[dict[str, Any]]:
    """Return questions as dicts; their values are not copied.

    >>> question_dicts([Interrupt("sure?", "1")])
    [{'value': 'sure?', 'id': '1', 'response_schema': None}]
    """
    return [{"value": each.value, "id": each.id, "response_schema": each.response_schema} for each in interrupts]
