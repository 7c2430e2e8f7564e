"""The shape of what ``stream`` yields, by version, mode argument and ``subgraphs``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from tracegraph.errors import InvalidInputError

__all__ = ["SUPPORTED_MODES", "Part", "Shape", "checked_modes"]

SUPPORTED_MODES: Final = ("values", "updates", "custom")
_LATER_MODES: Final = frozenset({"messages", "tasks", "checkpoints", "debug", "tools", "events"})


@dataclass(slots=True)
class Part:
    """One piece of a stream: its mode, the namespace of the graph it is from, its payload."""

    mode: str
    ns: tuple[str, ...]
    data: Any
    interrupts: tuple[Any, ...] = ()


def checked_modes(modes: str | Sequence[str]) -> tuple[str, ...]:
    """Return *modes* as a tuple.

    Raises:
        InvalidInputError: a mode does not exist; the text lists those that do.
    """
    found = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in found:
        if mode not in SUPPORTED_MODES:
            what = "is not supported yet" if mode in _LATER_MODES else "does not exist"
            raise InvalidInputError(f"stream mode {mode!r} {what}; there are {', '.join(map(repr, SUPPORTED_MODES))}")
    return found


@dataclass(slots=True)
class Shape:
    """How parts are handed out."""

    is_tagged: bool
    """Several modes were asked for, so each part says its own."""
    has_namespace: bool
    version: Literal["v1", "v2"]

    @classmethod
    def of(cls, modes: str | Sequence[str], *, subgraphs: bool, version: str) -> Shape:
        """Return the shape for the arguments of a ``stream`` call."""
        if version not in ("v1", "v2"):
            raise InvalidInputError(f"version must be 'v1' or 'v2', not {version!r}")
        return cls(not isinstance(modes, str), subgraphs, version)  # type: ignore[arg-type]  # checked above

    def formatter(self) -> Callable[[Part], Any]:
        """Return the function that makes what the caller gets of a part."""
        if self.version == "v2":
            return _as_dict
        if self.is_tagged:
            return _ns_mode_data if self.has_namespace else _mode_data
        return _ns_data if self.has_namespace else _data


def _as_dict(part: Part) -> dict[str, Any]:
    made = {"type": part.mode, "ns": part.ns, "data": part.data}
    if part.mode == "values":
        made["interrupts"] = part.interrupts
    return made


def _ns_mode_data(part: Part) -> Any:
    return part.ns, part.mode, with_interrupts(part)


def _mode_data(part: Part) -> Any:
    return part.mode, with_interrupts(part)


def _ns_data(part: Part) -> Any:
    return part.ns, with_interrupts(part)


def _data(part: Part) -> Any:
    return with_interrupts(part)


def with_interrupts(part: Part) -> Any:
    """Return a part's payload in v1 form: pending interrupts are a key of the values."""
    if not part.interrupts:
        return part.data
    return {**part.data, "__interrupt__": part.interrupts} if isinstance(part.data, dict) else {"__interrupt__": part.interrupts}
