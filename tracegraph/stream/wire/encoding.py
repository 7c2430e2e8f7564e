"""Parts as bytes for a connection or a file: NDJSON, and server-sent events.

What a chunk is made of is decided here once; the four generators only read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, overload

from tracegraph.errors import InvalidInputError
from tracegraph.stream.wire.form import error_to_wire, to_wire, wire_json

__all__ = ["ndjson_line", "sse_event", "to_ndjson", "to_sse"]

OnError: TypeAlias = Literal["raise", "send"]
"""What becomes of an error of the run: it is raised, or is the last thing sent."""

_Encode: TypeAlias = Callable[[Mapping[str, Any]], bytes]
_ON_ERROR: Final = ("raise", "send")


def ndjson_line(wire: Mapping[str, Any]) -> bytes:
    r"""Return a wire form as a line.

    >>> ndjson_line({"v": 1, "type": "custom", "ns": [], "data": "one\ntwo", "meta": None})
    b'{"v":1,"type":"custom","ns":[],"data":"one\\ntwo","meta":null}\n'
    """
    return wire_json(wire) + b"\n"


def sse_event(wire: Mapping[str, Any]) -> bytes:
    r"""Return a wire form as a server-sent event; its ``id`` is the part's ``seq``, left out where there is none.

    >>> sse_event({"v": 1, "type": "custom", "ns": [], "data": 1, "meta": None})
    b'event: custom\ndata: {"v":1,"type":"custom","ns":[],"data":1,"meta":null}\n\n'
    """
    meta = wire["meta"]
    number = b"" if meta is None else b"id: %d\n" % meta["seq"]
    return b"event: %s\n%sdata: %s\n\n" % (wire["type"].encode(), number, wire_json(wire))


@overload
def to_ndjson(parts: AsyncIterable[Any], *, on_error: OnError = "raise") -> AsyncGenerator[bytes, None]: ...
@overload
def to_ndjson(parts: Iterable[Any], *, on_error: OnError = "raise") -> Generator[bytes, None, None]: ...
def to_ndjson(
    parts: AsyncIterable[Any] | Iterable[Any], *, on_error: OnError = "raise"
) -> AsyncGenerator[bytes, None] | Generator[bytes, None, None]:
    r"""Yield parts of version 2 (or events) as lines of JSON; async for what ``astream`` returns.

    A chunk has all that a stream has ready, so a burst of tokens is one write; nothing waits for more. A generator of your
    own between the stream and this gives a chunk for each part. Closing it closes the stream.

    >>> [chunk] = to_ndjson([{"type": "custom", "ns": (), "data": {"pages": 1}}])
    >>> chunk
    b'{"v":1,"type":"custom","ns":[],"data":{"pages":1},"meta":null}\n'

    Args:
        on_error: "send" makes a last line of type ``error`` of an exception of the run, with its message: mind who reads it.

    Raises:
        InvalidInputError: a part is not of version 2, or ``on_error`` is none of its values.
    """
    return _encoded(parts, ndjson_line, on_error)


@overload
def to_sse(parts: AsyncIterable[Any], *, on_error: OnError = "raise") -> AsyncGenerator[bytes, None]: ...
@overload
def to_sse(parts: Iterable[Any], *, on_error: OnError = "raise") -> Generator[bytes, None, None]: ...
def to_sse(
    parts: AsyncIterable[Any] | Iterable[Any], *, on_error: OnError = "raise"
) -> AsyncGenerator[bytes, None] | Generator[bytes, None, None]:
    """Yield parts of version 2 (or events) as server-sent events, for ``text/event-stream``; else as :func:`to_ndjson`.

    >>> print(next(to_sse([{"type": "custom", "ns": (), "data": 1}])).decode().strip())
    event: custom
    data: {"v":1,"type":"custom","ns":[],"data":1,"meta":null}
    """
    return _encoded(parts, sse_event, on_error)


def _encoded(
    parts: AsyncIterable[Any] | Iterable[Any], encode: _Encode, on_error: str
) -> AsyncGenerator[bytes, None] | Generator[bytes, None, None]:
    if on_error not in _ON_ERROR:
        raise InvalidInputError(f"on_error must be 'raise' or 'send', not {on_error!r}")
    chunks = _Chunks(parts, encode, sends_errors=on_error == "send")
    return _aread(parts, chunks) if isinstance(parts, AsyncIterable) else _read(parts, chunks)


class _Chunks:
    """Makes the chunks of one stream."""

    def __init__(self, parts: Any, encode: _Encode, *, sends_errors: bool) -> None:
        self._take_ready: Callable[[], Sequence[Any]] = getattr(parts, "take_ready", tuple)
        self._encode = encode
        self._sends_errors = sends_errors

    def of(self, part: Any) -> bytes:
        """Return the chunk of *part* and of all that is ready behind it."""
        return b"".join([self._encode(to_wire(each)) for each in (part, *self._take_ready())])

    def of_error(self, error: Exception) -> bytes:
        """Return the last chunk of a run that failed, or raise its error."""
        if not self._sends_errors:
            raise error
        return self._encode(error_to_wire(error))


def _read(parts: Iterable[Any], chunks: _Chunks) -> Generator[bytes, None, None]:
    reading = iter(parts)
    try:
        while True:
            try:
                part = next(reading)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001  # whatever ended the run
                last = chunks.of_error(error)
                break
            yield chunks.of(part)
        yield last
    finally:
        if (close := getattr(reading, "close", None)) is not None:
            close()


async def _aread(parts: AsyncIterable[Any], chunks: _Chunks) -> AsyncGenerator[bytes, None]:
    reading = aiter(parts)
    try:
        while True:
            try:
                part = await anext(reading)
            except StopAsyncIteration:
                return
            except Exception as error:  # noqa: BLE001  # whatever ended the run
                last = chunks.of_error(error)
                break
            yield chunks.of(part)
        yield last
    finally:
        if (close := getattr(reading, "aclose", None)) is not None:
            await close()
