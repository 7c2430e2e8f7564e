"""Events of one root run made by hand, with a clock of their own, fed to a SpanObserver."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

from opentelemetry.sdk.trace import TracerProvider

from tracegraph import events as e
from tracegraph.telemetry.roots import spans_for_root

ROOT, CHILD, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


class Script:
    """Builds events of one root run with a clock that ticks 1 ms an event, and feeds them to the observer."""

    def __init__(self, provider: TracerProvider, **started: Any) -> None:
        self.clock = count(1_700_000_000_000_000_000, 1_000_000)
        first = self.run_started(ROOT, **started)
        self.observer, self.context = spans_for_root(first, provider=provider)
        self.send(first)

    def send(self, *events: e.Event) -> None:
        for event in events:
            if self.observer is not None:
                self.observer.observe(event)

    def run_started(self, run_id: UUID, **kw: Any) -> e.RunStarted:
        given = {
            "ns": "", "step": -1, "parent_run_id": None, "parent_task_id": None, "name": "LangGraph", "workflow_name": None,
            "input": {}, "thread_id": None, "tags": (), "metadata": {}, "durability": None,
            "is_resume": False, "checkpoint_id": None,
        } | kw  # fmt: skip
        return e.RunStarted(run_id=run_id, at_ns=next(self.clock), **given)

    def run_ended(
        self, run_id: UUID = ROOT, status: Any = "completed", error: BaseException | None = None, **kw: Any
    ) -> e.RunEnded:
        reason = kw.get("reason")
        return e.RunEnded(run_id, "", 1, next(self.clock), "LangGraph", status, None, error, (), reason)

    def step(self, number: int = 1, *, run_id: UUID = ROOT, tasks: int = 1, has_span: bool = False) -> e.SuperstepStarted:
        planned = tuple(e.TaskPlanned(str(i), "n", (), (), None, False, None, ()) for i in range(tasks))
        return e.SuperstepStarted(run_id, "", number, next(self.clock), planned, has_span, "cp-0")

    def step_ended(self, number: int = 1, *, status: Any = "completed", run_id: UUID = ROOT) -> e.SuperstepEnded:
        return e.SuperstepEnded(run_id, "", number, next(self.clock), status, 1, (), "cp-1")

    def task(self, name: str = "a", *, run_id: UUID = ROOT, task_id: str = "", step: int = 1, **kw: Any) -> e.TaskStarted:
        now = next(self.clock)
        given = {
            "path": ("__pregel_pull", name), "triggers": (f"branch:to:{name}",), "input": None, "planned_at_ns": now - 2_500_000,
            "producer_id": None, "caller_id": None, "is_hidden": False, "tags": (), "metadata": None, "has_attempts": False,
        } | kw  # fmt: skip
        return e.TaskStarted(run_id, "", step, now, task_id or f"id-{name}", name, **given)

    def task_ended(
        self, name: str = "a", status: Any = "completed", error: BaseException | None = None, *,
        run_id: UUID = ROOT, task_id: str = "", reason: str | None = None, is_hidden: bool = False,
    ) -> e.TaskEnded:  # fmt: skip
        now = next(self.clock)
        return e.TaskEnded(run_id, "", 1, now, task_id or f"id-{name}", name, status, (), None, error, (), is_hidden, 1, reason)

    def attempt(self, number: int, name: str = "a") -> e.AttemptStarted:
        return e.AttemptStarted(ROOT, "", 1, next(self.clock), f"id-{name}", name, number)

    def attempt_ended(
        self, number: int, error: BaseException | None = None, *, will_retry: bool = False, name: str = "a"
    ) -> e.AttemptEnded:
        return e.AttemptEnded(
            ROOT, "", 1, next(self.clock), f"id-{name}", name, number, error, will_retry, 0.5 if will_retry else 0.0
        )

    def model(self, call_id: int, *, parent: int | None = None, task_id: str = "id-a", **params: Any) -> e.ModelStarted:
        above = UUID(int=parent) if parent is not None else None
        return e.ModelStarted(
            ROOT, "", 1, next(self.clock), task_id, UUID(int=call_id), above, "FakeModel", None, True, [], params, (), {}
        )  # fmt: skip

    def tool(self, call_id: int, *, parent: int | None = None, task_id: str = "id-a") -> e.ToolStarted:
        above = UUID(int=parent) if parent is not None else None
        return e.ToolStarted(
            ROOT, "", 1, next(self.clock), task_id, UUID(int=call_id), above, "lookup",
            {"description": "finds"}, {}, "call-7", (), {},
        )  # fmt: skip

    def tool_ended(self, call_id: int, error: BaseException | None = None, *, task_id: str = "id-a") -> e.ToolEnded:
        return e.ToolEnded(ROOT, "", 1, next(self.clock), task_id, UUID(int=call_id), None, "lookup", "out", error)


def exceptions(span: Any) -> list[str]:
    return [str(ev.attributes["exception.type"]) for ev in span.events if ev.name == "exception"]
