"""Records of long-term memory, in the shape of the GenAI conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["record_shapes"]


def record_shapes(records: Any) -> list[dict[str, Any]]:
    """Return records with what they have of ``id``, ``score``, ``content`` and, below ``metadata``, their namespace.

    >>> record_shapes([{"namespace": ("ann",), "key": "tea", "value": {"likes": True}}, "Ann likes tea."])
    [{'id': 'tea', 'content': {'likes': True}, 'metadata': {'namespace': ['ann']}}, {'content': 'Ann likes tea.'}]
    """
    return [_shape(record) for record in records] if isinstance(records, (list, tuple)) else []


def _shape(record: Any) -> dict[str, Any]:
    if isinstance(record, Mapping):
        found = {name: record.get(name) for name in ("key", "id", "score", "value", "content", "namespace")}
    else:
        found = {name: getattr(record, name, None) for name in ("key", "id", "score", "value", "content", "namespace")}
    content = found["value"] if found["value"] is not None else found["content"]
    namespace = found["namespace"]
    shape = {
        "id": found["id"] if found["key"] is None else found["key"],
        "score": found["score"],
        # What is no record by its fields is one as a whole.
        "content": record if content is None else content,
        "metadata": {"namespace": list(namespace)} if isinstance(namespace, (list, tuple)) else None,
    }
    return {name: value for name, value in shape.items() if value is not None}
