"""What a store is asked and answers, in the words of memory calls: read from the methods and tuples of LangGraph's BaseStore.

Nothing here knows a class: tuples are told apart by their fields, so those of other libraries with the same ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from tracegraph.events import MemoryOperation

__all__ = ["READERS", "Asked", "asked_of", "found_by"]

Namespace = tuple[str, ...]


class _Op(NamedTuple):
    """One operation."""

    operation: MemoryOperation
    namespace: Namespace | None
    key: str | None
    value: Any = None
    query: Any = None
    finds_many: bool = False


class Asked(NamedTuple):
    """All operations of one kind in one call of a store, and where in the call's answers theirs are."""

    operation: MemoryOperation
    namespace: Namespace | None
    """The one of all of them; None if they have several."""
    record_id: str | None
    query: Any
    records: list[dict[str, Any]] | None
    """What is to be written, as the content of items: ``namespace``, ``key``, ``value``."""
    positions: tuple[int, ...]
    lists: frozenset[int]
    """Those of the positions where the answer is a list of records, not a record."""


def asked_of(ops: Sequence[_Op | None]) -> list[Asked]:
    """Return what is asked, by kind, in the order in which the kinds come first; None is what is no memory operation.

    >>> [(asked.operation, asked.record_id) for asked in asked_of(READERS["get"]([("users",), "ann"], {}))]
    [('search_memory', 'ann')]
    """
    kinds: dict[MemoryOperation, list[tuple[int, _Op]]] = {}
    for position, op in enumerate(ops):
        if op is not None:
            kinds.setdefault(op.operation, []).append((position, op))
    return [_asked(operation, found) for operation, found in kinds.items()]


def _asked(operation: MemoryOperation, found: list[tuple[int, _Op]]) -> Asked:
    ops = [op for _, op in found]
    namespace = ops[0].namespace if all(op.namespace == ops[0].namespace for op in ops) else None
    record_id = ops[0].key if len(ops) == 1 else None
    queries = [op.query for op in ops if op.query is not None]
    records = None
    if operation == "upsert_memory":
        records = [{"namespace": op.namespace, "key": op.key, "value": op.value} for op in ops]
    query = queries[0] if len(queries) == 1 else None
    positions = tuple(position for position, _ in found)
    return Asked(operation, namespace, record_id, query, records, positions, frozenset(p for p, op in found if op.finds_many))


def found_by(asked: Asked, answers: Any) -> tuple[list[Any] | None, int | None]:
    """Return the records found, None if none were looked for, and how many were found, written or to be deleted.

    >>> get = asked_of(READERS["get"]([("users",), "ann"], {}))[0]
    >>> found_by(get, [None]), found_by(get, ["an item"])
    (([], 0), (['an item'], 1))
    """
    if asked.operation != "search_memory":
        return None, len(asked.positions)
    if not isinstance(answers, (list, tuple)) or len(answers) <= asked.positions[-1]:
        return None, None  # no answer to this that anybody would know
    records: list[Any] = []
    for position in asked.positions:
        answer = answers[position]
        if position not in asked.lists:
            records.extend(() if answer is None else (answer,))
        elif isinstance(answer, (list, tuple)):
            records.extend(answer)
        else:
            return None, None
    return records, len(records)


# --- methods: what they are called with, as operations ------------------------------------------------------------

Reader = Callable[[Sequence[Any], Mapping[str, Any]], list[_Op | None]]
"""Reads the arguments of a method. What does not look like the method's own arguments is left unsaid."""


def _read_get(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[_Op | None]:
    given = _named(("namespace", "key"), args, kwargs)
    return [_Op("search_memory", _namespace(given.get("namespace")), _key(given.get("key")))]


def _read_search(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[_Op | None]:
    given = _named(("namespace_prefix",), args, kwargs)
    return [_Op("search_memory", _namespace(given.get("namespace_prefix")), None, query=given.get("query"), finds_many=True)]


def _read_put(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[_Op | None]:
    given = _named(("namespace", "key", "value"), args, kwargs)
    return [_written(given.get("namespace"), given.get("key"), given.get("value"))]


def _read_delete(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[_Op | None]:
    given = _named(("namespace", "key"), args, kwargs)
    return [_written(given.get("namespace"), given.get("key"), None)]


def _read_batch(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[_Op | None]:
    # The store reads them too, so an iterator has been made a list.
    ops = _named(("ops",), args, kwargs).get("ops")
    return [_read_op(op) for op in ops] if isinstance(ops, (list, tuple)) else []


def _read_op(op: Any) -> _Op | None:
    if hasattr(op, "namespace_prefix"):
        return _Op("search_memory", _namespace(op.namespace_prefix), None, query=getattr(op, "query", None), finds_many=True)
    if not hasattr(op, "key"):
        return None  # a list of namespaces: no memory is read, and the conventions have no word for it
    namespace = getattr(op, "namespace", None)
    if hasattr(op, "value"):
        return _written(namespace, op.key, op.value)
    return _Op("search_memory", _namespace(namespace), _key(op.key))


def _written(namespace: Any, key: Any, value: Any) -> _Op:
    # To put None is to delete.
    operation: MemoryOperation = "delete_memory" if value is None else "upsert_memory"
    return _Op(operation, _namespace(namespace), _key(key), value)


def _named(names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _namespace(value: Any) -> Namespace | None:
    if isinstance(value, (tuple, list)) and all(isinstance(label, str) for label in value):
        return tuple(value)
    return None


def _key(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int, UUID)) else None


READERS: Final[Mapping[str, Reader]] = {
    "get": _read_get,
    "search": _read_search,
    "put": _read_put,
    "delete": _read_delete,
    "batch": _read_batch,
    "aget": _read_get,
    "asearch": _read_search,
    "aput": _read_put,
    "adelete": _read_delete,
    "abatch": _read_batch,
}
"""The methods that are memory calls. Namespaces are not listed here: the conventions have no word for that."""
