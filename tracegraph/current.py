"""The one ContextVar: what runs here and now.

It is the lowest room but errors and constants because :func:`tracegraph.types.interrupt` reads it.
What it holds is made by the drivers; here only the shape that lower layers rely on is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

__all__ = ["CURRENT", "Here", "here"]


class Here(Protocol):
    """The task attempt whose code is running in this context."""

    def ask(self, value: Any, response_schema: Any) -> Any:
        """Return the answer to this attempt's next ``interrupt()``, or raise ``GraphInterrupt``."""

    def config(self) -> dict[str, Any]:
        """Return the ``RunnableConfig`` of the running task."""

    def push(self, message: Any, state_key: str | None) -> None:
        """Put a message on the stream, and into the state under *state_key*."""

    @property
    def log_fields(self) -> Mapping[str, Any]:
        """Return what a log line says of where it comes from: run_id, thread_id (if there is one), node, superstep, attempt."""

    @property
    def runtime(self) -> Any:
        """The ``Runtime`` of the running task."""


CURRENT: ContextVar[Any] = ContextVar("tracegraph_current", default=None)
"""The :class:`Here` of the code that runs in this context, ``None`` outside a task."""


def here(what: str) -> Here:
    """Return the running task's record; *what* names the caller in the error.

    Raises:
        RuntimeError: called outside a node, task or path function of a run.
    """
    found: Here | None = CURRENT.get()
    if found is None:
        raise RuntimeError(
            f"{what} was called outside a run; call it in a node, task or path function, and in threads you "
            "start yourself run the code in contextvars.copy_context()"
        )
    return found
