"""Drives the writers of a compiled graph's nodes by hand."""

from __future__ import annotations

from typing import Any

from tracegraph.engine.task import Superstep, Task
from tracegraph.engine.topology import Topology
from tracegraph.graph import StateGraph


class Flow:
    """A compiled graph whose writers are driven by hand; path functions are called as a driver would."""

    def __init__(self, builder: StateGraph[Any, Any, Any, Any], *, strict: bool = False, view: Any = None) -> None:
        app = builder.compile(strict=strict)
        self.nodes = app.nodes
        self.view = view or {}
        self.topology = Topology(
            app.nodes,
            app.channels,
            input_channels=app.input_channels,
            output_channels=app.output_channels,
            stream_channels=app.stream_channels,
            joins=app.joins,
        )
        self.task: Any = None

    def write(self, name: str, returned: Any) -> list[tuple[str, Any]]:
        """Return the writes of node *name* when it returned that."""
        self.task = Task(Superstep(bytes(16), "", 2, 7, self.topology, self.view, {}), self.nodes[name], (), "", (), b"")
        writing = self.nodes[name].writer.write(self.task, returned)
        answer = None
        while True:
            try:
                call = writing.send(answer)
            except StopIteration:
                return list(self.task.writes)
            answer = call.path.fn(call.input)
