"""What the savers in databases raise of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

__all__ = ["DatabaseUnusableError"]


class DatabaseUnusableError(RuntimeError):
    """The checkpoint database cannot be used now; what it held before is untouched."""

    code: ClassVar[str]
    advice: ClassVar[Mapping[str, str]]
    """By reason, what to do."""

    def __init__(self, database: str, reason: str, detail: str) -> None:
        self.database = database
        self.reason = reason
        super().__init__(f"[{self.code}] the checkpoint database {database!r} cannot be used ({detail}): {self.advice[reason]}")
