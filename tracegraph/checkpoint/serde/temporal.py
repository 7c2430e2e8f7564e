"""Dates and times. Zones keep their name and clocks their fold: an instant alone is not what was stored."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tracegraph.checkpoint.serde.codes import Code, Extension, Part
from tracegraph.checkpoint.serde.errors import Refused, UnreadableBytesError

__all__ = ["TEMPORAL"]


def _clock(value: datetime | time) -> list[Any]:
    text = value.replace(tzinfo=None).isoformat()
    if value.fold:
        return [text, value.tzinfo, value.fold]
    return [text] if value.tzinfo is None else [text, value.tzinfo]


def _zoned(made: Any, zone: Any = None, fold: int = 0) -> Any:
    return made.replace(tzinfo=zone, fold=fold)


def _datetime(data: Any, _types: object) -> Any:
    return _zoned(datetime.fromisoformat(data[0]), *data[1:])


def _time(data: Any, _types: object) -> Any:
    return _zoned(time.fromisoformat(data[0]), *data[1:])


def _zone_of(value: datetime | time) -> list[Part]:
    return [(".tzinfo", value.tzinfo)]


def _zone_key(value: ZoneInfo) -> str:
    if value.key is None:
        raise Refused(value, "a zone read from a file has no name to find it by")
    return value.key


def _zone(data: Any, _types: object) -> ZoneInfo:
    try:
        return ZoneInfo(data)
    except ZoneInfoNotFoundError as error:
        raise UnreadableBytesError(f"this machine does not know the time zone {data!r}; install tzdata") from error


TEMPORAL: Final[dict[type, Extension]] = {
    datetime: Extension(Code.DATETIME, _clock, _datetime, _zone_of),
    date: Extension(Code.DATE, date.isoformat, lambda data, _types: date.fromisoformat(data)),
    time: Extension(Code.TIME, _clock, _time, _zone_of),
    timedelta: Extension(
        Code.TIMEDELTA,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda data, _types: timedelta(*data),
    ),
    timezone: Extension(
        Code.TIMEZONE,
        lambda value: [*value.__getinitargs__()],
        lambda data, _types: timezone(*data),
    ),
    ZoneInfo: Extension(Code.ZONEINFO, _zone_key, _zone),
}
"""By exact type."""
