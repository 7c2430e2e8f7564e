"""The config that a task leaves for LangChain is a dict like any other, made when somebody looks."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tracegraph.drivers.later_config import LaterConfig

ITEMS: dict[str, Any] = {"tags": ["mine"], "metadata": {"n": 1}}
LOOKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "unpacked": lambda config: {**config},
    "as a dict": dict,
    "updated with": lambda config: {"tags": []} | config,
    "updated": lambda config: (found := {}, found.update(config))[0],
    "copied": lambda config: config.copy(),
    "copied by the module": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": lambda config: pickle.loads(pickle.dumps(config)),
    "as JSON of what it has": lambda config: json.loads(json.dumps(dict(config))),
    "by items": lambda config: dict(config.items()),
    "by keys": lambda config: {key: config[key] for key in config},
    "got": lambda config: {key: config.get(key) for key in ITEMS},
    "itself": lambda config: config,
    "merged": lambda config: config | {},
    "shown": lambda config: eval(repr(config)),
    "by keywords": lambda config: (lambda **kwargs: kwargs)(**config),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_it_has_its_items_however_it_is_looked_at(look: Callable[[dict[str, Any]], Any]) -> None:
    assert look(LaterConfig(lambda: dict(ITEMS))) == ITEMS


def test_it_is_made_once_and_only_if_somebody_looks() -> None:
    made: list[int] = []

    def make() -> dict[str, Any]:
        made.append(1)
        return dict(ITEMS)

    config = LaterConfig(make)
    assert not made
    assert bool(config)
    assert len(config) == 2
    assert "tags" in config
    assert made == [1]


def test_what_is_changed_stays_changed() -> None:
    config = LaterConfig(lambda: dict(ITEMS))
    config["tags"] = ["yours"]
    assert config.pop("metadata") == {"n": 1}
    assert config == {"tags": ["yours"]}


def test_a_thread_that_looks_while_another_makes_the_items_finds_them_too() -> None:
    is_making, may_end = threading.Event(), threading.Event()

    def make() -> dict[str, object]:
        if not is_making.is_set():
            is_making.set()
            assert may_end.wait(30)
        return {"tags": ["mine"]}

    config = LaterConfig(make)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(config.get, "tags")
        assert is_making.wait(30)
        try:
            assert config.get("tags") == ["mine"]
        finally:
            may_end.set()
        assert first.result(30) == ["mine"]
