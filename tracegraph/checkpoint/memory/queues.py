"""Who is in line for a thread, in this process."""

from __future__ import annotations

from tracegraph.checkpoint.base.saver import QueuePlace

__all__ = ["Queues"]


class Queues:
    """Tickets by thread; as all of them are of this process, none runs out. The caller has a lock."""

    def __init__(self) -> None:
        self._threads: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}

    def join(self, thread_id: str, ticket: str) -> None:
        """Add a ticket behind all others."""
        self._threads[ticket] = thread_id
        self._lines.setdefault(thread_id, []).append(ticket)

    def has(self, ticket: str) -> bool:
        """Say whether a ticket is in line."""
        return ticket in self._threads

    def place(self, ticket: str) -> QueuePlace:
        """Say whether somebody is before this one."""
        thread_id = self._threads.get(ticket)
        if thread_id is None:
            return "gone"
        return "first" if self._lines[thread_id][0] == ticket else "waiting"

    def leave(self, ticket: str) -> None:
        """Forget a ticket."""
        thread_id = self._threads.pop(ticket, None)
        if thread_id is not None:
            self._lines[thread_id].remove(ticket)
            if not self._lines[thread_id]:
                del self._lines[thread_id]
