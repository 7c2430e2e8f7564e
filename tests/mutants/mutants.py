"""The seeded mistakes: what to change in which file, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replace *find*, which must occur exactly once in *path* (relative to the package), by *put*."""

    path: str
    find: str
    put: str


@dataclass(frozen=True)
class Mutant:
    """One mistake."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


SAME_VALUES = "tests/properties/test_same_values.py"
ENGINE_FACTS = "tests/properties/test_engine_facts.py"
FAILURES = "tests/properties/test_failures.py"

MUTANTS = (
    Mutant(
        "arrival-order merge",
        (
            Edit("engine/engine.py", "task.result = report.result", "task.result, task.planned_at_ns = report.result, at_ns"),
            Edit("engine/stepping.py", "return task.path_str\n", "return task.planned_at_ns\n"),
        ),
        (SAME_VALUES,),
    ),
    Mutant(
        "lost versions",
        (
            Edit(
                "engine/apply.py",
                "self.versions.update(dict.fromkeys(overlay, version))",
                "self.versions = {**dict.fromkeys(overlay, version), **self.versions}",
            ),
        ),
        (SAME_VALUES,),
    ),
    Mutant(
        "shared snapshot",
        (
            Edit(
                "engine/views.py",
                "= {list: list.copy, dict: dict.copy, set: set.copy, deque: deque.copy}",
                "= {}",
            ),
        ),
        ("tests/cases/test_isolation.py",),
    ),
    Mutant(
        "ids without the step",
        (Edit("engine/identity.py", "{graph_namespace(ns, name)}{step}", "{graph_namespace(ns, name)}"),),
        ("tests/engine/test_identity.py",),
    ),
    Mutant(
        "lost barrier set",
        (Edit("channels/named_barrier_value.py", "seen = state.union(writes)", "seen = frozenset(writes)"),),
        (SAME_VALUES, "tests/cases/test_starved_joins.py"),
    ),
    Mutant(
        "writes applied before the raise",
        (
            Edit(
                "engine/apply.py",
                "overlay[channel] = new\n                if channel in growing:",
                "overlay[channel] = values[channel] = new\n                if channel in growing:",
            ),
        ),
        (ENGINE_FACTS, "tests/cases/test_bad_input.py"),
    ),
    Mutant(
        "an increment of a list that was changed too",
        (Edit("channels/appending.py", "if not is_sum and not all(map(operator.is_, before, after)):", "if False:"),),
        ("tests/channels/test_increments.py", "tests/properties/test_increments.py"),
    ),
    Mutant(
        "rows joined newest first",
        (Edit("checkpoint/sql/values.py", "newest_first[::-1]", "newest_first"),),
        ("tests/properties/test_increments.py", "tests/checkpoint/test_growth.py"),
    ),
    Mutant(
        "a checkpoint that overtakes its writes",
        (Edit("engine/saving.py", "return not self.awaited or self.awaited <= {", "return True or self.awaited <= {"),),
        ("tests/engine/test_engine_by_hand.py",),
    ),
    Mutant(
        "an Overwrite of a nested field that merges",
        (Edit("engine/nesting.py", "for name in self.parts if is_overwrite else [", "for name in ["),),
        ("tests/properties/test_nested_fields.py",),
    ),
    Mutant(
        "a split value that is not saved",
        (Edit("engine/apply.py", "self.changed.update(moved)", "moved.clear()"),),
        ("tests/nested/test_checkpoints.py",),
    ),
    Mutant(
        "a retry that keeps what failed",
        (
            Edit(
                "engine/engine.py",
                "task, error, delay_s, at_ns)\n        task.writes = []",
                "task, error, delay_s, at_ns)\n        task.writes = list(task.writes)",
            ),
        ),
        ("tests/faults/test_retries.py", FAILURES),
    ),
    Mutant(
        "a call that the next attempt makes again",
        (Edit("engine/calls.py", "engine.finished_calls.get(child.id)", "None"),),
        ("tests/func/test_entrypoint.py",),
    ),
    Mutant(
        "a retry that reads what was left",
        (Edit("drivers/calling.py", "if here.attempt > 1:", "if here.attempt > 1000:"),),
        ("tests/faults/test_retries.py", FAILURES),
    ),
    Mutant(
        "finished work that is done again",
        (Edit("engine/pending.py", "if finished and asked.keys()", "if finished and asked and asked.keys()"),),
        (FAILURES,),
    ),
    Mutant(
        "a swallowed cancellation",
        (Edit("drivers/async_driver.py", "if attempt.is_disturbed and", "if not attempt.is_disturbed and"),),
        ("tests/faults/test_cancellation.py",),
    ),
    Mutant(
        "other failures that are lost",
        (Edit("drivers/run.py", "(finish.error, finish.errors[1:],", "(finish.error, finish.errors[2:],"),),
        ("tests/faults/test_failures.py",),
    ),
    Mutant(
        "tasks counted after they were begun",
        (Edit("runtime.py", "if budget.begun + tasks > budget.limit:", "if budget.begun > budget.limit:"),),
        ("tests/limits/test_task_limit.py",),
    ),
    Mutant(
        "finished tasks counted again",
        (Edit("engine/task_limit.py", "and not (engine.is_resuming and (", "and not (False and ("),),
        ("tests/limits/test_task_limit.py",),
    ),
    Mutant(
        "what was added to a list has no size",
        (Edit("engine/state_size.py", "before.added + self._limit.measure(name, items)", "before.added"),),
        ("tests/properties/test_state_size.py",),
    ),
    Mutant(
        "a state refused by the sum of its pieces",
        (
            Edit(
                "engine/state_size.py",
                "exact = {name: _Size(self._whole(name, changed[name])) if size.added else size",
                "exact = {name: _Size(size.total) if size.added else size",
            ),
        ),
        ("tests/properties/test_state_size.py", "tests/limits/test_state_size.py"),
    ),
    Mutant(
        "a state measured once it is changed",
        (
            Edit("engine/apply.py", "if self.size is not None and overlay:", "if False:"),
            Edit(
                "engine/apply.py",
                "self.seen.update(seen)\n        return updated",
                "self.seen.update(seen)\n        if self.size is not None and overlay:\n"
                "            self.size.admit(overlay, self._grown_now, self.versions, self._state)\n        return updated",
            ),
        ),
        ("tests/limits/test_state_size.py",),
    ),
    Mutant(
        "a config that leads nowhere",
        (Edit("pregel/launch.py", "found.is_over else found", "not found.is_over else found"),),
        ("tests/runtime/test_plain_threads.py",),
    ),
    Mutant(
        "any call of one argument taken for len",
        (
            Edit(
                "graph/sparing.py", 'before.opname == "LOAD_GLOBAL" and before.argval == "len"', 'before.opname == "LOAD_GLOBAL"'
            ),
        ),
        ("tests/graph/test_sparing.py",),
    ),
    Mutant(
        "a look that another way leads into",
        (Edit("graph/sparing.py", "and not steps[at].is_jump_target", ""),),
        ("tests/graph/test_sparing.py",),
    ),
    Mutant(
        "a state that a nested function changes",
        (Edit("graph/sparing.py", "if variable in code.co_cellvars or not", "if not"),),
        ("tests/graph/test_sparing.py",),
    ),
    Mutant(
        "a value that leaves as it is when its redactor fails",
        (Edit("telemetry/content/redaction.py", "raise LeftOutError(redactor, where) from error", "redacted = data"),),
        ("tests/telemetry/test_content_redaction.py",),
    ),
    Mutant(
        "characters counted for bytes",
        (Edit("telemetry/content/budget.py", "return len(text.encode())", "return len(text)"),),
        ("tests/telemetry/test_content_budget.py",),
    ),
)
