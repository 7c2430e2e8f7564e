"""Carrying operations out with psycopg, in either colour."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import Any, Final, LiteralString, NamedTuple, TypeVar

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.rows import tuple_row

from tracegraph.checkpoint.sql.orders import Insert, Many, Operation, Rows

__all__ = ["acarry_out", "carry_out"]

T = TypeVar("T")

# Both begin a transaction, whatever the database, the role or the connection has as default.
_READING: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""All statements read one state of everything."""
_WRITING: Final = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
"""A statement that follows a lock sees what the lock was waited for; a stricter level would show a head of before that."""


class _Call(NamedTuple):
    """A statement to execute, and whether its rows are to be fetched."""

    statement: LiteralString
    values: Sequence[Any] = ()
    is_asked: bool = False


# Every statement that is asked has a cursor of its own: in a pipeline results of earlier ones may come in at any time, and a
# cursor takes the first that comes for the answer to the latest. They are not of the connection's own kind, which may want
# other placeholders.


def carry_out(connection: Connection[Any], operation: Operation[T], *, writes: bool) -> T:
    """Carry an operation out in the transaction that has just begun, blocking."""
    told = Cursor(connection, row_factory=tuple_row)
    calls = _calls(operation, writes=writes)
    try:
        call = next(calls)
        while True:
            cursor = Cursor(connection, row_factory=tuple_row) if call.is_asked else told
            cursor.execute(call.statement, call.values)
            call = calls.send(cursor.fetchall() if call.is_asked else [])
    except StopIteration as stop:
        answer: T = stop.value
        return answer


async def acarry_out(connection: AsyncConnection[Any], operation: Operation[T], *, writes: bool) -> T:
    """Carry an operation out in the transaction that has just begun, awaiting."""
    told = AsyncCursor(connection, row_factory=tuple_row)
    calls = _calls(operation, writes=writes)
    try:
        call = next(calls)
        while True:
            cursor = AsyncCursor(connection, row_factory=tuple_row) if call.is_asked else told
            await cursor.execute(call.statement, call.values)
            call = calls.send(await cursor.fetchall() if call.is_asked else [])
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def _calls(operation: Operation[T], *, writes: bool) -> Generator[_Call, list[tuple[Any, ...]], T]:
    """Yield the calls of an operation's orders; sent in are the rows of those that ask for them."""
    yield _Call(_WRITING if writes else _READING)
    try:
        order = next(operation)
        while True:
            rows: list[tuple[Any, ...]] = []
            match order:
                case Rows():
                    rows = yield _Call(_translated(order.sql), order.values, is_asked=True)
                case Many():
                    for values in order.rows:
                        yield _Call(_translated(order.sql), values)
                case Insert():  # one array for each column
                    yield _Call(_translated(order.sql), [list(column) for column in zip(*order.rows, strict=True)])
            order = operation.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


@lru_cache(maxsize=256)
def _translated(sql: str) -> LiteralString:
    """Return a statement with psycopg's placeholders."""
    statement: Any = sql.replace("?", "%s")
    found: LiteralString = statement
    return found
