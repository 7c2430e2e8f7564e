"""Who is in line for a thread, in this process."""

from __future__ import annotations

from itertools import count

__all__ = ["Queues"]


class Queues:
    """Tickets by thread; as all of them are of this process, none runs out. The caller has a lock."""

    def __init__(self) -> None:
        self._numbers = count()
        self._threads: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}

    def join(self, thread_id: str) -> str:
        """Return a ticket behind all others."""
        ticket = str(next(self._numbers))
        self._threads[ticket] = thread_id
        self._lines.setdefault(thread_id, []).append(ticket)
        return ticket

    def is_first(self, ticket: str) -> bool:
        """Say whether nobody is before this one."""
        return self._lines[self._threads[ticket]][0] == ticket

    def leave(self, ticket: str) -> None:
        """Forget a ticket."""
        thread_id = self._threads.pop(ticket, None)
        if thread_id is not None:
            self._lines[thread_id].remove(ticket)
            if not self._lines[thread_id]:
                del self._lines[thread_id]
