"""What stays true of a bare engine whatever the graph and the order of reports (design, section 5)."""

from __future__ import annotations

from typing import Any

import pytest
from bare import BareRun, Choose, Stopped
from event_log import assert_well_nested
from hypothesis import assume, given
from hypothesis import strategies as st
from libraries import ours
from recipe_build import build
from recipe_strategies import recipes
from recipes import Recipe, text_of

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.engine.reports import Report
from tracegraph.engine.task import Task
from tracegraph.types import Durability

pytestmark = pytest.mark.filterwarnings("ignore::tracegraph.errors.TracegraphWarning")  # a drawn join may well starve
THREAD = {"thread_id": "1"}
MERGED = ("text", "log", "mix")
"""Kinds of field whose reducer raises when it is given a Poison."""


class Poison:
    """A value that no reducer can take."""


class PoisonedRun(BareRun):
    """Spoils one write of one task, and keeps what the channels held before the report that ends a superstep."""

    victim: tuple[int, str]
    """Which of the tasks that ran, and which channel of it."""
    before_report: tuple[Any, ...] = ()

    def wrote(self, task: Task) -> None:
        number, channel = self.victim
        if len(self.ran) == number:
            task.writes = [(name, Poison() if name == channel else value) for name, value in task.writes]

    def before(self, report: Report) -> None:
        self.before_report = self.channels()

    def channels(self) -> tuple[Any, ...]:
        """Return a copy of all that a superstep may change."""
        store = self.engine.store
        return (
            dict(store.values),
            dict(store.states),
            dict(store.versions),
            {k: dict(v) for k, v in store.seen.items()},
            store.top,
        )


def chooser(data: st.DataObject) -> Choose:
    """Return a choice of reports that hypothesis draws."""
    return lambda waiting: data.draw(st.integers(0, waiting - 1)) if waiting > 1 else 0


@given(recipes(), st.data())
def test_a_reducer_that_raises_changes_nothing(recipe: Recipe, data: st.DataObject) -> None:
    """The failed superstep leaves values, raw states, versions and what nodes have seen exactly as they were."""
    app = build(recipe, ours())
    whole = BareRun(app, recursion_limit=recipe.recursion_limit)
    whole.run(recipe.input())
    merged = {f.name for f in recipe.fields if f.kind in MERGED}
    victims = [
        (number, channel)
        for number, task in enumerate(whole.ran, 1)
        for channel, _ in task.writes
        if channel in merged and task.name != "__start__"
    ]
    assume(victims)
    run = PoisonedRun(app, choose=chooser(data), recursion_limit=recipe.recursion_limit, is_eager=data.draw(st.booleans()))
    run.victim = data.draw(st.sampled_from(victims))

    end = run.run(recipe.input())

    error = end.error
    assume(isinstance(error, TypeError))  # else another task ran as that number, or an Overwrite swallowed the write
    assert end.status == "failed"
    assert run.channels() == run.before_report
    assert any(repr(run.victim[1]) in note for note in getattr(error, "__notes__", ()))
    assert_well_nested(run.events)


@given(recipes(is_resumable=True), st.data(), st.sampled_from(["sync", "async"]), st.none() | st.integers(1, 3))
def test_a_run_stopped_after_any_report_goes_on_to_the_same_end(
    recipe: Recipe, data: st.DataObject, durability: Durability, max_concurrency: int | None
) -> None:
    """Stopped again and again, it ends with the same values, and no task whose writes were stored runs again."""
    app = build(recipe, ours())
    options: Any = {"durability": durability, "config": THREAD, "max_concurrency": max_concurrency}
    whole = BareRun(app, saver=InMemorySaver(), **options)
    expected = whole.run(recipe.input())
    assume(expected.status != "step_limit")  # each resumed run has a limit of its own
    saver = InMemorySaver()
    saved: set[str] = set()
    ran: set[str] = set()
    left = whole.report_count
    end = None

    while end is None:
        stop_after = data.draw(st.integers(1, left) | st.none())
        run = BareRun(app, saver=saver, choose=chooser(data), stop_after=stop_after, is_eager=data.draw(st.booleans()), **options)
        try:
            end = run.run(recipe.input())
        except Stopped:
            left = max(left - run.report_count, 1)
        ids = [task.id for task in run.ran]
        assert not saved & set(ids)
        saved |= run.saved_ids
        ran.update(ids)

    assert (end.status, text_of(end.output), type(end.error)) == (expected.status, text_of(expected.output), type(expected.error))
    # Checkpoint ids are the same in both threads, so the ids of the tasks are.
    assert ran == {task.id for task in whole.ran}


@given(recipes(), st.data(), st.booleans(), st.none() | st.integers(1, 3))
def test_events_of_a_bare_run_are_well_nested(
    recipe: Recipe, data: st.DataObject, is_eager: bool, max_concurrency: int | None
) -> None:
    """Tasks lie in supersteps, each that started ended once, and time does not run backwards."""
    run = BareRun(
        build(recipe, ours()),
        choose=chooser(data),
        is_eager=is_eager,
        max_concurrency=max_concurrency,
        recursion_limit=recipe.recursion_limit,
    )

    run.run(recipe.input())

    assert_well_nested(run.events)


@given(recipes(), st.data())
def test_no_more_tasks_are_at_work_than_max_concurrency(recipe: Recipe, data: st.DataObject) -> None:
    """The engine hands out at most that many, and all the same ones in the end."""
    app = build(recipe, ours())
    limit = data.draw(st.integers(1, 3))
    free = BareRun(app, recursion_limit=recipe.recursion_limit)
    assume(free.run(recipe.input()).error is None)  # else the limit decides which tasks begin at all
    peak = 0

    class Watched(BareRun):
        def before(self, report: Report) -> None:
            nonlocal peak
            peak = max(peak, sum(task.is_running for task in self.engine.tasks))

    run = Watched(app, choose=chooser(data), max_concurrency=limit, recursion_limit=recipe.recursion_limit)
    run.run(recipe.input())

    assert peak <= limit
    assert {task.id for task in run.ran} == {task.id for task in free.ran}
