"""One recipe, two libraries, three ways of running it: the same values and the same updates in every superstep."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from bare import read_bare
from colours import ASYNC, SYNC, Colour
from hypothesis import assume, given
from hypothesis import strategies as st
from libraries import oracle, ours
from readings import Oracle, Ours, quiet, read_async, read_sync
from recipe_build import build
from recipe_strategies import recipes
from recipes import Recipe, text_of

LONG = 25
"""The recursion limit that no recipe reaches."""


@given(recipes())
def test_sync_driver_agrees_with_the_oracle(recipe: Recipe) -> None:
    """``invoke`` and ``stream`` give LangGraph's values and updates."""
    expected = read_sync(build(recipe, oracle()), recipe, Oracle)

    read_sync(build(recipe, ours()), recipe, Ours).agrees_with(expected)


@given(recipes())
def test_async_driver_agrees_with_the_oracle(recipe: Recipe) -> None:
    """``ainvoke`` and ``astream`` do too, sync bodies on worker threads among async ones on the loop."""
    expected = read_sync(build(recipe, oracle()), recipe, Oracle)

    read_async(build(recipe, ours(), "async"), recipe, Ours).agrees_with(expected)


@given(recipes(), st.data(), st.booleans(), st.none() | st.integers(1, 3))
def test_bare_engine_agrees_with_the_oracle_in_any_order_of_reports(
    recipe: Recipe, data: st.DataObject, is_eager: bool, max_concurrency: int | None
) -> None:
    """Values do not depend on which report comes first, nor on when bodies run within their superstep."""
    assume(not needs_driver(recipe))
    expected = read_sync(build(recipe, oracle()), recipe, Oracle)

    def choose(waiting: int) -> int:
        return data.draw(st.integers(0, waiting - 1)) if waiting > 1 else 0

    found = read_bare(build(recipe, ours()), recipe, choose, is_eager=is_eager, max_concurrency=max_concurrency)
    found.agrees_with(expected)


@given(recipes(), st.sampled_from([SYNC, ASYNC]))
def test_child_runs_stream_the_same_updates(recipe: Recipe, colour: Colour) -> None:
    """With ``subgraphs=True``, namespaces included; task ids apart, which hang on random run ids."""
    # What a child with an output schema of its own streams is another question: here it shows all its fields.
    open_steps = tuple(replace(step, inner=step.inner and replace(step.inner, output=None)) for step in recipe.steps)
    recipe = replace(recipe, steps=open_steps)
    expected = nested_updates(SYNC, build(recipe, oracle()), recipe)

    found = nested_updates(colour, build(recipe, ours(), colour.name), recipe)

    assert found == expected


def nested_updates(colour: Colour, app: Any, recipe: Recipe) -> Counter[str] | str:
    """Return all updates, with the names of the nodes they come from.

    "failed" if the run did: which error is raised, if two tasks fail, is a race on LangGraph.
    """
    found: Counter[str] = Counter()

    def note(part: Any) -> None:
        ns, update = part
        found["/".join(segment.partition(":")[0] for segment in ns) + text_of(update)] += 1

    config = {"recursion_limit": recipe.recursion_limit}
    with quiet():
        try:
            colour.each(app, recipe.input(), note, config, stream_mode="updates", subgraphs=True)
        except Exception:
            return "failed"
    return found


def needs_driver(recipe: Recipe) -> bool:
    """Say whether a graph that node code invokes inherits a limit it notices: from a driver, and there is none here."""
    called = [step.inner for step in recipe.steps if step.inner is not None and step.use != "node"]
    return any(recipe.recursion_limit != LONG or inner.reads_remaining for inner in called)
