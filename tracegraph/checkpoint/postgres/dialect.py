"""What PostgreSQL says its own way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tracegraph.checkpoint.sql.dialect import Dialect
from tracegraph.checkpoint.sql.rows import short
from tracegraph.records import Version

__all__ = ["PostgresDialect"]


class PostgresDialect(Dialect):
    """Its texts sort by code point (the columns say so), its writers lock the place they write to."""

    pairs = "json_each_text(CAST(? AS json))"
    lock = " FOR UPDATE"
    metadata = "CAST(c.metadata AS text)"
    lock_queue = "SELECT pg_advisory_xact_lock(1953653108, hashtext(?))"  # any number that is nobody else's, and the thread
    now = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
    _has = "CAST(c.metadata AS jsonb) @> CAST(? AS jsonb)"

    def insert(self, table: str, columns: Mapping[str, str]) -> str:
        """See :class:`Dialect`: the values are one array for each column, so that any number of rows is one statement."""
        names = ", ".join(columns)
        arrays = ", ".join(f"CAST(? AS {'text' if kind == 'json' else kind}[])" for kind in columns.values())
        taken = ", ".join(f"CAST({name} AS json)" if kind == "json" else name for name, kind in columns.items())
        return f"INSERT INTO {table} ({names}) SELECT {taken} FROM unnest({arrays}) AS given({names})"  # noqa: S608

    def one_value(self, condition: str) -> str:
        """See :class:`Dialect`: with a limit, so that the planner looks rows up one by one. Else it may read the whole table."""
        return f"CROSS JOIN LATERAL (SELECT * FROM tracegraph_blobs b WHERE {condition} LIMIT 1) b"  # noqa: S608

    def version(self, version: Version) -> Version:
        """See :class:`Dialect`: numbers too become texts."""
        return short(version) if isinstance(version, str) else f"#{version!r}"

    def sieve(self, wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """See :class:`Dialect`."""
        condition, values = "", []
        for key, value in wanted.items():
            forms = _forms(value) if _is_text(key) else []
            if forms:
                condition += f" AND ({' OR '.join([self._has] * len(forms))})"
                values += [json.dumps({key: form}) for form in forms]
        return condition, values


def _forms(value: Any) -> list[Any]:
    """Return the values that are other ones in JSON but the same in Python; none if they cannot be told."""
    if isinstance(value, bool | int | float) and value in (0, 1):
        return [bool(value), int(value)]
    return [value] if _is_exact(value) else []


def _is_exact(value: Any) -> bool:
    """Say whether only one JSON value is the same in Python, and the database can read it."""
    match value:
        case None:
            return True
        case str():
            return _is_text(value)
        case int() | float():
            return value not in (0, 1) and -(2**53) <= value <= 2**53
        case list():
            return all(map(_is_exact, value))
        case dict():
            return all(_is_text(key) and _is_exact(part) for key, part in value.items())
        case _:
            return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
