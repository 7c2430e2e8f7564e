"""The shape of what ``stream`` yields, by version, mode argument and ``subgraphs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from tracegraph.constants import START
from tracegraph.errors import InvalidInputError
from tracegraph.stream.modes import MODES
from tracegraph.types import PartMeta, StreamMode, StreamPart

__all__ = ["Part", "Shape", "Typed", "checked_modes"]


@dataclass(slots=True)
class Part:
    """One piece of a stream: its mode, the namespace of the graph it is from, its payload."""

    mode: str
    ns: tuple[str, ...]
    data: Any
    interrupts: tuple[Any, ...] = ()
    meta: PartMeta | None = None


def checked_modes(modes: str | Sequence[str]) -> tuple[str, ...]:
    """Return *modes* as a tuple.

    Raises:
        InvalidInputError: a mode does not exist; the text lists those that do.
    """
    found = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in found:
        if mode not in MODES:
            known = ", ".join(map(repr, get_args(StreamMode)))
            raise InvalidInputError(f"stream mode {mode!r} does not exist; there are {known}")
    return found


class Typed:
    """Makes an instance of a schema of values, for the streamed graph's own parts.

    Values that make none (yet) are shown as the dict they are, for the reader is not who should learn of it.
    """

    def __init__(self, make: Callable[[Any], Any], names: Sequence[str]) -> None:
        self._make = make
        self._names = names

    def __call__(self, values: Any) -> Any:
        """Return an instance made of *values*, or *values*."""
        if not isinstance(values, dict):
            return values
        try:
            return self._make({name: values[name] for name in self._names if name in values})
        except (TypeError, ValueError):  # pydantic's errors are ValueErrors
            return values

    def in_checkpoint(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what ``checkpoints`` or ``debug`` shows, with its values typed, once the input is among them."""
        if data.get("type") == "checkpoint":
            return {**data, "payload": self.in_checkpoint(data["payload"])}
        if "values" not in data or START in data["next"]:
            return data
        return {**data, "values": self(data["values"])}


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

    def formatter(self, output: Typed | None = None, state: Typed | None = None) -> Callable[[Part], Any]:
        """Return the function that makes what the caller gets of a part; *output* and *state* type values in version 2."""
        if self.version == "v2":
            return partial(_as_dict, output, state)
        if self.is_tagged:
            return _ns_mode_data if self.has_namespace else _mode_data
        return _ns_data if self.has_namespace else with_interrupts


def _as_dict(output: Typed | None, state: Typed | None, part: Part) -> dict[str, Any]:
    data = part.data
    content = {"type": part.mode, "ns": part.ns, "data": data}
    if part.mode == "values":
        if output is not None and not part.ns:
            content["data"] = output(data)
        content["interrupts"] = part.interrupts
    elif state is not None and not part.ns and part.mode in ("checkpoints", "debug"):
        content["data"] = state.in_checkpoint(data)
    return content if part.meta is None else StreamPart(content, part.meta)


def _ns_mode_data(part: Part) -> Any:
    return part.ns, part.mode, with_interrupts(part)


def _mode_data(part: Part) -> Any:
    return part.mode, with_interrupts(part)


def _ns_data(part: Part) -> Any:
    return part.ns, with_interrupts(part)


def with_interrupts(part: Part) -> Any:
    """Return a part's payload in v1 form: pending interrupts are a key of the values."""
    if not part.interrupts:
        return part.data
    return {**part.data, "__interrupt__": part.interrupts} if isinstance(part.data, dict) else {"__interrupt__": part.interrupts}
