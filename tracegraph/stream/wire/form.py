"""One JSON form for whatever a stream yields: the envelope around the data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final, get_args

from tracegraph.errors import InvalidInputError
from tracegraph.events import Event
from tracegraph.stream.wire.data import error_data, wire_data
from tracegraph.types import PartMeta, StreamMode, StreamPart

__all__ = ["WIRE_VERSION", "envelope", "error_to_wire", "to_wire", "wire_json"]

WIRE_VERSION: Final = 1
"""Changes when a reader of the form before would misread it; new keys and new kinds of events do not change it."""

_EVENTS: Final = frozenset(get_args(Event))
_MODES: Final = frozenset(get_args(StreamMode))
_META: Final = tuple(field.name for field in dataclasses.fields(PartMeta))


def to_wire(part: StreamPart | Mapping[str, Any] | Event) -> dict[str, Any]:
    """Return a part of version 2, or a lifecycle event, as JSON data in the form that ``docs/wire/schema-v1.json`` describes.

    Whatever is in the part, it has a form: see :func:`~tracegraph.stream.wire.data.wire_data`. A part that was copied into
    a plain dict has lost its ``meta``, and an event by itself never had any: it is null then.

    >>> from tracegraph.types import PartMeta, StreamPart
    >>> to_wire(StreamPart({"type": "custom", "ns": (), "data": {"pages": 1}}, PartMeta(1, 5, "r", None, None, 0)))["data"]
    {'pages': 1}

    Raises:
        InvalidInputError: it is neither; ``stream`` yields parts of version 2 if ``version="v2"`` is asked for.
    """
    if type(part) in _EVENTS:
        ns: str = part.ns  # type: ignore[union-attr]  # an event, as just seen
        return envelope("events", tuple(ns.split("|")) if ns else (), wire_data(part))
    if not isinstance(part, Mapping) or not {"type", "ns", "data"} <= part.keys() or part["type"] not in _MODES:
        shown = type(part).__name__
        raise InvalidInputError(f"a {shown} has no wire form: it is no stream part (stream with version='v2') and no event")
    return envelope(part["type"], part["ns"], wire_data(part["data"]), part.get("interrupts"), getattr(part, "meta", None))


def error_to_wire(error: BaseException) -> dict[str, Any]:
    """Return what is sent of a run that failed, after its last part."""
    return envelope("error", (), error_data(error))


def envelope(
    kind: str, ns: tuple[str, ...], data: Any, interrupts: tuple[Any, ...] | None = None, meta: PartMeta | None = None
) -> dict[str, Any]:
    """Return the wire form around *data*, which is JSON data already."""
    shown: dict[str, Any] = {"v": WIRE_VERSION, "type": kind, "ns": list(ns), "data": data}
    if interrupts is not None:
        shown["interrupts"] = wire_data(interrupts)
    shown["meta"] = None if meta is None else {name: getattr(meta, name) for name in _META}
    return shown


def wire_json(wire: Mapping[str, Any]) -> bytes:
    """Return a wire form as one line of JSON, in ASCII: no reader takes anything in it for the end of a line."""
    return json.dumps(wire, separators=(",", ":")).encode("ascii")
