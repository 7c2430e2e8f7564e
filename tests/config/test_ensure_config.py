"""Merging configs (spec 10.2, 10.3; K1, K2, K3, K12; D13, D14)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tracegraph.callbacks import CallbackManager
from tracegraph.config import (
    ensure_config,
    get_config,
    get_store,
    get_stream_writer,
    merge_callbacks,
    merge_configs,
    patch_config,
)
from tracegraph.current import CURRENT


class Here:
    """Stands for the record of a running task."""

    def __init__(self, config: dict[str, Any], **runtime: Any) -> None:
        self._config = config
        self.runtime = SimpleNamespace(**runtime)

    def config(self) -> dict[str, Any]:
        return self._config


@contextmanager
def inside(config: dict[str, Any], **runtime: Any) -> Iterator[None]:
    token = CURRENT.set(Here(config, **runtime))
    try:
        yield
    finally:
        CURRENT.reset(token)


def test_without_config_and_run_everything_is_empty_and_no_limit_is_set() -> None:
    """Nobody said anything, so there is nothing but the containers."""
    assert ensure_config() == {"tags": [], "metadata": {}, "callbacks": None, "configurable": {}}
    assert ensure_config(None, {}) == ensure_config()


def test_unknown_top_level_keys_move_into_configurable() -> None:
    """A user may pass own keys without the configurable level."""
    assert ensure_config({"user": "u1", "configurable": {"lang": "en"}})["configurable"] == {"user": "u1", "lang": "en"}  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize("limit", [5, 10007])
def test_an_explicit_limit_is_kept_also_if_it_equals_the_default(limit: int) -> None:
    """What the user set counts (D13)."""
    assert ensure_config({"recursion_limit": limit})["recursion_limit"] == limit


def test_bound_default_limit_beats_the_limit_of_the_run_around() -> None:
    """The limit bound to an inner graph is explicit, the outer run's is inherited (C20)."""
    bound = merge_configs({"recursion_limit": 10007}, None)
    with inside({"recursion_limit": 5}):
        assert ensure_config(bound)["recursion_limit"] == 10007
        assert ensure_config()["recursion_limit"] == 5


def test_nested_call_without_config_inherits_all_but_name_and_id() -> None:
    """Name and id are those of the outer run alone."""
    ambient = {
        "tags": ["a"], "metadata": {"m": 1}, "callbacks": ["h"], "max_concurrency": 3, "recursion_limit": 7,
        "configurable": {"thread_id": "1", "k": 2}, "run_name": "outer", "run_id": "x",
    }  # fmt: skip
    with inside(ambient):
        config = ensure_config(None)

    assert config == {
        "tags": ["a"], "metadata": {"m": 1, "thread_id": "1"}, "callbacks": ["h"], "max_concurrency": 3, "recursion_limit": 7,
        "configurable": {"thread_id": "1", "k": 2},
    }  # fmt: skip


def test_inherited_containers_are_copies() -> None:
    """A nested call that changes its config leaves the node's alone."""
    ambient: dict[str, Any] = {"tags": ["a"], "metadata": {"m": 1}, "callbacks": [1], "configurable": {"k": 2}}
    with inside(ambient):
        config = ensure_config()
    config["tags"].append("b")
    config["metadata"]["n"] = 1
    config["callbacks"].append(2)
    config["configurable"]["j"] = 1

    assert ambient == {"tags": ["a"], "metadata": {"m": 1}, "callbacks": [1], "configurable": {"k": 2}}


def test_explicit_configurable_is_merged_over_the_ambient_one() -> None:
    """Without an address of its own a call stays part of the run around it."""
    with inside({"configurable": {"u": 1, "thread_id": "1"}}):
        assert ensure_config({"configurable": {"y": 2}})["configurable"] == {"u": 1, "thread_id": "1", "y": 2}


