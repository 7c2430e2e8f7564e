"""The default serialiser: msgpack with a closed set of extensions, of which none can run code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Any, Literal

from msgpack.exceptions import UnpackException  # type: ignore[import-untyped]

from tracegraph.checkpoint.serde.allowlist import Allowed, Allowlist
from tracegraph.checkpoint.serde.errors import Refused, UnreadableBytesError
from tracegraph.checkpoint.serde.joining import joined_arrays
from tracegraph.checkpoint.serde.packing import pack, unserializable
from tracegraph.checkpoint.serde.unpacking import Unpacking
from tracegraph.errors import InvalidInputError

__all__ = ["JsonPlusSerializer"]

# What reviving damaged or made-up data may raise. Not Exception: a warning turned into an error must pass.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    UnpackException,
)


class JsonPlusSerializer:
    """Writes values so that they come back equal and of the same type at every depth, or refuses them.

    Exceptions are the one exception: they come back as text. Nothing is pickled. On loading, only classes come to life,
    only as what their extension says (an enum, a dataclass, a model, ...), and without a call of their own code.

    Which classes: Python's, tracegraph's and LangChain's messages always. By default others too, each with one
    warning and a serde event. *allowed_msgpack_modules* names them instead, as classes, ``(module, name)`` pairs or module
    names; then what is not named (and with None: anything else) comes back as the plain data it is stored as, and is
    not imported. True allows all. ``TRACEGRAPH_STRICT_MSGPACK=1`` makes None the default.

    >>> serde = JsonPlusSerializer()
    >>> kind, data = serde.dumps_typed({"seen": {(1, 2)}})
    >>> kind, serde.loads_typed((kind, data))
    ('msgpack', {'seen': {(1, 2)}})
    """

    __slots__ = ("_types",)

    def __init__(
        self,
        *,
        pickle_fallback: bool = False,
        allowed_msgpack_modules: Iterable[Allowed] | Literal[True] | EllipsisType | None = ...,
    ) -> None:
        if pickle_fallback:
            raise InvalidInputError(
                "JsonPlusSerializer never pickles; PickleSerializer() does, where you trust whoever can write"
            )
        self._types = Allowlist.of(allowed_msgpack_modules)

    @property
    def is_strict(self) -> bool:
        """Whether only listed classes come to life."""
        return self._types.mode == "strict"

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[Allowed]) -> JsonPlusSerializer:
        """Return a serialiser that also revives these classes without a warning."""
        made = JsonPlusSerializer()
        made._types = self._types.extended(extra_allowlist)
        return made

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the kind (``null``, ``bytes``, ``bytearray`` or ``msgpack``) and the bytes of *obj*.

        Raises:
            UnserializableValueError: it would not come back the same.
        """
        kind = type(obj)
        if obj is None:
            return "null", b""
        if kind is bytes:
            return "bytes", obj
        if kind is bytearray:
            return "bytearray", bytes(obj)
        try:
            return "msgpack", pack(obj)
        except (Refused, RecursionError, ValueError) as reason:
            raise unserializable(obj, reason) from None

    def join_typed(self, lists: Sequence[tuple[str, bytes]]) -> tuple[str, bytes]:
        """Return kind and bytes of the list with all items of these lists, which :meth:`dumps_typed` wrote."""
        return "msgpack", joined_arrays([data for _kind, data in lists])

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return what :meth:`dumps_typed` was given.

        Raises:
            UnreadableBytesError: the bytes are damaged or not ours, or a class in them is not what it was.
        """
        kind, stored = data
        if kind == "msgpack":
            try:
                return Unpacking(self._types).unpack(stored)
            except UnreadableBytesError:
                raise
            except _UNREADABLE as error:
                raise UnreadableBytesError(f"{type(error).__name__}: {error or 'no msgpack'}") from error
        if kind == "null":
            return None
        if kind == "bytes":
            return stored
        if kind == "bytearray":
            return bytearray(stored)
        hint = "; give PickleSerializer() if you trust whoever could write there" if kind == "pickle" else ""
        raise UnreadableBytesError(f"{kind!r} is no kind that this serialiser writes{hint}")
