"""Where the databases differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tracegraph.records import Version

__all__ = ["Dialect"]


class Dialect(ABC):
    """What a database says its own way; ``?`` stands for a value in all statements."""

    pairs: ClassVar[str]
    """A table with the columns ``key`` and ``value`` made of one JSON object, which is the statement's next value."""
    lock: ClassVar[str]
    """What a SELECT ends with so that nobody else may change the row until the transaction ends."""
    metadata: ClassVar[str]
    """The metadata column as JSON text."""

    lock_queue: ClassVar[str] = ""
    """What a thread's queue is locked with until the transaction ends, its id being the value; none where writers are alone."""
    now: ClassVar[str]
    """Seconds since 1970 by the database's clock, with fractions."""

    @abstractmethod
    def insert(self, table: str, columns: Mapping[str, str]) -> str:
        """Return an INSERT of these columns, given with their types, as far as a clause ON CONFLICT can follow."""

    @abstractmethod
    def one_value(self, condition: str) -> str:
        """Return what joins the one row of ``tracegraph_blobs b`` that a condition on its whole key names, by its index."""

    @abstractmethod
    def version(self, version: Version) -> Version:
        """Return a channel version as its column holds it; the order of texts stays."""

    @abstractmethod
    def sieve(self, wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """Return a condition on metadata, which begins with AND, and its values.

        It may let too much through, for what it lets through is compared again, but nothing too little.
        """
