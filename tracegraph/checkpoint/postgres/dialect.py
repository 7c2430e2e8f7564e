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

    pairs = "jsonb_each_text(CAST(? AS jsonb))"
    lock = " FOR UPDATE"
    metadata = "CAST(c.metadata AS text)"
    now = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"

    def insert(self, table: str, columns: Mapping[str, str]) -> str:
        """See :class:`Dialect`: the values are one array for each column, so that any number of rows is one statement."""
        names = ", ".join(columns)
        arrays = ", ".join(f"CAST(? AS {'text' if kind == 'jsonb' else kind}[])" for kind in columns.values())
        taken = ", ".join(f"CAST({name} AS jsonb)" if kind == "jsonb" else name for name, kind in columns.items())
        return f"INSERT INTO {table} ({names}) SELECT {taken} FROM unnest({arrays}) AS given({names})"  # noqa: S608

    def version(self, version: Version) -> Version:
        """See :class:`Dialect`: numbers too become texts."""
        return short(version) if isinstance(version, str) else f"#{version!r}"

    def sieve(self, wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """See :class:`Dialect`."""
        plain = {key: value for key, value in wanted.items() if _is_json(key) and _is_json(value)}
        return " AND c.metadata @> CAST(? AS jsonb)", [json.dumps(plain)]


def _is_json(value: Any) -> bool:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return "\\u0000" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
