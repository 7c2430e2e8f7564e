"""The part of JSON Schema that the schema of the wire form uses, checked by hand: no validator is among the test's libraries."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_NOTES = {"$schema", "title", "description", "examples", "$defs", "format", "then"}
"""Keywords that are no rule here, or are looked at with another one."""


def faults(schema: dict[str, Any], data: Any) -> list[str]:
    """Return what is wrong with *data*, nothing if it is valid; an unknown keyword in the schema is an error."""
    return _faults(schema, data, schema, "$")


def _faults(schema: dict[str, Any], data: Any, root: dict[str, Any], at: str) -> list[str]:
    found: list[str] = []
    for keyword, rule in schema.items():
        if keyword not in _NOTES:
            found += _KEYWORDS[keyword](rule, data, root, at, schema)
    return found


def _ref(rule: str, data: Any, root: Any, at: str, _: Any) -> list[str]:
    target = root
    for name in rule.removeprefix("#/").split("/"):
        target = target[name]
    return _faults(target, data, root, at)


def _type(rule: str, data: Any, root: Any, at: str, _: Any) -> list[str]:
    is_right = isinstance(data, _TYPES[rule]) and (not isinstance(data, bool) or rule == "boolean")
    return [] if is_right else [f"{at}: {data!r} is no {rule}"]


def _enum(rule: list[Any], data: Any, root: Any, at: str, _: Any) -> list[str]:
    # To Python, True is 1.
    is_one = any(data == one and isinstance(data, bool) == isinstance(one, bool) for one in rule)
    return [] if is_one else [f"{at}: {data!r} is none of {rule}"]


def _any_of(rule: list[Any], data: Any, root: Any, at: str, _: Any) -> list[str]:
    each = [_faults(one, data, root, at) for one in rule]
    return [] if any(not found for found in each) else [f"{at}: fits nothing", *min(each, key=len)]


def _one_of(rule: list[Any], data: Any, root: Any, at: str, _: Any) -> list[str]:
    each = [_faults(one, data, root, at) for one in rule]
    fits = sum(not found for found in each)
    return [] if fits == 1 else [f"{at}: fits {fits} of {len(rule)}", *min(each, key=len)]


def _all_of(rule: list[Any], data: Any, root: Any, at: str, _: Any) -> list[str]:
    return [fault for one in rule for fault in _faults(one, data, root, at)]


def _if(rule: Any, data: Any, root: Any, at: str, schema: Any) -> list[str]:
    return [] if _faults(rule, data, root, at) else _faults(schema["then"], data, root, at)


def _properties(rule: dict[str, Any], data: Any, root: Any, at: str, _: Any) -> list[str]:
    if not isinstance(data, dict):
        return []
    return [fault for key in rule.keys() & data.keys() for fault in _faults(rule[key], data[key], root, f"{at}.{key}")]


def _required(rule: list[str], data: Any, root: Any, at: str, _: Any) -> list[str]:
    return [f"{at}: no {key}" for key in rule if isinstance(data, dict) and key not in data]


def _items(rule: Any, data: Any, root: Any, at: str, _: Any) -> list[str]:
    if not isinstance(data, list):
        return []
    return [fault for index, item in enumerate(data) for fault in _faults(rule, item, root, f"{at}[{index}]")]


def _prefix_items(rule: list[Any], data: Any, root: Any, at: str, _: Any) -> list[str]:
    if not isinstance(data, list):
        return []
    return [fault for index, (one, item) in enumerate(zip(rule, data)) for fault in _faults(one, item, root, f"{at}[{index}]")]


def _length(data: Any, is_right: bool, at: str) -> list[str]:
    return [f"{at}: {len(data)} items"] if isinstance(data, list) and not is_right else []


_KEYWORDS: dict[str, Any] = {
    "$ref": _ref,
    "type": _type,
    "enum": _enum,
    "const": lambda rule, data, root, at, schema: _enum([rule], data, root, at, schema),
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "if": _if,
    "properties": _properties,
    "required": _required,
    "items": _items,
    "prefixItems": _prefix_items,
    "minItems": lambda rule, data, root, at, schema: _length(data, not isinstance(data, list) or len(data) >= rule, at),
    "maxItems": lambda rule, data, root, at, schema: _length(data, not isinstance(data, list) or len(data) <= rule, at),
}
