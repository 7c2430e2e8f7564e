"""Ids of pending questions, which an answer is matched by.

LangGraph's older versions gave all questions of a task one id, made from the task's namespace, and matched answers by their
order. Now, as here, the id also says how many answers the task had. A question that follows an answered one would
otherwise be taken for the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracegraph.constants import BRANCH_PREFIX, ERROR, INTERRUPT, RESUME, TASKS, UNFINISHED_WRITES
from tracegraph.engine.identity import interrupt_id, task_namespace
from tracegraph.interop.langgraph.stored import Stored, StoredWrite
from tracegraph.types import Interrupt, Send

__all__ = ["new_question_ids", "renumber"]


def new_question_ids(stored: Stored, old_ids: set[str]) -> dict[str, str]:
    """Return the new ids of questions that unfinished tasks ask after an answer; *old_ids* were stored by older versions."""
    tasks: dict[str, dict[str, StoredWrite]] = {}
    for write in stored.writes:
        tasks.setdefault(write.task_id, {})[write.channel] = write
    found = {}
    for task_id, writes in tasks.items():
        is_open = writes.keys() <= UNFINISHED_WRITES - {ERROR} and {INTERRUPT, RESUME} <= writes.keys()
        if not is_open:
            continue
        answered = writes[RESUME].value
        answers = len(answered) if isinstance(answered, (list, tuple)) else 1
        for question in _questions(writes[INTERRUPT]):
            ns = next((ns for ns in _namespaces(stored, task_id) if interrupt_id(ns, 0) == question.id), None)
            if ns is not None and question.id in old_ids:
                found[question.id] = interrupt_id(ns, answers)
    return found


def renumber(stored: Stored, new_ids: Mapping[str, str]) -> None:
    """Change the ids; tasks around a subgraph repeat its questions."""
    for write in stored.writes:
        if write.channel == INTERRUPT:
            for question in _questions(write):
                question.id = new_ids.get(question.id, question.id)


def _questions(write: StoredWrite) -> list[Interrupt]:
    return [held for held in write.value if isinstance(held, Interrupt)] if isinstance(write.value, (list, tuple)) else []


def _namespaces(stored: Stored, task_id: str) -> Iterable[str]:
    """Yield the namespaces that a task may have: rows do not say which node it is one of."""
    checkpoint = stored.checkpoint
    triggered = (name.removeprefix(BRANCH_PREFIX) for name in checkpoint["channel_versions"] if name.startswith(BRANCH_PREFIX))
    sends = checkpoint["channel_values"].get(TASKS)
    sent = (send.node for send in sends if isinstance(send, Send)) if isinstance(sends, (list, tuple)) else ()
    for node in {*checkpoint["versions_seen"], *triggered, *sent}:
        yield task_namespace(stored.place.ns, node, task_id)
