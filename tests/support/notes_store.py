"""A small store with the methods of LangGraph's BaseStore, all of which go through ``batch``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class GetOp(NamedTuple):
    namespace: tuple[str, ...]
    key: str


class SearchOp(NamedTuple):
    namespace_prefix: tuple[str, ...]
    query: str | None = None


class PutOp(NamedTuple):
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] | None


class ListNamespacesOp(NamedTuple):
    match_conditions: tuple[Any, ...] | None = None


class Note(NamedTuple):
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]


class NotesStore:
    """Keeps notes in a dict. It raises ``broken``, once that is set, instead of doing anything."""

    broken: BaseException | None = None

    def __init__(self, store_id: str | None = None) -> None:
        self.notes: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {}
        self.store_id = store_id

    def __len__(self) -> int:
        return len(self.notes)

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Do what *ops* say, in order."""
        if self.broken is not None:
            raise self.broken
        return [self._do(op) for op in ops]

    def _do(self, op: Any) -> Any:
        match op:
            case GetOp():
                value = self.notes.get((op.namespace, op.key))
                return None if value is None else Note(op.namespace, op.key, value)
            case SearchOp():
                return [
                    Note(*where, note) for where, note in self.notes.items()
                    if where[0][: len(op.namespace_prefix)] == op.namespace_prefix
                ]  # fmt: skip
            case PutOp(value=None):
                self.notes.pop((op.namespace, op.key), None)
            case PutOp():
                self.notes[op.namespace, op.key] = op.value
            case _:
                return [namespace for namespace, _ in self.notes]
        return None

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Do the same."""
        return self.batch(ops)

    def get(self, namespace: tuple[str, ...], key: str) -> Note | None:
        """Return one note."""
        found: Note | None = self.batch([GetOp(namespace, key)])[0]
        return found

    def search(self, namespace_prefix: tuple[str, ...], /, *, query: str | None = None) -> list[Note]:
        """Return all notes below a namespace."""
        found: list[Note] = self.batch([SearchOp(namespace_prefix, query)])[0]
        return found

    def put(self, namespace: tuple[str, ...], key: str, value: dict[str, Any] | None) -> None:
        """Keep a note; None deletes it."""
        self.batch([PutOp(namespace, str(key), value)])

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """Forget a note."""
        self.batch([PutOp(namespace, key, None)])

    def list_namespaces(self) -> list[tuple[str, ...]]:
        """Return where notes are."""
        found: list[tuple[str, ...]] = self.batch([ListNamespacesOp()])[0]
        return found

    async def aget(self, namespace: tuple[str, ...], key: str) -> Note | None:
        """Return one note."""
        return self.get(namespace, key)

    async def asearch(self, namespace_prefix: tuple[str, ...], /, *, query: str | None = None) -> list[Note]:
        """Return all notes below a namespace."""
        return self.search(namespace_prefix, query=query)

    async def aput(self, namespace: tuple[str, ...], key: str, value: dict[str, Any] | None) -> None:
        """Keep a note."""
        self.put(namespace, key, value)

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """Forget a note."""
        self.delete(namespace, key)

    async def alist_namespaces(self) -> list[tuple[str, ...]]:
        """Return where notes are."""
        return self.list_namespaces()
