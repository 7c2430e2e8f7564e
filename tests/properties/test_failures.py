"""Whatever fails on the way: if in the end every task has succeeded, the values are those of a run without failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from colours import ASYNC, SYNC, Colour
from hypothesis import assume, given
from hypothesis import strategies as st
from libraries import ours
from readings import quiet
from recipe_build import build
from recipe_strategies import recipes
from recipes import Recipe, text_of
from tampering import DIRT, Odd, Schedule, Tampering, is_scheduled, schedules

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import failures_of
from tracegraph.types import Durability, RetryPolicy

THREAD: Any = {"configurable": {"thread_id": "1"}}


def stoppable(recipe: Recipe) -> Recipe:
    """Return the recipe without what may have done its work and be stopped all the same.

    A plain function in an async run goes on in its thread; a path that is awaited comes after its node's function.
    """
    steps = tuple(replace(step, is_async=True, inner=step.inner and stoppable(step.inner)) for step in recipe.steps)
    return replace(recipe, steps=steps, branches=tuple(replace(branch, is_async=False) for branch in recipe.branches))


class Ending:
    """How a run without failures ends."""

    def __init__(self, recipe: Recipe, colour: Colour) -> None:
        tampering = Tampering({}, ())
        app = build(recipe, ours(), colour.name, tamper=tampering.at())
        self.updates: Counter[str] = Counter()
        self.values = ""
        self.error: Exception | None = None
        with quiet():
            try:
                for mode, part in colour.stream(app, recipe.input(), stream_mode=["updates", "values"]):
                    if mode == "updates":
                        self.updates[text_of(part)] += 1
                    else:
                        self.values = text_of(part)
            except Exception as error:  # careless recipes fail by themselves
                self.error = error
        self.finished = tampering.finished


def policies_for(*limits: int) -> list[RetryPolicy]:
    """Return policies that between them cover every failure of a schedule; the counts run across them."""
    at_once = RetryPolicy(initial_interval=0, jitter=False)
    odd, rest = limits
    return [at_once._replace(retry_on=Odd, max_attempts=odd), at_once._replace(retry_on=is_scheduled, max_attempts=rest)]


@given(st.data(), st.sampled_from([SYNC, ASYNC]), st.booleans(), st.booleans())
def test_a_run_that_recovers_is_as_if_nothing_had_failed(
    data: st.DataObject, colour: Colour, is_saved: bool, is_live: bool
) -> None:
    """Values, updates, and what was done in the end: of failed attempts only what they sent themselves is seen."""
    # A saved graph that a node calls is found again by the node's next attempt: resumed, so to speak.
    recipe = stoppable(data.draw(recipes(is_resumable=is_saved)))
    expected = Ending(recipe, colour)
    assume(expected.error is None)
    schedule: Schedule = data.draw(schedules(recipe))
    tampering = Tampering(schedule, policies_for(100, 100))
    app = build(recipe, ours(), colour.name, checkpointer=InMemorySaver() if is_saved else None, tamper=tampering.at())
    updates: Counter[str] = Counter()
    values, sent = "", 0

    with quiet():
        for mode, part in colour.stream(
            app, recipe.input(), THREAD if is_saved else None, stream_mode=["updates", "values", *["custom"] * is_live]
        ):
            if mode == "updates":
                updates[text_of(part)] += 1
            elif mode == "values":
                values = text_of(part)
            else:
                assert part == DIRT
                sent += 1

    assert values == expected.values
    assert updates == expected.updates
    # A graph that a node's code calls is called again by the next attempt; it does not run again where it was saved.
    assert tampering.finished.keys() == expected.finished.keys()
    for work, times in tampering.finished.items():
        assert times == expected.finished[work] or (not is_saved and "/" in work.partition(" ")[0])
    assert sent == (sum(count for path, count in tampering.failed.items() if "/" not in path) if is_live else 0)


@given(
    recipes(is_resumable=True),
    st.data(),
    st.sampled_from([SYNC, ASYNC]),
    st.sampled_from(["sync", "async", "exit"]),
    st.none() | st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.none() | st.integers(1, 3),
)
def test_a_run_resumed_until_it_succeeds_is_as_if_nothing_had_failed(
    recipe: Recipe,
    data: st.DataObject,
    colour: Colour,
    durability: Durability,
    limits: tuple[int, int] | None,
    max_concurrency: int | None,
) -> None:
    """Whatever fails for good is done again by the next run, and nothing that had finished is."""
    recipe = stoppable(recipe)
    expected = Ending(recipe, colour)
    assume(expected.error is None)
    schedule: Schedule = data.draw(schedules(recipe))
    tampering = Tampering(schedule, policies_for(*limits) if limits else ())
    app = build(recipe, ours(), colour.name, checkpointer=InMemorySaver(), tamper=tampering.at())
    config = {**THREAD, "max_concurrency": max_concurrency}
    updates: set[str] = set()
    given_input: Any = recipe.input()
    values = None

    with quiet():
        for _ in range(1 + sum(map(len, schedule.values()))):
            try:
                for mode, part in colour.stream(
                    app, given_input, config, stream_mode=["updates", "values"], durability=durability
                ):
                    if mode == "updates":  # one of a task that had finished before says so
                        updates.add(text_of({key: value for key, value in part.items() if key != "__metadata__"}))
                    else:
                        values = text_of(part)
                break
            except Exception as error:
                assert is_scheduled(error), error
                assert all(is_scheduled(other) for other in failures_of(error))
                assert DIRT not in text_of(app.get_state(THREAD).values)
                given_input = None

    assert values == expected.values
    assert updates <= expected.updates.keys()
    assert tampering.finished == expected.finished
