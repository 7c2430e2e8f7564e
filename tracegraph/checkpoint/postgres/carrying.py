"""Carrying operations out with psycopg, in either colour."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, LiteralString, TypeVar

from psycopg import AsyncCursor, Cursor

from tracegraph.checkpoint.sql.orders import Insert, Many, Operation, Order, Rows

__all__ = ["CONNECTION", "READING", "acarry_out", "carry_out"]

T = TypeVar("T")

CONNECTION: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": None}
"""How connections are opened: without prepared statements, which poolers like pgbouncer lose between transactions."""

READING: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""Begins a transaction whose statements all read one state of everything."""


def carry_out(cursor: Cursor[Any], operation: Operation[T]) -> T:
    """Carry an operation out, blocking."""
    try:
        order = next(operation)
        while True:
            match order:
                case Rows():
                    cursor.execute(*_call(order))
                    order = operation.send(cursor.fetchall())
                case Many():
                    for values in order.rows:
                        cursor.execute(_translated(order.sql), values)
                    order = operation.send([])
                case Insert():
                    cursor.execute(*_call(order))
                    order = operation.send([])
    except StopIteration as stop:
        answer: T = stop.value
        return answer


async def acarry_out(cursor: AsyncCursor[Any], operation: Operation[T]) -> T:
    """Carry an operation out, awaiting."""
    try:
        order = next(operation)
        while True:
            match order:
                case Rows():
                    await cursor.execute(*_call(order))
                    order = operation.send(await cursor.fetchall())
                case Many():
                    for values in order.rows:
                        await cursor.execute(_translated(order.sql), values)
                    order = operation.send([])
                case Insert():
                    await cursor.execute(*_call(order))
                    order = operation.send([])
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def _call(order: Order) -> tuple[LiteralString, Any]:
    """Return statement and values; of inserted rows, one array for each column."""
    if isinstance(order, Insert):
        return _translated(order.sql), [list(column) for column in zip(*order.rows, strict=True)]
    assert isinstance(order, Rows)
    return _translated(order.sql), order.values


@lru_cache(maxsize=256)
def _translated(sql: str) -> LiteralString:
    """Return a statement with psycopg's placeholders."""
    statement: Any = sql.replace("?", "%s")
    found: LiteralString = statement
    return found
