"""What "comes back the same" means: equal, and of the same type at every depth."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from datetime import datetime, time
from decimal import Decimal
from typing import Any

from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.serde.state import state_of

SERDE = JsonPlusSerializer(allowed_msgpack_modules=True)


def again(value: Any) -> Any:
    """Return what comes back of *value*."""
    return SERDE.loads_typed(SERDE.dumps_typed(value))


def is_same(left: Any, right: Any) -> bool:
    """Say whether two values are equal and of the same types, whatever is in them."""
    if type(left) is not type(right):
        return False
    if isinstance(left, type):
        return left is right
    if isinstance(left, (float, Decimal)):
        return repr(left) == repr(right)
    if isinstance(left, complex):
        return is_same(left.real, right.real) and is_same(left.imag, right.imag)
    if isinstance(left, (datetime, time)):
        return (left.replace(tzinfo=None), left.fold, left.tzinfo) == (right.replace(tzinfo=None), right.fold, right.tzinfo)
    if isinstance(left, (set, frozenset)):
        return len(left) == len(right) and is_same(sorted(left, key=_key), sorted(right, key=_key)) and _same_state(left, right)
    if isinstance(left, dict):
        return (
            is_same(list(left.items()), list(right.items()))
            and (not isinstance(left, defaultdict) or left.default_factory is right.default_factory)
            and _same_state(left, right)
        )
    if isinstance(left, (list, tuple, deque)):
        if isinstance(left, deque) and left.maxlen != right.maxlen:
            return False
        return len(left) == len(right) and all(map(is_same, left, right)) and _same_state(left, right)
    if hasattr(left, "__dataclass_fields__") or hasattr(left, "__attrs_attrs__") or hasattr(left, "__pydantic_fields__"):
        return is_same(state_of(left), state_of(right))
    return bool(left == right)


def _same_state(left: Any, right: Any) -> bool:
    # An OrderedDict without attributes has a __dict__ too, and so has a Counter.
    state = state_of(left)
    return type(left) is OrderedDict or not state or is_same(state, state_of(right))


def _key(value: Any) -> str:
    if isinstance(value, (set, frozenset)):
        return f"{type(value)}{sorted(map(_key, value))}"
    return f"{type(value)}{value!r}"
