"""The functional API: a function as a graph, and functions whose calls are tasks of its runs."""

from __future__ import annotations

from tracegraph.func.entrypoints import entrypoint
from tracegraph.func.graph import EntrypointGraph
from tracegraph.func.tasks import TaskFunction, task

__all__ = ["EntrypointGraph", "TaskFunction", "entrypoint", "task"]
