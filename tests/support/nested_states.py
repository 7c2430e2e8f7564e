"""A state with a nested field that has sub-fields of several kinds, and graphs over it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from tracegraph.channels import Nested
from tracegraph.channels.reducers import union
from tracegraph.graph import START, StateGraph


class Inner(TypedDict, total=False):
    a: int
    b: Annotated[int, operator.add]


class Meta(TypedDict, total=False):
    tags: Annotated[set[str], union]
    title: str
    inner: Annotated[Inner, Nested]


class State(TypedDict, total=False):
    x: int
    meta: Annotated[Meta, Nested]


def typed(**fields: Any) -> Any:
    """Return a TypedDict with these fields."""
    return TypedDict("typed", fields)  # type: ignore[operator]


def nested(**fields: Any) -> Any:
    """Return a state schema whose one field, ``meta``, has these sub-fields."""
    return typed(meta=Annotated[typed(**fields), Nested])


def chain(*returned: Any, schema: Any = State, options: Mapping[str, Any] | None = None, **compiling: Any) -> Any:
    """Return a graph whose nodes ``n1``, ``n2``, ... run in turn and return these; functions are nodes themselves."""
    builder: Any = StateGraph(schema, **(options or {}))
    builder.add_sequence([(f"n{at}", body_of(value)) for at, value in enumerate(returned, 1)])
    return builder.add_edge(START, "n1").compile(**compiling)


def side_by_side(*returned: Any, schema: Any = State, **compiling: Any) -> Any:
    """Return a graph whose nodes ``n1``, ``n2``, ... run in one superstep."""
    builder: Any = StateGraph(schema)
    for at, value in enumerate(returned, 1):
        builder.add_node(f"n{at}", body_of(value))
        builder.add_edge(START, f"n{at}")
    return builder.compile(**compiling)


def body_of(value: Any) -> Any:
    """Return *value* if it can be a node, else a node that returns it."""
    return value if callable(value) or hasattr(value, "invoke") else lambda state: value
