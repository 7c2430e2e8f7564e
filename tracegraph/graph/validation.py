"""What is wrong with a graph's definition, found all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tracegraph.constants import BRANCH_PREFIX, END, JOIN_PREFIX, RESERVED_NAMES, START, TASKS
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph.arguments import node_names
from tracegraph.types import All

if TYPE_CHECKING:
    from tracegraph.graph.state import StateGraph

__all__ = ["DEFAULT_HANDLER", "check_checkpointer", "check_definition"]

DEFAULT_HANDLER = "__default_error_handler__"


def check_definition(
    builder: StateGraph[Any, Any, Any, Any],
    *,
    interrupt_before: Sequence[str] | All | None = None,
    interrupt_after: Sequence[str] | All | None = None,
    more: Iterable[str] = (),
) -> None:
    """Raise one GraphDefinitionError with every problem of *builder*, and with those in *more*.

    Unreachable nodes are no problem: a goto or a Send may lead to them.
    """
    problems = [
        *_source_problems(builder),
        *_target_problems(builder),
        *_interrupt_problems(builder, "interrupt_before", interrupt_before),
        *_interrupt_problems(builder, "interrupt_after", interrupt_after),
        *_name_problems(builder),
        *more,
    ]
    if problems:
        raise GraphDefinitionError(*dict.fromkeys(problems))


def check_checkpointer(checkpointer: Any) -> None:
    """Raise TypeError unless *checkpointer* is a saver, True, False or None."""
    if checkpointer is None or isinstance(checkpointer, bool):
        return
    if isinstance(checkpointer, type):
        raise TypeError(f"checkpointer must be a saver, but {checkpointer.__name__} is a class; make an object of it")
    if not (callable(getattr(checkpointer, "get_tuple", None)) and callable(getattr(checkpointer, "put", None))):
        raise TypeError(
            f"checkpointer must be a saver, True, False or None, not {checkpointer!r} (a {type(checkpointer).__name__}); "
            "a saver made by from_conn_string() must be entered first: with ... as saver"
        )


def _known(builder: StateGraph[Any, Any, Any, Any]) -> str:
    return f"known nodes: {', '.join(map(repr, builder.nodes)) or 'none'}"


def _source_problems(builder: StateGraph[Any, Any, Any, Any]) -> Iterator[str]:
    nodes = builder.nodes
    for start, end in sorted(builder.edges):
        if start != START and start not in nodes:
            yield f"the edge from {start!r} to {end!r} starts at a node that does not exist; add {start!r}, {_known(builder)}"
    for source, branches in builder.branches.items():
        if source != START and source not in nodes:
            for name in branches:
                yield (
                    f"the conditional edge {name!r} starts at {source!r}, a node that does not exist; "
                    f"add {source!r}, {_known(builder)}"
                )
    if START not in builder.branches and all(start != START for start, _end in builder.edges):
        first = next((name for name, spec in builder.nodes.items() if not spec.is_error_handler), "first_node")
        yield f"the graph has no entry point, so nothing would run; add an edge from START: add_edge(START, {first!r})"


def _target_problems(builder: StateGraph[Any, Any, Any, Any]) -> Iterator[str]:
    nodes = builder.nodes
    for start, end in sorted(builder.edges):
        if end != END and end not in nodes:
            yield f"the edge from {start!r} to {end!r} ends at a node that does not exist; add {end!r}, {_known(builder)}"
    for source, branches in builder.branches.items():
        for name, branch in branches.items():
            for label, target in (branch.ends or {}).items():
                if target != END and target not in nodes:
                    yield (
                        f"the conditional edge {name!r} of node {source!r} leads to {target!r} (for {label!r}), a node that "
                        f"does not exist; add it, or correct the path_map or the Literal, {_known(builder)}"
                    )
    for node, spec in nodes.items():
        for target in spec.ends or ():
            if target != END and target not in nodes:
                yield (
                    f"node {node!r} declares that it leads to {target!r}, a node that does not exist; add it, or correct "
                    f"destinations= or the Command[Literal[...]] annotation, {_known(builder)}"
                )


def _interrupt_problems(
    builder: StateGraph[Any, Any, Any, Any], argument: str, given: Sequence[str] | All | None
) -> Iterator[str]:
    names = node_names(given)
    for name in () if names == "*" else names:
        if name not in builder.nodes:
            yield f"{argument} names {name!r}, a node that does not exist; {_known(builder)}, or '*' for all"


def _name_problems(builder: StateGraph[Any, Any, Any, Any]) -> Iterator[str]:
    for name in builder.nodes:
        if name in RESERVED_NAMES:
            yield f"{name!r} cannot be the name of a node, for it has a meaning inside runs; rename the node"
    for name in builder.schemas.tree:
        if name in RESERVED_NAMES or name in (START, TASKS) or name.startswith((BRANCH_PREFIX, JOIN_PREFIX)):
            yield f"{name!r} cannot be a field of the state, for it has a meaning inside runs; rename the field"
    if builder.defaults.error_handler is not None and DEFAULT_HANDLER in builder.nodes:
        yield f"node {DEFAULT_HANDLER!r} has the name of the default error handler; rename it, or set no default handler"
