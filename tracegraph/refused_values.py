"""How an exception of ours tells of a value that it refuses: not in its message, which goes wherever telemetry goes.

Messages name the type and the place. The value itself is ``error.value``, and a note, which Python shows behind a traceback
and telemetry leaves out.
"""

from __future__ import annotations

import reprlib
from typing import Any, Final, TypeVar

__all__ = ["VALUE_NOTE", "about", "described", "nearest", "what_is_wrong"]

E = TypeVar("E", bound=BaseException)

VALUE_NOTE: Final = "the value, which telemetry is not told: "
"""What the note begins with; it is one line."""

_MOST_SHOWN: Final = 200
_LONGEST_NAME: Final = 100

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 120


def about(error: E, value: Any) -> E:
    """Let *error* keep the value that it is about, for whoever debugs it, and return it.

    >>> error = about(ValueError("a str is no number"), "twelve")
    >>> str(error), error.value, error.__notes__
    ('a str is no number', 'twelve', ["the value, which telemetry is not told: 'twelve'"])
    """
    error.value = value  # type: ignore[attr-defined]  # of ours, so it takes attributes
    try:
        shown = " ".join(_short.repr(value).splitlines())
    except Exception:  # noqa: BLE001  # the value is the user's, and may be longer or deeper than Python writes
        shown = f"an unprintable {type(value).__name__}"
    error.add_note(VALUE_NOTE + (shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}..."))
    return error


def described(value: Any) -> str:
    """Return what a value is, without what it says.

    >>> described("to be"), described([1]), described(None)
    ('a str of length 5', 'a list of length 1', 'None')
    """
    if value is None:
        return "None"
    kind = type(value)
    name = f"a{'n' if kind.__name__[:1].lower() in 'aeio' else ''} {kind.__name__}"
    # Only of types whose length is quick to tell and runs no code of the user's.
    return f"{name} of length {len(value)}" if kind in (str, bytes, list, tuple, dict, set, frozenset) else name


def nearest(name: object, known: tuple[str, ...]) -> str:
    """Return a hint at the known name that *name* looks like a misspelling of, ``""`` if there is none.

    >>> nearest("serch", ("search", "write")), nearest("To be or not to be", ("search", "write"))
    (" (did you mean 'search'?)", '')
    """
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return ""
    from difflib import get_close_matches  # not at the top: every program imports this

    found = get_close_matches(name, known, 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def what_is_wrong(error: BaseException) -> str:
    """Return where and why Pydantic refuses a value, without the value; of any other exception, its class."""
    try:
        items = error.errors(include_input=False, include_context=False)  # type: ignore[attr-defined]  # by duck type
        return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'it'}: {_reason(item)}" for item in items)
    except Exception:  # noqa: BLE001  # whoever made the exception
        return type(error).__name__


def _reason(item: dict[str, Any]) -> str:
    """Return the message of an error that Pydantic itself words, and not with the value; else its type."""
    says_no_value = "url" in item and item["type"] not in ("value_error", "assertion_error", "union_tag_invalid")
    return str(item["msg"] if says_no_value else item["type"])
