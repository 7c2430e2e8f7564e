"""LangGraph's serialised forms, read without LangGraph.

msgpack with extensions 0 to 7, of which most name a class and its arguments, and in old databases LangChain's JSON.
Nothing is pickled, and no class is imported that was not allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

from msgpack import Unpacker  # type: ignore[import-untyped]
from msgpack.exceptions import UnpackException  # type: ignore[import-untyped]

from tracegraph.channels.delta import DeltaSnapshot
from tracegraph.checkpoint.serde.allowlist import Allowed, Allowlist
from tracegraph.checkpoint.serde.arrays import library
from tracegraph.checkpoint.serde.codes import DEEPEST
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.interop.langgraph.classes import MAKERS, make_allowed
from tracegraph.interop.langgraph.errors import ThreadRefusedError
from tracegraph.interop.langgraph.messages import is_message, make_message
from tracegraph.interop.langgraph.stored import Place, StoredWrite
from tracegraph.types import Interrupt

__all__ = ["Decoder"]

# What damaged data, or a class that is no longer what it was, may raise while a value is made. Not Exception: a
# warning turned into an error must pass.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    TypeError,
    UnpackException,
    ValueError,
    RecursionError,
    re.error,
)
_NOT_PICKLED = (
    "it was written with pickle_fallback, and unpickling runs whatever code the database names; let LangGraph load the thread "
    "and save what it holds in a form that needs no pickle"
)


class _Ext(IntEnum):
    ONE_ARGUMENT = 0
    ARGUMENTS = 1
    KEYWORDS = 2
    METHOD = 3
    MODEL_V1 = 4
    MODEL = 5
    ARRAY = 6
    SNAPSHOT = 7


class Decoder:
    """Reads the values of one thread.

    A class that is neither known nor allowed stays the plain data it was stored as, and is noted in :attr:`unknown` with
    the first place where it was found.
    """

    def __init__(self, allowed: Iterable[Allowed] = ()) -> None:
        self.unknown: dict[tuple[str, str], str] = {}
        self.old_question_ids: set[str] = set()
        """Of questions in the form of versions that gave all questions of a task one id."""
        self._types = Allowlist("strict", allowed)
        self._where = ""
        self._depth = 0

    def value(self, kind: str | None, data: bytes | None, place: Place, what: str) -> Any:
        """Return a value; *what* says for messages whose it is, as ``channel 'x'``.

        Raises:
            ThreadRefusedError: it cannot be read.
        """
        self._where = f"{what} of {place}"
        try:
            return self._value(kind, b"" if data is None else bytes(data))
        except _UNREADABLE as error:
            raise self._refusal(place, error) from error

    def checkpoint(self, kind: str | None, data: bytes, place: Place) -> dict[str, Any]:
        """Return a whole checkpoint, as the SQLite saver stores it in one piece.

        Raises:
            ThreadRefusedError: it cannot be read.
        """
        self._where = str(place)
        try:
            found = self._json_checkpoint(data, place) if kind == "json" else self._packed_checkpoint(kind, data, place)
        except _UNREADABLE as error:
            raise self._refusal(place, error) from error
        return found

    def writes(self, rows: Iterable[Sequence[Any]], place: Place) -> list[StoredWrite]:
        """Return a checkpoint's writes from rows of path, task, position, channel, form and data.

        Raises:
            ThreadRefusedError: one cannot be read.
        """
        found = []
        for path, task_id, idx, channel, kind, data in rows:
            if not (isinstance(idx, int) and all(isinstance(text, str) for text in (path or "", task_id, channel))):
                raise ThreadRefusedError(
                    place.thread_id, f"a write of {place} is damaged: it is at {(path, task_id, idx, channel)}"
                )
            value = self.value(kind, data, place, f"a write to channel {channel!r}")
            found.append(StoredWrite(path or "", task_id, idx, channel, value))
        return found

    def _refusal(self, place: Place, error: BaseException) -> ThreadRefusedError:
        self._depth = 0
        reason = error.reason if isinstance(error, UnreadableBytesError) else f"{type(error).__name__}: {error}"
        return ThreadRefusedError(place.thread_id, f"{self._where} cannot be read: {reason}")

    def _value(self, kind: str | None, data: bytes) -> Any:
        match kind:
            case "msgpack":
                return self._unpacked(data)
            case "json":
                return self._from_json(json.loads(data))
            case "null":
                return None
            case "bytes":
                return data
            case "bytearray":
                return bytearray(data)
            case _:
                raise self._foreign(kind)

    def _foreign(self, kind: str | None) -> UnreadableBytesError:
        if kind == "pickle":
            return UnreadableBytesError(_NOT_PICKLED)
        if kind is not None and "+" in kind:
            return UnreadableBytesError(
                f"it is encrypted ({kind}); decrypt the database with LangGraph, by saving it without EncryptedSerializer"
            )
        return UnreadableBytesError(f"{kind!r} is no form that LangGraph's serialiser writes")

    def _packed_checkpoint(self, kind: str | None, data: bytes, place: Place) -> dict[str, Any]:
        if kind != "msgpack":
            raise self._foreign(kind)
        # Channel by channel, so that messages can name the one that something is wrong with.
        reading = self._unpacker(data)
        found: dict[str, Any] = {}
        for _ in range(reading.read_map_header()):
            key = reading.unpack()
            if key != "channel_values":
                found[key] = reading.unpack()
                continue
            values = found["channel_values"] = {}
            for _ in range(reading.read_map_header()):
                channel = reading.unpack()
                self._where = f"channel {channel!r} of {place}"
                values[channel] = reading.unpack()
            self._where = str(place)
        return found

    def _json_checkpoint(self, data: bytes, place: Place) -> dict[str, Any]:
        found = json.loads(data)
        for key, held in found.items():
            if key == "channel_values":
                for channel, value in held.items():
                    self._where = f"channel {channel!r} of {place}"
                    held[channel] = self._from_json(value)
            else:
                self._where = str(place)
                found[key] = self._from_json(held)
        return dict(found)

    def _unpacker(self, data: bytes) -> Any:
        # Not unpackb(), which takes so much of the C stack that values within each other could exhaust it.
        reading = Unpacker(
            ext_hook=self._extension,
            object_pairs_hook=_mapping,
            strict_map_key=False,
            max_buffer_size=len(data),
            read_size=max(1, len(data)),
        )
        reading.feed(data)
        return reading

    def _unpacked(self, data: bytes) -> Any:
        reading = self._unpacker(data)
        value = reading.unpack()
        if reading.tell() != len(data):
            raise UnreadableBytesError("there is more than one value in it")
        return value

    def _extension(self, code: int, data: bytes) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnreadableBytesError(f"more than {DEEPEST} objects lie within each other")
        held = self._unpacked(data)
        self._depth -= 1
        match code:
            case _Ext.ONE_ARGUMENT:
                return self._made(held[0], held[1], (held[2],), held[2])
            case _Ext.ARGUMENTS:
                return self._made(held[0], held[1], held[2], held[2])
            case _Ext.KEYWORDS | _Ext.MODEL_V1 | _Ext.MODEL:
                return self._made(held[0], held[1], (), held[2], kwargs=held[2])
            case _Ext.METHOD:
                return self._made(held[0], held[1], (held[2],), held[2], kwargs={"method": held[3]})
            case _Ext.ARRAY:
                return _array(*held)
            case _Ext.SNAPSHOT:
                return DeltaSnapshot(held)
            case _:
                raise UnreadableBytesError(f"extension {code} is none of LangGraph's")

    def _made(self, module: str, name: str, args: Sequence[Any], plain: Any, *, kwargs: Mapping[str, Any] | None = None) -> Any:
        """Return the object that a class and its arguments stand for, else *plain*."""
        kwargs = kwargs or {}
        if (make := MAKERS.get((module, name))) is not None:
            made = make(*args, **kwargs)
            if type(made) is Interrupt and "response_schema" not in kwargs:
                self.old_question_ids.add(made.id)
            return made
        if is_message(module, name):
            return make_message(name, kwargs)
        cls = None if "method" in kwargs else self._types.find(module, name)
        if cls is not None:
            return make_allowed(cls, args, kwargs, self._types)
        self.unknown.setdefault((module, name), self._where)
        return plain

    def _from_json(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self._from_json(item) for item in data]
        if not isinstance(data, dict):
            return data
        held = {key: self._from_json(item) for key, item in data.items()}
        if held.get("lc") not in (1, 2) or not isinstance(held.get("id"), list):
            return held
        *modules, name = held["id"]
        args, kwargs = held.get("args") or (), held.get("kwargs") or {}
        # LangGraph's own form; the method of models, [None, "construct"], stands for the class itself.
        method = {"method": held["method"]} if isinstance(held.get("method"), str) else {}
        return self._made(".".join(modules), name, args, kwargs or [*args], kwargs=kwargs | method)


def _mapping(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    try:
        return dict(pairs)
    except TypeError:  # a tuple is stored as a list, also where it is a key
        return {tuple(key) if isinstance(key, list) else key: value for key, value in pairs}


_ARRAY_ORDERS: Final = ("C", "F")


def _array(dtype: str, shape: Sequence[int], order: Any, buffer: bytes) -> Any:
    numpy = library("numpy")
    kind = numpy.dtype(dtype)
    if kind.hasobject or order not in _ARRAY_ORDERS:
        raise UnreadableBytesError(f"an array of {dtype!r} in order {order!r} cannot be made from bytes")
    return numpy.ndarray(shape, kind, buffer=bytearray(buffer), order=order)
