"""The lists of public names say the truth."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import tracegraph

PUBLIC_MODULES = (
    "tracegraph.callbacks",
    "tracegraph.channels",
    "tracegraph.checkpoint.base",
    "tracegraph.checkpoint.memory",
    "tracegraph.checkpoint.sqlite",
    "tracegraph.checkpoint.sqlite.aio",
    "tracegraph.config",
    "tracegraph.constants",
    "tracegraph.errors",
    "tracegraph.events",
    "tracegraph.func",
    "tracegraph.graph",
    "tracegraph.interop.langgraph",
    "tracegraph.managed",
    "tracegraph.messages",
    "tracegraph.pregel",
    "tracegraph.runtime",
    "tracegraph.stream",
    "tracegraph.stream.transformers",
    "tracegraph.telemetry",
    "tracegraph.telemetry.content",
    "tracegraph.types",
    "tracegraph.typing",
    "tracegraph.version",
    "tracegraph_exporters",
    "tracegraph_exporters.console",
    "tracegraph_exporters.sqlite",
)


def public_module(name: str) -> ModuleType:
    return import_module(name)


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_every_listed_name_exists(name: str) -> None:
    """`from module import *` works and nothing is listed twice."""
    module = public_module(name)

    assert [public for public in module.__all__ if not hasattr(module, public)] == []
    assert len(module.__all__) == len(set(module.__all__))


@pytest.mark.parametrize("name", [name for name in PUBLIC_MODULES if hasattr(public_module(name), "__path__")])
def test_a_package_lists_all_that_it_offers(name: str) -> None:
    """A package's `__init__` imports names only to offer them."""
    module = public_module(name)

    assert {public for public in vars(module) if _is_offered(module, public)} <= set(module.__all__)


def _is_offered(module: ModuleType, name: str) -> bool:
    value: Any = getattr(module, name)
    home = getattr(value, "__module__", module.__name__)
    is_imported_tool = not str(home).startswith("tracegraph") or inspect.ismodule(value) or name == "annotations"
    return not (name.startswith("_") or name.isupper() or is_imported_tool)


def test_the_first_page_s_names_come_from_where_they_live() -> None:
    """Each lazily loaded name is the very object of its own module."""
    offered = {name: getattr(tracegraph, name) for name in tracegraph.__all__}

    assert offered["StateGraph"] is import_module("tracegraph.graph").StateGraph
    assert offered["interrupt"] is import_module("tracegraph.types").interrupt
    assert set(tracegraph.__all__) <= set(dir(tracegraph))


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    """The lazy module fails like any other module."""
    with pytest.raises(AttributeError, match="no attribute 'StateGraff'"):
        _ = tracegraph.StateGraff  # type: ignore[attr-defined]
