"""The functional API: functions whose calls are tasks of the run."""

from __future__ import annotations

from tracegraph.func.task import TaskFunction, task

__all__ = ["TaskFunction", "task"]
