"""Hand-made events of one small run, and handlers that write down what they are told."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tracegraph.callbacks.base import BaseCallbackHandler
from tracegraph.callbacks.calls import _IGNORED_BY
from tracegraph.events import (
    AttemptEnded,
    AttemptStarted,
    BranchEnded,
    BranchStarted,
    RunEnded,
    RunStarted,
    TaskEnded,
    TaskStarted,
)

ROOT = UUID(int=1)
CHILD = UUID(int=2)


def _writer(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> None:
        self.calls.append((name, args, kwargs))

    return method


class Recorder(BaseCallbackHandler):
    """Writes down every call as (method, positional arguments, keywords)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def names(self) -> list[str]:
        return [name for name, _, _ in self.calls]

    def of(self, method: str) -> list[dict[str, Any]]:
        return [kwargs for name, _, kwargs in self.calls if name == method]

    def first(self, method: str) -> list[Any]:
        return [args[0] for name, args, _ in self.calls if name == method]


for _name in _IGNORED_BY:
    setattr(Recorder, _name, _writer(_name))


def run_started(run_id: UUID = ROOT, **facts: Any) -> RunStarted:
    given: dict[str, Any] = {
        "ns": "", "step": -1, "at_ns": 0, "parent_run_id": None, "parent_task_id": None, "name": "LangGraph",
        "workflow_name": None,
        "input": {"x": 0}, "thread_id": None, "tags": ["u"], "metadata": {"m": 1}, "durability": None, "is_resume": False,
        "checkpoint_id": None,
    }  # fmt: skip
    return RunStarted(run_id, **{**given, **facts})


def run_ended(run_id: UUID = ROOT, **facts: Any) -> RunEnded:
    given: dict[str, Any] = {
        "ns": "", "step": 1, "at_ns": 0, "name": "LangGraph", "status": "completed", "output": {"x": 1}, "error": None,
        "interrupts": (), "reason": None,
    }  # fmt: skip
    return RunEnded(run_id, **{**given, **facts})


def task_started(name: str = "a", run_id: UUID = ROOT, **facts: Any) -> TaskStarted:
    given: dict[str, Any] = {
        "ns": "", "step": 1, "at_ns": 0, "task_id": f"id-{name}", "path": ("__pregel_pull", name),
        "triggers": (f"branch:to:{name}",), "input": {"x": 0}, "planned_at_ns": 0,
        "producer_id": None, "caller_id": None, "is_hidden": False, "tags": (),
        "metadata": None, "has_attempts": False,
    }  # fmt: skip
    return TaskStarted(run_id, name=name, **{**given, **facts})


def task_ended(name: str = "a", run_id: UUID = ROOT, **facts: Any) -> TaskEnded:
    given: dict[str, Any] = {
        "ns": "", "step": 1, "at_ns": 0, "task_id": f"id-{name}", "status": "completed", "writes": [], "result": {"x": 1},
        "error": None, "interrupts": (), "is_hidden": False, "attempts": 1, "reason": None,
    }  # fmt: skip
    return TaskEnded(run_id, name=name, **{**given, **facts})


def attempt_started(attempt: int, name: str = "a") -> AttemptStarted:
    return AttemptStarted(ROOT, "", 1, 0, f"id-{name}", name, attempt)


def attempt_ended(attempt: int, error: BaseException | None, delay_s: float | None = None, name: str = "a") -> AttemptEnded:
    return AttemptEnded(ROOT, "", 1, 0, f"id-{name}", name, attempt, error, delay_s is not None, delay_s or 0.0)


def branch_started(path: str = "route", node: str = "a", position: int = 0, given: Any = None) -> BranchStarted:
    return BranchStarted(ROOT, "", 1, 0, f"id-{node}", path, position, given)


def branch_ended(
    path: str = "route", node: str = "a", position: int = 0, output: Any = "b", error: BaseException | None = None
) -> BranchEnded:
    return BranchEnded(ROOT, "", 1, 0, f"id-{node}", path, position, output, error)
