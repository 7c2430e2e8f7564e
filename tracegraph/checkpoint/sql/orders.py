"""What an operation asks of a database, so that it is written once for all of them and for both colours.

An operation is a generator: it yields orders and is sent their answers, and whoever has a cursor carries them out
inside one transaction.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = ["Insert", "Many", "Operation", "Order", "Rows"]

T = TypeVar("T")


class Rows(NamedTuple):
    """Run a statement; the answer is the list of its rows."""

    sql: str
    values: Sequence[Any] = ()


class Many(NamedTuple):
    """Run a statement for each of these rows of values; the answer is empty."""

    sql: str
    rows: Sequence[Sequence[Any]]


class Insert(NamedTuple):
    """Run a statement made by :meth:`Dialect.insert` with these rows, no two of one key; the answer is empty."""

    sql: str
    rows: Sequence[Sequence[Any]]


Order: TypeAlias = Rows | Many | Insert

Operation: TypeAlias = Generator[Order, list[tuple[Any, ...]], T]
