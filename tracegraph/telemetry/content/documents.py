"""What a retriever found, in the shape of the GenAI conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["document_shapes"]


def document_shapes(documents: Any) -> list[dict[str, Any]]:
    """Return documents with what they have of ``id``, ``score``, ``content`` and ``metadata``.

    >>> document_shapes([{"id": "7", "page_content": "To be", "metadata": {"act": 3}}, "or not"])
    [{'id': '7', 'content': 'To be', 'metadata': {'act': 3}}, {'content': 'or not'}]
    """
    return [_shape(document) for document in documents] if isinstance(documents, (list, tuple)) else []


def _shape(document: Any) -> dict[str, Any]:
    score = None
    if isinstance(document, tuple) and len(document) == 2 and isinstance(document[1], (int, float)):
        document, score = document  # as `similarity_search_with_score` has it
    if isinstance(document, Mapping):
        read = document.get
    elif hasattr(document, "page_content") or hasattr(document, "content"):

        def read(key: str, default: Any = None) -> Any:
            return getattr(document, key, default)
    else:
        return {"content": document}
    metadata = read("metadata")
    if score is None:
        score = read("score") if read("score") is not None else metadata.get("score") if isinstance(metadata, Mapping) else None
    content = next((read(key) for key in ("page_content", "content", "text") if read(key) is not None), None)
    shape = {"id": read("id"), "score": score, "content": content, "metadata": metadata or None}
    return {key: value for key, value in shape.items() if value is not None}
