"""The typed form of a config."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any
from uuid import UUID

import pytest

from tracegraph.config import RunSpec, ensure_config
from tracegraph.constants import DEFAULT_RECURSION_LIMIT
from tracegraph.errors import InvalidInputError


def test_empty_config_has_defaults() -> None:
    """Nothing set: the default limit, known as such, and the root namespace."""
    spec = RunSpec.of(ensure_config())
    assert (spec.recursion_limit, spec.is_limit_set) == (DEFAULT_RECURSION_LIMIT, False)
    assert (spec.thread_id, spec.checkpoint_ns, spec.checkpoint_id, dict(spec.checkpoint_map)) == (None, "", None, {})
    assert (spec.tags, dict(spec.metadata), spec.callbacks, spec.run_id, spec.max_concurrency) == ((), {}, None, None, None)


def test_explicit_default_limit_counts_as_set() -> None:
    """What the user set counts (D13)."""
    assert RunSpec.of({"recursion_limit": DEFAULT_RECURSION_LIMIT}).is_limit_set


def test_fields_are_read_from_their_places() -> None:
    """Ids are text, whatever the user passed."""
    config: Any = {
        "tags": ["a"], "run_name": "r", "run_id": UUID(int=7), "max_concurrency": 2, "recursion_limit": 3,
        "configurable": {"thread_id": 7, "checkpoint_ns": "n", "checkpoint_id": "c", "checkpoint_map": {"": "c"}, "k": 1},
    }  # fmt: skip
    spec = RunSpec.of(config)
    assert (spec.tags, spec.run_name, spec.run_id, spec.max_concurrency, spec.recursion_limit) == (("a",), "r", UUID(int=7), 2, 3)
    assert (spec.thread_id, spec.checkpoint_ns, spec.checkpoint_id, spec.checkpoint_map) == ("7", "n", "c", {"": "c"})
    assert spec.configurable["k"] == 1


def test_a_spec_cannot_be_changed() -> None:
    """It is shared by all parts of a run."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunSpec.of({}).run_name = "x"  # type: ignore[misc]


@pytest.mark.parametrize("config", [{"recursion_limit": 0}, {"recursion_limit": -1}, {"max_concurrency": 0}])
def test_limits_below_one_are_refused(config: Any) -> None:
    """A run that may do nothing is a mistake, and a ValueError."""
    with pytest.raises(InvalidInputError, match="must be at least 1"):
        RunSpec.of(config)


def test_run_id_may_be_text_but_must_be_a_uuid() -> None:
    """It becomes the id of a trace's root run."""
    assert RunSpec.of({"run_id": str(UUID(int=7))}).run_id == UUID(int=7)  # type: ignore[typeddict-item]
    with pytest.raises(InvalidInputError, match="run_id must be a UUID, not 'nope'"):
        RunSpec.of({"run_id": "nope"})  # type: ignore[typeddict-item]


@pytest.mark.parametrize("name", ["TRACEGRAPH_DEFAULT_RECURSION_LIMIT", "LANGGRAPH_DEFAULT_RECURSION_LIMIT"])
def test_environment_sets_the_default_limit(name: str) -> None:
    """Read once, when the module is imported; it is no explicit limit."""
    code = "from tracegraph.config import RunSpec; s = RunSpec.of({}); print(s.recursion_limit, s.is_limit_set)"
    done = subprocess.run([sys.executable, "-c", code], env={name: "12"}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12", "False"]


def test_nonsense_in_the_environment_is_named() -> None:
    """The error says which variable."""
    env = {"TRACEGRAPH_DEFAULT_RECURSION_LIMIT": "many"}
    done = subprocess.run(
        [sys.executable, "-c", "import tracegraph.config"], env=env, capture_output=True, text=True, check=False
    )
    assert "TRACEGRAPH_DEFAULT_RECURSION_LIMIT must be a whole number, not 'many'" in done.stderr
