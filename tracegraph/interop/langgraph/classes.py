"""How the classes that LangGraph's serialiser names are made: Python's, LangGraph's as ours, and those that are allowed."""

from __future__ import annotations

import ipaddress
import os
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from tracegraph.checkpoint.serde.allowlist import Allowlist
from tracegraph.checkpoint.serde.objects import DATACLASS, ENUM, NAMEDTUPLE
from tracegraph.engine.identity import hash_text
from tracegraph.types import Command, Interrupt, Overwrite, PregelTask, Send, StateSnapshot, TimeoutPolicy

__all__ = ["MAKERS", "make_allowed"]

Make = Callable[..., Any]


def _hashable(value: Any) -> Any:
    """Return a set's member: what was a tuple has been stored as a list."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _members(kind: Make, values: Sequence[Any] = ()) -> Any:
    return kind(map(_hashable, values))


def _datetime(*args: Any, method: str | None = None, **kwargs: Any) -> datetime:
    return datetime.fromisoformat(*args) if method == "fromisoformat" else datetime(*args, **kwargs)  # noqa: DTZ001  # as it was


def _bytes(kind: Any, text: str, method: str | None = None) -> Any:
    if method != "fromhex":
        raise ValueError(f"{kind.__name__} by way of {method!r}, not of fromhex")
    return kind.fromhex(text)


def _pattern(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
    return re.compile(pattern, flags & ~re.DEBUG)  # which would print


def _path(name: str, *parts: str) -> Any:
    is_foreign = ("Windows" in name) != (os.name == "nt")
    if is_foreign or name.startswith("Pure"):
        return (PureWindowsPath if "Windows" in name else PurePosixPath)(*parts)
    return Path(*parts)


def _secret(name: str, value: Any) -> Any:
    import pydantic

    return getattr(pydantic, name)(value)


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is no name")
    return name


def _interrupt(value: Any = None, *, ns: Sequence[str] | None = None, **held: Any) -> Interrupt:
    """Return a question; before LangGraph 0.6 they had a namespace that the id was made from, at first not even that."""
    made_id = held.get("id") or held.get("interrupt_id") or (hash_text("|".join(ns)) if ns else "placeholder-id")
    return Interrupt(value, _text(made_id), response_schema=held.get("response_schema"))


def _send(node: str, arg: Any, timeout: Any = None) -> Send:
    return Send(_text(node), arg, timeout=timeout)


_PATHS = ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath")
_IPS = ("IPv4Address", "IPv4Interface", "IPv4Network", "IPv6Address", "IPv6Interface", "IPv6Network")
_TYPES: Final[dict[str, Make]] = {
    "Command": Command,
    "Interrupt": _interrupt,
    "Overwrite": Overwrite,
    "PregelTask": PregelTask,
    "Send": _send,
    "StateSnapshot": StateSnapshot,
    "TimeoutPolicy": TimeoutPolicy,
}

MAKERS: Final[Mapping[tuple[str, str], Make]] = {
    ("builtins", "set"): partial(_members, set),
    ("builtins", "frozenset"): partial(_members, frozenset),
    ("builtins", "bytes"): partial(_bytes, bytes),
    ("builtins", "bytearray"): partial(_bytes, bytearray),
    ("collections", "deque"): deque,
    ("uuid", "UUID"): UUID,
    ("decimal", "Decimal"): Decimal,
    ("datetime", "datetime"): _datetime,
    ("datetime", "date"): date,
    ("datetime", "time"): time,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("zoneinfo", "ZoneInfo"): ZoneInfo,
    ("re", "compile"): _pattern,
    **{("ipaddress", name): getattr(ipaddress, name) for name in _IPS},
    **{(module, name): partial(_path, name) for module in ("pathlib", "pathlib._local") for name in _PATHS},
    **{("pydantic.types", name): partial(_secret, name) for name in ("SecretStr", "SecretBytes")},
    # Where they lived over the years.
    **{
        (module, name): make
        for module in ("langgraph.types", "langgraph.constants", "langgraph.pregel.types")
        for name, make in _TYPES.items()
    },
}
"""What makes a value of a (module, class) pair from the stored arguments, without any allow-list."""


def make_allowed(cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any], types: Allowlist) -> Any:
    """Return an instance of a class that the user allowed, with the stored state.

    Enum members, dataclasses and named tuples get it without a call of their own code. Models are validated, since
    LangGraph stores the models inside them as plain data; where that fails, they are constructed unchecked, as in LangGraph.
    """
    named = [cls.__module__, cls.__qualname__]
    if hasattr(cls, "__members__"):
        return ENUM.revive([*named, *args], types)
    if hasattr(cls, "__dataclass_fields__") and kwargs and not args:
        return DATACLASS.revive([*named, dict(kwargs)], types)
    if hasattr(cls, "_field_defaults") and kwargs and not args:
        return NAMEDTUPLE.revive([*named, dict(kwargs)], types)
    construct = getattr(cls, "model_construct", None) or (getattr(cls, "construct", None) if hasattr(cls, "__fields__") else None)
    if construct is None or args:
        return cls(*args, **kwargs)
    try:
        return cls(**kwargs)
    except (TypeError, ValueError):  # Pydantic's ValidationError is the latter
        return construct(**kwargs)