@pytest.mark.parametrize(
    "address", [{"thread_id": "1"}, {"checkpoint_ns": "x"}, {"checkpoint_id": "c"}, {"checkpoint_map": {"": "c"}}]
)
def test_own_address_drops_the_ambient_configurable_but_not_tags_and_metadata(address: dict[str, Any]) -> None:
    """A call with its own address is an independent run, on the same thread, too."""
    with inside({"configurable": {"u": 1, "thread_id": "1"}, "tags": ["a"], "metadata": {"m": 1}, "callbacks": ["h"]}):
        config = ensure_config({"configurable": {"y": 2, **address}})

    assert config["configurable"] == {"y": 2, **address}
    assert (config["tags"], config["metadata"]["m"], config["callbacks"]) == (["a"], 1, ["h"])


def test_metadata_follows_the_thread_of_a_call_with_its_own() -> None:
    """Otherwise traces of the inner run are filed under the outer conversation (D14, C21)."""
    ambient = {
        "configurable": {"thread_id": "outer"},
        "metadata": {"thread_id": "outer", "checkpoint_id": "c", "checkpoint_ns": "n", "m": 1},
    }
    with inside(ambient):
        config = ensure_config({"configurable": {"thread_id": "inner"}})

    assert config["metadata"] == {"thread_id": "inner", "m": 1}


def test_metadata_the_call_itself_gives_is_kept() -> None:
    """Only what was inherited is replaced."""
    with inside({"configurable": {"thread_id": "outer"}, "metadata": {"thread_id": "outer"}}):
        config = ensure_config({"configurable": {"thread_id": "inner"}, "metadata": {"thread_id": "mine"}})

    assert config["metadata"]["thread_id"] == "mine"


def test_ids_in_configurable_show_up_in_metadata() -> None:
    """Truthy ids are copied, other user keys are not."""
    config = ensure_config({"configurable": {"thread_id": "1", "checkpoint_id": None, "graph_id": "g", "secret": "s"}})
    assert config["metadata"] == {"thread_id": "1", "graph_id": "g"}


def test_tags_already_inherited_are_not_repeated() -> None:
    """Tags are compared with the ambient ones only."""
    with inside({"tags": ["a"]}):
        assert ensure_config({"tags": ["a", "b"]}, {"tags": ["b"]})["tags"] == ["a", "b", "b"]


def test_metadata_merges_at_the_top_and_lc_versions_one_level_deeper() -> None:
    """Integrations add their versions to one dict."""
    config = ensure_config(
        {"metadata": {"x": {"a": 1}, "lc_versions": {"p": 1}}}, {"metadata": {"x": {"b": 1}, "lc_versions": {"q": 2}}}
    )
    assert config["metadata"] == {"x": {"b": 1}, "lc_versions": {"p": 1, "q": 2}}


def test_empty_values_override_nothing() -> None:
    """None and empty containers mean: nothing said."""
    config = ensure_config({"run_name": "n", "max_concurrency": 2}, {"run_name": None, "tags": [], "max_concurrency": None})
    assert (config["run_name"], config["max_concurrency"]) == ("n", 2)


def test_given_configs_are_not_changed() -> None:
    """The caller's dicts are read only."""
    given: Any = {"tags": ["a"], "metadata": {"m": 1}, "configurable": {"thread_id": "1"}, "callbacks": [1]}
    ensure_config(given, {"tags": ["b"], "metadata": {"n": 1}, "configurable": {"k": 1}, "callbacks": [2]})
    assert given == {"tags": ["a"], "metadata": {"m": 1}, "configurable": {"thread_id": "1"}, "callbacks": [1]}


def test_handlers_given_to_a_nested_call_join_the_inherited_manager_as_inheritable() -> None:
    """The manager of the node is copied, not changed."""
    outer, inner = object(), object()
    manager = CallbackManager([outer], [outer])
    with inside({"callbacks": manager}):
        callbacks = ensure_config({"callbacks": [inner, outer]})["callbacks"]

    assert callbacks.inheritable_handlers == [outer, inner]
    assert manager.handlers == [outer]


def test_merge_configs_concatenates_tags_and_lists_of_handlers() -> None:
    """Repeated tags stay, configurable is merged and always there."""
    merged = merge_configs({"tags": ["a"], "callbacks": [1]}, None, {"tags": ["a"], "callbacks": [2]}, {"configurable": {"k": 1}})
    assert merged == {"tags": ["a", "a"], "callbacks": [1, 2], "configurable": {"k": 1}}
    assert merge_configs() == {"configurable": {}}


