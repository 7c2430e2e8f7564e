"""Block-style YAML of plain data: the head of a Mermaid text needs no more, and so no YAML package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["yaml_lines"]

# What YAML 1.1 readers take for a string without quotes. Stricter than the standard: quoting too much is harmless.
_BARE = re.compile(r"[A-Za-z_/.][A-Za-z0-9_/.()%+-]*(?: [A-Za-z0-9_/.()%+-]+)*")
_NOT_A_STRING = re.compile(r"(?i:y|n|yes|no|on|off|true|false|null|\.inf|\.nan|\.|[.][0-9_.e+-]*)")


def yaml_lines(data: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the lines of a mapping, keys sorted.

    >>> print(*yaml_lines({"b": [1, {"x": None}], "a": {"on": "yes", "c": 1.5}}), sep=chr(10))
    a:
      c: 1.5
      'on': 'yes'
    b:
    - 1
    - x: null
    """
    for key in sorted(data, key=str):
        value = data[key]
        if not _is_nested(value):
            yield f"{_scalar(key)}: {_scalar(value)}"
            continue
        yield f"{_scalar(key)}:"
        # A list may stand under its key without being indented, and PyYAML's readers expect to see it so.
        indent = "  " if isinstance(value, Mapping) else ""
        yield from (indent + line for line in _nested(value))


def _is_nested(value: Any) -> bool:
    return bool(value) and isinstance(value, (Mapping, list, tuple))


def _nested(value: Mapping[Any, Any] | Sequence[Any]) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from yaml_lines(value)
        return
    for item in value:
        lines = list(_nested(item)) if _is_nested(item) else [_scalar(item)]
        yield from (f"{'- ' if i == 0 else '  '}{line}" for i, line in enumerate(lines))


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (Mapping, list, tuple)):
        return "{}" if isinstance(value, Mapping) else "[]"
    return json.dumps(value, default=str)


def _string(text: str) -> str:
    if _BARE.fullmatch(text) and not _NOT_A_STRING.fullmatch(text):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escape(c) for c in text) + '"'


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
