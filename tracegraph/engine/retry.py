"""Which retry policy a failure falls under. The engine does the arithmetic; what decides here is user code."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.engine.task import Task
from tracegraph.types import RetryPolicy

__all__ = ["matching_policy", "policies_of"]


def policies_of(task: Task, default: Sequence[RetryPolicy]) -> Sequence[RetryPolicy]:
    """Return the task's own retry policies, else the graph's; they are never merged."""
    return task.node.retry_policies or default


def matching_policy(task: Task, error: Exception, default: Sequence[RetryPolicy]) -> RetryPolicy | None:
    """Return the first policy whose ``retry_on`` covers *error*; called by drivers, outside the run's lock.

    Raises:
        TypeError: a policy's ``retry_on`` is nothing that can decide.
    """
    return next((policy for policy in policies_of(task, default) if policy.matches(error)), None)
