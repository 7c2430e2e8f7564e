"""Finds the compiled graph that a node runs: its body, a step of it, or what its function refers to.

Only ``get_subgraphs``, ``get_state(subgraphs=True)`` and drawings ask; running a subgraph needs no discovery.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import Any

from tracegraph.constants import MISSING
from tracegraph.graph.annotations import runnable_steps
from tracegraph.pregel import Pregel

__all__ = ["find_subgraph"]

_NAME_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_LOCAL_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
_ATTRIBUTE_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_FILLERS = frozenset({"CACHE", "PUSH_NULL"})

_OWNER = ""
"""Stands for ``self`` at the start of a chain."""

Chain = tuple[str, ...]
"""A name and the attributes read from it: ``("graphs", "research", "invoke")``."""


def find_subgraph(action: Any) -> Pregel | None:
    """Return the first compiled graph that *action* is or refers to; one with ``checkpointer=False`` does not count."""
    seen: list[Any] = [action]
    for candidate in seen:
        if isinstance(candidate, Pregel):
            if candidate.checkpointer is not False:
                return candidate
        elif (steps := runnable_steps(candidate)) is not None:
            seen.extend(steps)
        else:
            for found in _references(candidate):
                if isinstance(found, Pregel) and found.checkpointer is not False:
                    return found
    return None


def _references(action: Any) -> Iterator[Any]:
    """Yield the objects that the code of a function, method, callable object or RunnableLambda refers to."""
    function, owner = _function_and_owner(action)
    if function is None:
        return
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for first, *attributes in _chains(code, code.co_varnames[0] if owner is not MISSING and code.co_argcount else None):
        if first == _OWNER:
            value = owner
        elif first in cells:
            value = _content(cells[first])
        else:
            value = function.__globals__.get(first, MISSING)
        yield value
        for name in attributes:
            # Looked up without running code: a property may do anything.
            value = inspect.getattr_static(value, name, MISSING)
            yield value


def _function_and_owner(action: Any) -> tuple[FunctionType | None, Any]:
    """Return the function that runs when *action* is called, and the object that is its ``self``, if any."""
    while isinstance(action, functools.partial):
        action = action.func
    if not inspect.isroutine(action) and callable(getattr(action, "invoke", None)):
        # A RunnableLambda keeps its function here; other Runnables show nothing of their inside.
        action = getattr(action, "func", None) or getattr(action, "afunc", None)
    if isinstance(action, MethodType):
        return _unwrapped(action.__func__), action.__self__
    if (function := _unwrapped(action)) is not None:
        return function, MISSING
    call = getattr(type(action), "__call__", None)  # noqa: B004  # the function is wanted, not whether there is one
    return _unwrapped(call), action


def _unwrapped(action: Any) -> FunctionType | None:
    action = inspect.unwrap(action) if callable(action) else action
    return action if isinstance(action, FunctionType) else None


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING


@lru_cache(maxsize=4096)
def _chains(code: CodeType, owner: str | None, *, is_nested: bool = False) -> tuple[Chain, ...]:
    """Return the names that *code* and the functions inside it load, each with the attributes read from it, in order.

    *owner* is the parameter that holds ``self`` in the outermost function; loading it starts a chain too.
    """
    chains: list[Chain] = [()]
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if instruction.opname in _NAME_LOADS:
            chains.append((_OWNER if name == owner else name,))
        elif instruction.opname in _LOCAL_LOADS and name == owner and not is_nested:
            chains.append((_OWNER,))
        elif instruction.opname in _ATTRIBUTE_LOADS and chains[-1]:
            chains[-1] = (*chains[-1], name)
        elif instruction.opname not in _FILLERS:
            chains.append(())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            chains.extend(_chains(constant, owner, is_nested=True))
    return tuple(dict.fromkeys(chain for chain in chains if chain))
