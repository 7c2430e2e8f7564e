"""Which classes stored bytes may bring to life."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Iterable
from types import EllipsisType
from typing import Any, Final, Literal, TypeAlias

from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.event_hooks import emit_serde_event
from tracegraph.errors import TracegraphWarning

__all__ = ["LANGCHAIN_MESSAGES", "Allowed", "Allowlist", "is_strict_by_environment"]

Allowed: TypeAlias = type | str | tuple[str, ...]
"""A class, a (module, name) pair, or the name of a module all of whose classes are allowed."""

LANGCHAIN_MESSAGES: Final = "langchain_core.messages"
_BUILT_IN = "bool bytearray bytes complex dict float frozenset int list object set slice str tuple type"
_COLLECTIONS = "Counter OrderedDict defaultdict deque"
_TYPES = "CachePolicy Command GraphOutput Interrupt Overwrite PregelTask RetryPolicy Send StateSnapshot StateUpdate TimeoutPolicy"
_SAFE: Final = frozenset(
    {("builtins", name) for name in _BUILT_IN.split()}
    | {("collections", name) for name in _COLLECTIONS.split()}
    | {("tracegraph.types", name) for name in _TYPES.split()}
    | {("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")}
    | {("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID"), ("zoneinfo", "ZoneInfo"), ("typing", "Any")}
    | {
        ("types", "NoneType"),
        ("tracegraph.channels.delta", "DeltaSnapshot"),
        ("tracegraph.channels.delta", "DeltaLog"),
        ("tracegraph.errors", "NodeError"),
    }
    | {("tracegraph.records", "CheckpointTuple"), ("langchain_core.documents.base", "Document")}
)
_SAFE_MODULES: Final = frozenset(
    {"tracegraph.messages.base", "tracegraph.messages.chunks", LANGCHAIN_MESSAGES}
    | {f"langchain_core.messages.{name}" for name in ("ai", "base", "chat", "function", "human", "modifier", "system", "tool")}
)
_STRICT_VARIABLES = ("TRACEGRAPH_STRICT_MSGPACK", "LANGGRAPH_STRICT_MSGPACK")
_MOST_REMEMBERED = 4096

_warned: set[tuple[str, str]] = set()


def is_strict_by_environment() -> bool:
    """Say whether the environment asks for strict loading."""
    return any(os.environ.get(name, "").lower() in ("1", "true", "yes") for name in _STRICT_VARIABLES)


class Allowlist:
    """Finds classes by name, if they may be found.

    Three modes: strict (only the safe set and *entries*, nothing else is even imported), open (any class,
    without a word), and by default any class, with one warning and an event for those that are not listed.
    """

    __slots__ = ("_entries", "_found", "mode")

    def __init__(self, mode: Literal["strict", "warn", "open"], entries: Iterable[Allowed] = ()) -> None:
        self.mode = mode
        self._entries = frozenset(map(_entry, entries))
        self._found: dict[tuple[str, str], type | None] = {}

    @classmethod
    def of(cls, allowed: Iterable[Allowed] | Literal[True] | EllipsisType | None) -> Allowlist:
        """Return the list for a serialiser's argument: ``...`` is the default, None or a list strict, True open."""
        if isinstance(allowed, EllipsisType):
            return cls("strict" if is_strict_by_environment() else "warn")
        if allowed is True:
            return cls("open")
        return cls("strict", () if allowed is None else allowed)

    def extended(self, extra: Iterable[Allowed]) -> Allowlist:
        """Return a list in the same mode with more entries."""
        return Allowlist(self.mode, self._entries | set(map(_entry, extra)))

    def find(self, module: Any, name: Any) -> type | None:
        """Return the class of that module and qualified name, None if it is blocked.

        Raises:
            UnreadableBytesError: it may be loaded, but there is none.
        """
        key = (module, name)
        if key not in self._found:
            if len(self._found) >= _MOST_REMEMBERED:  # names come from stored bytes, so their number is anybody's
                self._found.clear()
            self._found[key] = self._decide(module, name)
        return self._found[key]

    def _decide(self, module: str, name: str) -> type | None:
        if self.mode != "open" and not self._lists(module, name):
            if self.mode == "strict":
                emit_serde_event({"kind": "msgpack_blocked", "module": module, "name": name})
                return None
            found = class_named(module, name)
            _warn_once(module, name)
            return found
        return class_named(module, name)

    def _lists(self, module: str, name: str) -> bool:
        key = (module, name)
        return key in _SAFE or module in _SAFE_MODULES or key in self._entries or module in self._entries


def _entry(allowed: Allowed) -> str | tuple[str, str]:
    if isinstance(allowed, type):
        return allowed.__module__, allowed.__qualname__
    if isinstance(allowed, str):
        return allowed
    *modules, name = allowed
    return ".".join(modules), name


def class_named(module: str, name: str) -> type:
    """Return a class; its module is imported if need be, but nothing in it is called: no ``__getattr__``, no descriptor.

    LangChain's own messages are the exception, see below.
    """
    try:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        if module == LANGCHAIN_MESSAGES and name in getattr(found, "__all__", ()):
            # It imports each of its classes when somebody asks for it by name, which no other look finds out.
            getattr(found, name)
        for part in name.split("."):
            found = vars(found)[part]
    except (ImportError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableBytesError(f"class {name!r} of module {module!r} is gone; keep its old name as an alias") from error
    if not isinstance(found, type):
        raise UnreadableBytesError(f"{name!r} of module {module!r} is no class, so nothing is made of it")
    return found


def _warn_once(module: str, name: str) -> None:
    emit_serde_event({"kind": "msgpack_unregistered_allowed", "module": module, "name": name})
    if (module, name) not in _warned:
        _warned.add((module, name))
        warnings.warn(
            f"a checkpoint brought {module}.{name} back to life, which no allow-list names; give the serialiser "
            f"allowed_msgpack_modules=[({module!r}, {name!r})], or call its with_msgpack_allowlist()",
            TracegraphWarning,
            stacklevel=2,
        )
