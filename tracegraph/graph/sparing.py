"""Which values a function is seen to leave as they are, so that no private copy of them need be made for it.

A list of ten thousand messages costs some 25 us to copy, as much as half a superstep, and most nodes and path functions
look at its last item or not at all. What a function does with its state is read from its bytecode. Only a few forms of reading
are known here, and anything else means that the value is copied: to be wrong on that side costs time and nothing more. Out of
scope is code that looks at its caller's frame, and code that is exchanged after the graph was compiled.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from tracegraph.engine.nesting import NestedKeys

__all__ = ["spared_keys"]

_NONE: Final[frozenset[str]] = frozenset()
_LOADS: Final = ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK")
_CONSTANTS: Final = ("LOAD_CONST", "LOAD_SMALL_INT")
_FILLERS: Final = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL")
_SEES_VARIABLES: Final = frozenset({"locals", "vars", "dir", "eval", "exec", "currentframe", "_getframe", "f_locals"})
"""Names of what could get hold of the state without its variable being mentioned."""


def spared_keys(function: Any, keys: str | Sequence[str]) -> frozenset[str]:
    """Return those of *keys* whose values *function* neither changes nor hands on; its first parameter is a dict of them.

    It may take an item or a slice by a constant, or ask for the ``len``; or not touch the value at all. What it iterates is
    copied, for whoever else has the value may add to it meanwhile.

    >>> sorted(spared_keys(lambda state: len(state["log"]) > 3 and state["log"][-1] == state["user"], ("log", "user", "notes")))
    ['log', 'notes']
    >>> spared_keys(lambda state: state["log"].append("!"), ("log",))
    frozenset()
    """
    code, variable = _body(function)
    if code is None or isinstance(keys, (str, NestedKeys)):
        return _NONE
    if variable in code.co_cellvars or _sees_variables(code):
        return _NONE
    is_len = _has_plain_len(function)
    steps = [step for step in dis.get_instructions(code) if step.opname not in _FILLERS]
    touched: set[str] = set()
    for at in _mentions(steps, variable):
        key = _key_read(steps, at)
        if key is None:
            return _NONE
        if not _only_looks(steps, at, is_len=is_len):
            touched.add(key)
    return frozenset(keys) - touched


def _body(function: Any) -> tuple[CodeType | None, str]:
    """Return a plain function's code, and the name of the parameter that is the state."""
    position = 0
    if type(function) is MethodType:
        function, position = function.__func__, 1
    if type(function) is not FunctionType or function.__code__.co_argcount <= position:
        return None, ""
    code: CodeType = function.__code__
    return code, code.co_varnames[position]


def _sees_variables(code: CodeType) -> bool:
    """Say whether the code, or that of a function inside, names what could get hold of variables."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return not _SEES_VARIABLES.isdisjoint(code.co_names) or any(map(_sees_variables, inner))


def _has_plain_len(function: Any) -> bool:
    names = function.__globals__
    return "len" not in names and names.get("__builtins__") in (builtins, vars(builtins))


def _mentions(steps: Sequence[dis.Instruction], variable: str) -> Iterator[int]:
    for at, step in enumerate(steps):
        # An instruction of newer interpreters may name two variables.
        named = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if step.opcode in dis.haslocal and variable in named:
            yield at


def _follows(steps: Sequence[dis.Instruction], at: int, *tests: Callable[[dis.Instruction], bool]) -> bool:
    """Say whether the steps from *at* on are these, and reached from the one before only."""
    found = steps[at : at + len(tests)]
    return len(found) == len(tests) and all(
        test(step) and not step.is_jump_target for test, step in zip(tests, found, strict=True)
    )


def _is_constant(step: dis.Instruction) -> bool:
    return step.opname in _CONSTANTS


def _is_subscript(step: dis.Instruction) -> bool:
    return step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")


def _is_slicing(step: dis.Instruction) -> bool:
    return step.opname == "BINARY_SLICE"


def _makes_slice(step: dis.Instruction) -> bool:
    return step.opname == "BUILD_SLICE"


def _is_call_with_one(step: dis.Instruction) -> bool:
    return step.opname == "CALL" and step.arg == 1


def _key_read(steps: Sequence[dis.Instruction], at: int) -> str | None:
    """Return the key if the state is mentioned as ``state["key"]``."""
    if steps[at].opname not in _LOADS or not _follows(steps, at + 1, _is_constant, _is_subscript):
        return None
    key = steps[at + 1].argval
    return key if isinstance(key, str) else None


_LOOKS: Final = (
    (_is_constant, _is_subscript),
    (_is_constant, _is_constant, _makes_slice, _is_subscript),
    (_is_constant, _is_constant, _is_slicing),
)
"""What may follow ``state["key"]`` and yields items or a new list, never the value itself."""


def _only_looks(steps: Sequence[dis.Instruction], at: int, *, is_len: bool) -> bool:
    if any(_follows(steps, at + 3, *look) for look in _LOOKS):
        return True
    before = steps[at - 1]
    is_counted = is_len and before.opname == "LOAD_GLOBAL" and before.argval == "len" and not steps[at].is_jump_target
    return is_counted and _follows(steps, at + 3, _is_call_with_one)
