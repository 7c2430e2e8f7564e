"""Node error handlers: when a task has failed for good, its handler runs in the same superstep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracegraph.constants import NODE_ERROR_HANDLER, PUSH
from tracegraph.engine.actions import Decision
from tracegraph.engine.identity import handler_suffix, path_text
from tracegraph.engine.task import Task
from tracegraph.engine.task_limit import count_tasks
from tracegraph.engine.views import task_input
from tracegraph.errors import NodeError
from tracegraph.events import ErrorHandled

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["hand_to_handler"]


def hand_to_handler(engine: Engine, decision: Decision, failed: Task, error: BaseException, at_ns: int) -> bool:
    """Queue the failed task's error handler, if its node has one; say whether it has.

    One that the limit of tasks does not allow leaves the failed task with a TaskLimitError; a resumed run begins with it.
    """
    name = failed.node.error_handler
    if name is None or not isinstance(error, Exception):
        return False
    if engine.failures or engine.handed_over is not None:
        # The run is ending: what is stored of the failure lets the resumed run begin with the handler.
        failed.is_handled = True
        return True
    settings = engine.settings
    path = (*failed.path[:3], NODE_ERROR_HANDLER, False)
    node = engine.topology.nodes[name]
    handler = Task(failed.at, node, path, path_text(path), (PUSH,), handler_suffix(name, failed.id))
    handler.failed = failed
    handler.is_follow_up = True
    handler.is_mapped = failed.is_mapped
    handler.input = task_input(handler)
    handler.handles = NodeError(failed.node.name, error)
    handler.planned_at_ns = at_ns
    is_known = engine.pending.recall(handler)
    if not is_known and (refusal := count_tasks(engine, [handler])) is not None:
        refusal.__cause__ = error
        failed.error = refusal
        return False
    failed.is_handled = True
    failed.writes = []
    engine.tasks.append(handler)
    engine.open_tasks += 1
    if settings.wants & ErrorHandled.bit:
        decision.events.append(
            ErrorHandled(settings.run_id, settings.ns, engine.step, at_ns, failed.id, failed.node.name, name, error)
        )
    if not is_known:
        engine.queue.append(handler)
    else:
        engine.settle(decision, handler, "cached", at_ns)
    return True
