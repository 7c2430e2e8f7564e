"""What SQLite says its own way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tracegraph.checkpoint.sql.dialect import Dialect
from tracegraph.checkpoint.sql.rows import short
from tracegraph.records import Version

__all__ = ["SqliteDialect"]


class SqliteDialect(Dialect):
    """Its version column has no type, so numbers stay numbers; writers have the database for themselves."""

    pairs = "json_each(?)"
    lock = ""
    metadata = "c.metadata"
    now = "((julianday('now') - 2440587.5) * 86400.0)"

    def insert(self, table: str, columns: Mapping[str, str]) -> str:
        """See :class:`Dialect`."""
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608

    def one_value(self, condition: str) -> str:
        """See :class:`Dialect`."""
        return f"CROSS JOIN tracegraph_blobs b WHERE {condition}"

    def version(self, version: Version) -> Version:
        """See :class:`Dialect`."""
        return short(version)

    def sieve(self, wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """See :class:`Dialect`.

        Left out are values that are no scalars, and keys and texts that a JSON path or SQLite could take for something else.
        """
        plain = [(f'$."{key}"', value) for key, value in wanted.items() if _is_plain(key) and _is_comparable(value)]
        return " AND json_extract(c.metadata, ?) IS ?" * len(plain), [part for pair in plain for part in pair]


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


def _is_comparable(value: Any) -> bool:
    match value:
        case None | bool():
            return True
        case int():
            return -(2**53) <= value <= 2**53
        case float():
            return math.isfinite(value)
        case str():
            return _is_plain(value)
        case _:
            return False
