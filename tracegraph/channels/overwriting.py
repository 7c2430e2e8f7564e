"""What the two reducer channels share: the rule for overwrites, and when two reducers count as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from tracegraph.errors import InvalidUpdateError

__all__ = ["one_overwrite_only", "same_function"]


def one_overwrite_only(key: str) -> InvalidUpdateError:
    """Return the error for a second overwrite in one superstep."""
    return InvalidUpdateError(
        f"channel {key!r} takes one Overwrite per step, but got several, and which of them wins would be chance; "
        "let one node overwrite it",
        channel=key,
    )


@final
class same_function:  # noqa: N801  # reads as a function where it is used
    """Compares a reducer with another: the same object, or either a lambda, since two schemas cannot share one."""

    __slots__ = ("function",)
    __hash__ = None  # type: ignore[assignment]  # equality is not transitive, so there is no hash

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, same_function):
            return NotImplemented
        return self.function is other.function or "<lambda>" in (_name(self.function), _name(other.function))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", ""))
