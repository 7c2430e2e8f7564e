"""The recipes themselves: on LangGraph alone, so that a disagreement later is not the recipe's fault."""

from __future__ import annotations

from hypothesis import given
from libraries import oracle
from readings import Oracle, read_async, read_sync
from recipe_build import build
from recipe_strategies import recipes
from recipes import Recipe


@given(recipes())
def test_a_recipe_gives_the_oracle_the_same_run_each_time_and_in_both_colours(recipe: Recipe) -> None:
    """Whatever a recipe describes is deterministic, else it could not be compared."""
    first = read_sync(build(recipe, oracle()), recipe, Oracle)

    read_sync(build(recipe, oracle()), recipe, Oracle).agrees_with(first)
    read_async(build(recipe, oracle(), "async"), recipe, Oracle).agrees_with(first)
