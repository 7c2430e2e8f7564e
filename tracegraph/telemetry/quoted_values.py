"""Texts of exceptions without the values that tracegraph and Pydantic quote in them. Loads nothing.

A value that is refused is content, as any other: an answer, a state, what a model said.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tracegraph.refused_values import VALUE_NOTE

__all__ = ["without_values", "without_values_inside"]

_NOTE: Final = re.compile(rf"^.*{re.escape(VALUE_NOTE)}.*\n?", re.MULTILINE)
"""A line of its own; in a traceback of a group with bars before it."""
_INPUT: Final = re.compile(r"input_value=.*?, input_type=", re.DOTALL)
_TAG: Final = re.compile(r"Input tag '.*?' found using", re.DOTALL)


def without_values(text: str) -> str:
    """Return the text of an exception, or of its traceback, without the values that it is about.

    >>> without_values("Input should be a valid integer [type=int_parsing, input_value='Ada', input_type=str]")
    'Input should be a valid integer [type=int_parsing, input_type=str]'
    """
    if VALUE_NOTE in text:
        text = _NOTE.sub("", text)
    if "input_value=" in text:
        text = _TAG.sub("Input tag found using", _INPUT.sub("input_type=", text))
    return text


def without_values_inside(data: Any) -> Any:
    """Return lists and dicts of such texts without the values; notes about values are left out of lists."""
    if isinstance(data, str):
        return without_values(data)
    if isinstance(data, list):
        return [without_values_inside(item) for item in data if not (isinstance(item, str) and item.startswith(VALUE_NOTE))]
    if isinstance(data, dict):
        return {key: without_values_inside(item) for key, item in data.items()}
    return data
