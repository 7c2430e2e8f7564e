"""What an import can fail with."""

from __future__ import annotations

__all__ = ["SourceError", "ThreadRefusedError"]


class SourceError(ValueError):
    """The database cannot be read as one that LangGraph's SQLite or Postgres saver wrote."""

    code = "TG231"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"[{self.code}] {reason}")


class ThreadRefusedError(ValueError):
    """A thread that cannot be imported as it is; nothing of it was written, and the source is untouched."""

    code = "TG232"

    def __init__(self, thread_id: str, reason: str) -> None:
        self.thread_id = thread_id
        self.reason = reason
        super().__init__(f"[{self.code}] thread {thread_id!r} was not imported: {reason}")
