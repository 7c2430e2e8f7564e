"""What the command hears of a run while it goes on: progress for a terminal, pauses, and where an error began."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tracegraph.callbacks import BaseCallbackHandler, GraphInterruptEvent
from tracegraph.cli.output import has_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

__all__ = ["Progress"]


class Progress(BaseCallbackHandler):
    """Handler that keeps a status line on stderr, and prints each node as it ends, if stderr is a terminal.

    ``pause`` is how the run paused; ``failed`` the innermost node that raised, with its error; ``output`` what the run with
    the id *root_id* gave.
    """

    def __init__(self, root_id: UUID) -> None:
        self.output: Any = None
        self.pause: GraphInterruptEvent | None = None
        self.failed: tuple[str, BaseException] | None = None
        self._lock = threading.Lock()
        self._running: dict[UUID, tuple[str, float, int]] = {}
        """Run id -> node, start (monotonic seconds), superstep."""
        self._step = 0
        self._root_id = root_id
        self._console: Console | None = None
        self._status: Status | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress inside this block, if there is a terminal to show it on."""
        if not has_terminal("stderr"):
            yield
            return
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._status = self._console.status("starting")
        with self._status:
            yield
        self._status = None

    def on_superstep_start(self, step: int, *, run_id: UUID, **_: Any) -> None:
        """Remember the root graph's step; those of nested graphs are shown with their nodes only."""
        if run_id == self._root_id:
            self._step = step

    def on_chain_start(self, *_: Any, run_id: UUID, name: str = "", metadata: dict[str, Any] | None = None, **__: Any) -> None:
        """Show a node as running; graphs and path functions are no nodes."""
        facts = metadata or {}
        if facts.get("langgraph_node") != name:
            return
        with self._lock:
            self._running[run_id] = (name, time.monotonic(), facts.get("langgraph_step", self._step))
        self._update()

    def on_chain_end(self, outputs: Any = None, *_: Any, run_id: UUID, **__: Any) -> None:
        """Print a node that has returned, or remember what the run gave."""
        if run_id == self._root_id:
            self.output = outputs
        self._end(run_id, "[green]✓[/green]", None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Print a node that has failed; the innermost one reports first."""
        self._end(run_id, "[red]✗[/red]", error)

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """Remember what the run asks."""
        self.pause = event

    def _end(self, run_id: UUID, mark: str, error: BaseException | None) -> None:
        with self._lock:
            found = self._running.pop(run_id, None)
        if found is None:
            return
        name, started, step = found
        if error is not None and (self.failed is None or self.failed[1] is not error):
            self.failed = (name, error)
        if self._console is not None:
            from rich.markup import escape

            self._console.print(f"{mark} step {step}  {escape(name)}  [dim]{_duration(time.monotonic() - started)}[/dim]")
        self._update()

    def _update(self) -> None:
        status = self._status
        if status is None:
            return
        from rich.markup import escape

        with self._lock:
            names = [name for name, _, _ in self._running.values()]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        status.update(f"step {self._step}: {escape(shown)}" if names else f"step {self._step}")


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