def test_merge_configs_lets_the_later_one_win() -> None:
    """Limits and names are overwritten, configurable key by key."""
    merged = merge_configs(
        {"recursion_limit": 5, "run_name": "a", "configurable": {"x": 1, "y": 1}},
        {"recursion_limit": 10007, "run_name": "b", "configurable": {"y": 2}},
    )
    assert merged == {"recursion_limit": 10007, "run_name": "b", "configurable": {"x": 1, "y": 2}}


def test_merging_a_list_with_a_manager_gives_a_manager_with_all_handlers() -> None:
    """In both orders, and neither argument is changed."""
    one, two = object(), object()
    manager = CallbackManager([one], [one], tags=["t"])

    for merged in (
        merge_configs({"callbacks": manager}, {"callbacks": [two]}),
        merge_configs({"callbacks": [two]}, {"callbacks": manager}),
    ):
        assert set(merged["callbacks"].inheritable_handlers) == {one, two}
        assert merged["callbacks"].tags == ["t"]
    assert manager.handlers == [one]


def test_merging_two_managers_unites_them_and_keeps_the_first_parent() -> None:
    """Handlers and tags do not repeat."""
    from uuid import UUID

    one, two = object(), object()
    first = CallbackManager([one], [one], UUID(int=1), tags=["a"], metadata={"x": 1})
    second = CallbackManager([one, two], [two], UUID(int=2), tags=["a", "b"], inheritable_metadata={"y": 2})

    merged = merge_configs({"callbacks": first}, {"callbacks": second})["callbacks"]

    assert (merged.handlers, merged.inheritable_handlers) == ([one, two], [one, two])
    assert (merged.parent_run_id, merged.tags) == (UUID(int=1), ["a", "b"])
    assert (merged.metadata, merged.inheritable_metadata) == ({"x": 1}, {"y": 2})


def test_new_callbacks_take_name_and_id_away() -> None:
    """They belonged to the parent run."""
    config: Any = {"run_name": "n", "run_id": "i", "tags": ["a"], "configurable": {"a": 1}}
    patched = patch_config(config, callbacks=[1], configurable={"b": 2})
    assert patched == {"tags": ["a"], "callbacks": [1], "configurable": {"a": 1, "b": 2}}
    assert config["run_name"] == "n"


def test_patch_replaces_the_other_keys() -> None:
    """Only what is given changes."""
    patched = patch_config({"recursion_limit": 3, "tags": ["a"]}, recursion_limit=4, max_concurrency=2, run_name="r")
    assert patched == {"recursion_limit": 4, "tags": ["a"], "max_concurrency": 2, "run_name": "r"}
    assert patch_config(None) == {}


def test_helpers_read_the_running_task() -> None:
    """get_config is the very object, store and writer come from the runtime."""
    config: dict[str, Any] = {"configurable": {}}
    store, writer = object(), print
    with inside(config, store=store, stream_writer=writer):
        assert get_config() is config
        assert get_store() is store
        assert get_stream_writer() is writer


@pytest.mark.parametrize("helper", [get_config, get_store, get_stream_writer])
def test_helpers_outside_a_run_say_so(helper: Any) -> None:
    """There is nothing to return."""
    with pytest.raises(RuntimeError, match="outside a run"):
        helper()


def test_empty_callbacks_add_nothing_and_copies_are_returned() -> None:
    """The caller's list or manager is never handed on as it is."""
    given, manager = [1], CallbackManager([1])
    assert merge_callbacks(given, []) is given
    assert merge_callbacks(None, given) == given
    assert merge_callbacks(None, given) is not given
    copy = merge_callbacks([], manager)
    assert copy is not manager
    assert copy.handlers == [1]


def test_merge_configs_merges_metadata() -> None:
    """Later keys win."""
    assert merge_configs({"metadata": {"a": 1, "b": 1}}, {"metadata": {"b": 2}})["metadata"] == {"a": 1, "b": 2}
