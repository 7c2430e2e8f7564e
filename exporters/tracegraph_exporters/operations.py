"""The table of operations: of each span that is a graph's run, a node's task, or a call, the few facts that lists and sums need.

Spans keep their attributes as JSON, which is too slow to read a million times.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from tracegraph_exporters import base
from tracegraph_exporters.bulk import insert_rows

__all__ = ["CREATE", "INSERT", "KINDS", "fill", "operation_of"]

KINDS: Final = {
    "invoke_workflow": "graph",
    "invoke_agent": "graph",
    "run_step": "node",
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "embeddings": "model",
    "execute_tool": "tool",
    "retrieval": "retrieval",
    "search_memory": "memory",
    "create_memory": "memory",
    "update_memory": "memory",
    "upsert_memory": "memory",
    "delete_memory": "memory",
}
"""``gen_ai.operation.name`` -> the kind of operation. Other spans are none."""

_NAMES: Final = {
    "graph": (base.WORKFLOW_NAME, base.AGENT_NAME),
    "node": (base.STEP_NAME,),
    "model": (base.REQUEST_MODEL, base.RESPONSE_MODEL),
    "tool": (base.TOOL_NAME,),
    "retrieval": (base.RETRIEVER_NAME,),
    "memory": (base.OPERATION_NAME,),
}
_STATUSES: Final = (base.RUN_STATUS, base.TASK_STATUS, base.CALL_STATUS)
_TOKENS: Final = (base.INPUT_TOKENS, base.OUTPUT_TOKENS, base.CACHE_READ_TOKENS, base.CACHE_WRITE_TOKENS)
_NO_TOKENS: Final = (None, None, None, None)

# By trace, so that those of one lie together: they are found by it, and go with it.
CREATE: Final = """
CREATE TABLE {name} (
    trace_id TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, span_id TEXT NOT NULL, parent_id TEXT,
    start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, status TEXT NOT NULL, error_type TEXT, superstep INTEGER,
    attempts INTEGER, is_cached INTEGER, provider TEXT, input_tokens INTEGER, output_tokens INTEGER,
    cache_read_tokens INTEGER, cache_write_tokens INTEGER,
    PRIMARY KEY (trace_id, kind, name, span_id)
) WITHOUT ROWID
"""

INSERT: Final = "INSERT OR IGNORE INTO operations"

_BATCH: Final = 10_000


def operation_of(row: tuple[Any, ...], attributes: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the row of a span's operation, None if it is none.

    Args:
        row: the span's, as the table of spans has it, at least up to its status.
        attributes: what it says of itself.
    """
    operation = attributes.get(base.OPERATION_NAME)
    kind = KINDS.get(operation) if isinstance(operation, str) else None
    if kind is None:
        return None
    trace_id, span_id, parent_id, _, span_name, _, start_ns, end_ns, status = row[:9]
    found = (name for key in _NAMES[kind] if (name := attributes.get(key)))
    said = (value for key in _STATUSES if (value := attributes.get(key)))
    return (
        trace_id,
        kind,
        base.safe_text(str(next(found, span_name))),
        span_id,
        parent_id,
        start_ns,
        end_ns - start_ns,
        "error" if status == "error" else base.safe_text(str(next(said, "completed"))),
        _text(attributes.get(base.ERROR_TYPE)),
        _number(attributes.get(base.SUPERSTEP)),
        _number(attributes.get(base.TASK_ATTEMPTS)),
        _number(attributes.get(base.CACHE_HIT)),
        _text(attributes.get(base.PROVIDER)),
        *([_number(attributes.get(name)) for name in _TOKENS] if kind == "model" else _NO_TOKENS),
    )


def fill(connection: sqlite3.Connection) -> None:
    """Write the operations of all spans there are: the table is new to this store."""
    sql = "SELECT trace_id, span_id, parent_id, 0, name, kind, start_ns, end_ns, status, attributes FROM spans"
    spans = connection.execute(sql)
    while rows := spans.fetchmany(_BATCH):
        found = (operation_of(row, json.loads(row[9])) for row in rows)
        insert_rows(connection, INSERT, [row for row in found if row is not None])


def _text(value: Any) -> str | None:
    return None if value is None else base.safe_text(str(value))


def _number(value: Any) -> int | None:
    # Any application may have written the span, with anything in it.
    return int(value) if isinstance(value, int | float) and abs(value) < 2**53 else None
