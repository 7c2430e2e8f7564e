"""Whatever a user's value is, as JSON data: what the command prints and what goes over a wire."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

__all__ = ["safe_repr", "safe_str", "to_plain_data"]


def to_plain_data(value: Any) -> Any:
    """Return a value as JSON data: models, dataclasses, sets and dates in their usual form, anything else as its repr.

    >>> to_plain_data({"at": {1}, "what": object})
    {'at': [1], 'what': "<class 'object'>"}
    """
    return _plain(value, ())


def _plain(value: Any, around: tuple[int, ...]) -> Any:
    """Return *value* as JSON data; *around* are the ids of what is around it, for what cannot be converted in one piece."""
    from pydantic_core import to_jsonable_python

    try:
        return _writable(to_jsonable_python(value, fallback=safe_repr, bytes_mode="base64"))
    except Exception:  # noqa: BLE001  # a result that cannot be shown well is shown anyhow: the run did happen
        if id(value) in around or len(around) > _MOST_LEVELS:
            return safe_repr(value)
    inside = (*around, id(value))
    # Piece by piece: what is wrong with one of them must not hide the others.
    if type(value) is dict:
        return {_key(key): _plain(item, inside) for key, item in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return [_plain(item, inside) for item in value]
    return safe_repr(value)


_MOST_LEVELS = 50


def _key(key: Any) -> str:
    shown = _plain(key, ())
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _writable(data: Any) -> Any:
    """Return JSON data in which numbers that JSON cannot have are strings: infinity, NaN, and integers beyond all measure."""
    if isinstance(data, dict):
        return {key: _writable(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_writable(value) for value in data]
    if isinstance(data, int):
        return _writable_int(data)
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


def _writable_int(number: int) -> int | str:
    try:
        int.__repr__(number)
    except ValueError:
        # Python writes no more than some thousand digits, unless they are hexadecimal.
        return hex(number)
    return number


def safe_repr(value: Any) -> str:
    """Return what ``repr`` says of a value of the user's, whose class may be at fault."""
    return _guarded(repr, value)


def safe_str(value: Any) -> str:
    """Return what ``str`` says of a value of the user's, whose class may be at fault."""
    return _guarded(str, value)


def _guarded(show: Callable[[Any], str], value: Any) -> str:
    if isinstance(value, int):
        value = _writable_int(value)
        return value if isinstance(value, str) else show(value)
    try:
        return show(value)
    except Exception:  # noqa: BLE001  # the user's code
        return f"<unprintable {type(value).__name__}>"
