"""Texts of a limited number of bytes: backends cut longer values, or lose the span, or its whole batch."""

from __future__ import annotations

from typing import Final

__all__ = ["VALUE_BYTES", "shortened", "shortened_inside"]

VALUE_BYTES: Final = 1_000
"""What a text may have that is no content: a message, a description. Tempo cuts at 2,048 bytes."""

_CUT: Final = "... (cut here)"
_CUT_INSIDE: Final = f"\n{_CUT} ...\n"


def shortened(text: str, limit_bytes: int = VALUE_BYTES) -> str:
    """Return the beginning of *text*, of at most *limit_bytes* bytes in UTF-8.

    A lone surrogate becomes a question mark: in a span's status it would keep the whole batch from being sent.

    >>> shortened("x" * 30, 20), shortened("short", 20)
    ('xxxxxx... (cut here)', 'short')
    """
    whole = text.encode(errors="replace")
    return _text(whole) if len(whole) <= limit_bytes else _text(whole[: limit_bytes - len(_CUT)]) + _CUT


def shortened_inside(text: str, limit_bytes: int) -> str:
    r"""Return both ends of *text*, together of at most *limit_bytes* bytes.

    >>> shortened_inside("a" * 30 + "z" * 30, 30)
    'aaaaa\n... (cut here) ...\nzzzzz'
    """
    whole = text.encode(errors="replace")
    if len(whole) <= limit_bytes:
        return _text(whole)
    half = (limit_bytes - len(_CUT_INSIDE)) // 2
    return _text(whole[:half]) + _CUT_INSIDE + _text(whole[-half:])


def _text(encoded: bytes) -> str:
    """Return UTF-8 as text, without the characters that were cut in two."""
    return encoded.decode(errors="ignore")
