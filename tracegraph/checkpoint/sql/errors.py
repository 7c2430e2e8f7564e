"""What the savers in databases raise of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tracegraph.errors import InvalidInputError

__all__ = ["DatabaseUnusableError", "unstorable"]


class DatabaseUnusableError(RuntimeError):
    """The checkpoint database cannot be used now; what it held before is untouched."""

    code: ClassVar[str]
    advice: ClassVar[Mapping[str, str]]
    """By reason, what to do."""

    def __init__(self, database: str, reason: str, detail: str) -> None:
        self.database = database
        self.reason = reason
        super().__init__(f"[{self.code}] the checkpoint database {database!r} cannot be used ({detail}): {self.advice[reason]}")


def unstorable(reason: object) -> InvalidInputError:
    """Return the error for ids, names or metadata with letters that a database has no place for."""
    return InvalidInputError(
        f"the database cannot store one of these ids, names or metadata ({reason}); keep NUL characters and half surrogate "
        "pairs out of thread ids, task paths, channel names and the config's metadata"
    )
