"""Between checkpoint records and the columns of the tables; knows neither SQL nor connections."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import NoneType
from typing import Any, TypeAlias, cast

from msgpack import packb, unpackb  # type: ignore[import-untyped]

from tracegraph.checkpoint.base.errors import UnsavableValueError
from tracegraph.checkpoint.base.growth import with_increment
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.errors import UnserializableValueError
from tracegraph.checkpoint.sql.errors import unstorable
from tracegraph.constants import ERROR
from tracegraph.errors import InvalidInputError
from tracegraph.records import ChannelVersions, Checkpoint, CheckpointMetadata, Growth, Version

__all__ = [
    "Part",
    "checkpoint_of",
    "dumped",
    "matches",
    "metadata_of",
    "metadata_text",
    "record_of",
    "short",
    "short_values",
    "values_of",
]

Part: TypeAlias = tuple[str, str, bytes, Growth | None, int]
"""(channel, kind, value, growth, depth) of a value: the deepest part is the whole value that the others were added to"""

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode  # json.dumps() would make an encoder a call
_COUNTER_DIGITS = 32
_VERSION_LENGTH = 49
_BEFORE_A = ord("a") - 1
_SHORT = frozenset({NoneType, bool, int, float, str})
_LONGEST = 64
_USUAL = {"source", "step", "parents"}
_SOURCES = frozenset({"input", "loop", "update", "fork"})


# A version is written with every checkpoint until the next one of its channel.
@lru_cache(maxsize=1024, typed=True)
def short(version: Version) -> Version:
    """Return a version as it is stored: the texts that our savers make lose their leading zeros.

    A letter in front says how many digits the counter has, so that they sort as before: twelve is ``b12.0034567890123456``.
    """
    if not isinstance(version, str):
        return version
    if len(version) == _VERSION_LENGTH and version[_COUNTER_DIGITS] == "." and version[:_COUNTER_DIGITS].isdecimal():
        stripped = version.lstrip("0")
        return f"{chr(_BEFORE_A + stripped.index('.'))}{stripped}"
    return f"={version}"


def _long(stored: Version) -> Version:
    if not isinstance(stored, str):
        return stored
    return stored[1:] if stored[0] == "=" else stored[1:].rjust(_VERSION_LENGTH, "0")


def short_values(values: Mapping[str, Any], versions: ChannelVersions) -> dict[str, Any]:
    """Return those that a record takes in: as msgpack has them, and no longer than a row of their own would be wide."""
    return {name: value for name, value in values.items() if type(value) in _SHORT and _is_short(value) and name in versions}


def _is_short(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return len(value) <= _LONGEST and value.isascii()
    return kind is not int or -(2**63) <= value < 2**63


def record_of(checkpoint: Checkpoint, inside: Mapping[str, Any]) -> bytes:
    """Return a checkpoint with no values but those *inside*, each name and each version written once.

    A checkpoint of a small graph names each channel and version about three times, and the versions are long.

    Raises:
        InvalidInputError: a name has letters that are none.
    """
    names: dict[str, int] = {}
    versions: dict[Version, int] = {}
    numbered = [versions.setdefault(version, len(versions)) for version in checkpoint["channel_versions"].values()]
    for name in checkpoint["channel_versions"]:
        names[name] = len(names)
    seen = {
        node: [
            number
            for name, version in known.items()
            for number in (names.setdefault(name, len(names)), versions.setdefault(version, len(versions)))
        ]
        for node, known in checkpoint["versions_seen"].items()
    }
    updated = checkpoint.get("updated_channels")
    marks = None if updated is None else [names.setdefault(name, len(names)) for name in updated]
    values = [part for name, value in inside.items() for part in (names.setdefault(name, len(names)), value)]
    stored = [short(version) for version in versions]
    try:
        packed: bytes = packb([checkpoint["v"], checkpoint["ts"], [*names], stored, numbered, seen, marks, values])
    except UnicodeEncodeError as reason:
        raise unstorable(reason) from reason
    return packed


def checkpoint_of(checkpoint_id: str, record: bytes) -> Checkpoint:
    """Return what :func:`record_of` was given, without other values than those inside."""
    v, ts, names, stored, numbered, seen, marks, *more = unpackb(record)
    versions = [_long(version) for version in stored]
    pairs = iter(more[0] if more else ())  # records of the first versions had no values
    return Checkpoint(
        v=v,
        id=checkpoint_id,
        ts=ts,
        channel_values={names[number]: value for number, value in zip(pairs, pairs, strict=True)},
        channel_versions={name: versions[number] for name, number in zip(names, numbered, strict=False)},
        versions_seen={node: _seen(names, versions, numbers) for node, numbers in seen.items()},
        updated_channels=None if marks is None else [names[number] for number in marks],
    )


def _seen(names: list[str], versions: list[Version], numbers: list[int]) -> ChannelVersions:
    pairs = iter(numbers)
    return {names[name]: versions[version] for name, version in zip(pairs, pairs, strict=True)}


def dumped(serde: SerializerProtocol, channel: str, value: Any) -> tuple[str, bytes]:
    """Return kind and bytes of a channel's value. A task's error is kept as text: its class may be gone when it is read.

    Raises:
        UnserializableValueError: the serialiser refuses it; the channel is named.
        UnsavableValueError: something else went wrong in the serialiser or in the value's own code.
    """
    if channel == ERROR and isinstance(value, BaseException):
        value = repr(value)
    try:
        return serde.dumps_typed(value)
    except UnserializableValueError as error:
        raise error.in_channel(channel) from None
    except Exception as reason:  # a user's serialiser, or code of the value's class
        raise UnsavableValueError(channel, value, reason) from reason


def metadata_text(metadata: CheckpointMetadata) -> str:
    """Return metadata as JSON.

    Raises:
        InvalidInputError: there is something in it that JSON has no form for.
    """
    if metadata.keys() == _USUAL and not metadata["parents"] and metadata["source"] in _SOURCES and type(metadata["step"]) is int:
        # What nearly all say; an encoder takes as long as all else in a small record.
        return f'{{"source":"{metadata["source"]}","step":{metadata["step"]},"parents":{{}}}}'
    try:
        return _encode(metadata)
    except (TypeError, ValueError, RecursionError) as reason:
        raise InvalidInputError(
            f"checkpoint metadata is stored as JSON, and this is none ({reason}); "
            "put texts, finite numbers and booleans into the config's metadata"
        ) from reason


def metadata_of(text: str) -> CheckpointMetadata:
    """Return what :func:`metadata_text` was given."""
    return cast("CheckpointMetadata", json.loads(text))


def matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Say whether all these keys are there with these values."""
    return all(key in metadata and metadata[key] == value for key, value in wanted.items())


def values_of(serde: SerializerProtocol, parts: Iterable[Part]) -> dict[str, Any]:
    """Return the channel values that these parts make, deepest first.

    Raises:
        UnreadableBytesError: they are damaged, or were written with another serialiser or key.
    """
    values: dict[str, Any] = {}
    for channel, kind, stored, growth, _depth in parts:
        found = serde.loads_typed((kind, stored))
        values[channel] = found if growth is None else with_increment(values[channel], growth, found)
    return values
