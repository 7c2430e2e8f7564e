"""Channel versions as the savers of this package count them."""

from __future__ import annotations

import random

from tracegraph.records import Version

__all__ = ["next_text_version"]

# Not the shared generator: a program that seeds `random` must not see its own numbers shifted.
_fraction = random.Random()  # noqa: S311  # tells branches of one thread apart; nothing secret


def next_text_version(current: Version | None) -> str:
    """Return a text of 49 characters: a counter that decides the order, and a fraction that tells branches of a thread apart.

    >>> next_text_version(7).partition(".")[0]
    '00000000000000000000000000000008'
    """
    count = 0 if current is None else int(current.partition(".")[0]) if isinstance(current, str) else int(current)
    return f"{count + 1:032}.{_fraction.getrandbits(53):016}"
