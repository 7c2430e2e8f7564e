"""Graph recipes: a graph described as plain data, so that two libraries can build the same one.

A recipe says nothing about a library: names, fields, edges, and what each node does. What a node writes is a pure
function of what it reads (:func:`digest`), so values differ as soon as a view, an order or a step differs.
Recipes always end: static edges lead forward only, and whatever leads back looks at the counter ``turns`` first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from zlib import crc32

TURNS = "turns"
"""The field that bounds cycles; every recipe has it, every node that leads back adds to it."""

REMAINING = "left"
"""The field of a recipe that reads the managed value ``RemainingSteps``."""

FINISH = "<end>"
"""Stands for the library's END."""

FieldKind: TypeAlias = Literal["sum", "text", "log", "mix", "last", "any", "ephemeral", "topic", "kept", "untracked"]
CLEARING: frozenset[FieldKind] = frozenset({"any", "ephemeral", "topic"})
"""Kinds that lose their value in a step that does not write them."""

MERGING: frozenset[FieldKind] = frozenset({"sum", "text", "log", "mix", "topic", "kept", "any"})
"""Kinds that take several writes in one superstep."""

Returns: TypeAlias = Literal["dict", "none", "command", "pairs", "commands", "stray"]
SchemaKind: TypeAlias = Literal["typeddict", "dataclass", "pydantic"]


@dataclass(frozen=True)
class Field:
    """A state field: its name and how writes to it are merged."""

    name: str
    kind: FieldKind


@dataclass(frozen=True)
class Write:
    """One write of a node; ``is_overwrite`` replaces instead of merging."""

    field: str
    is_overwrite: bool = False


@dataclass(frozen=True)
class Fan:
    """Send *count* packets to *target*, the last one a copy of the first if ``is_repeated``."""

    target: str
    count: int
    is_repeated: bool = False


@dataclass(frozen=True)
class Branch:
    """A conditional edge. ``forward`` is always open; ``back`` only while the counter is below the limit.

    ``many``: the path returns a list with several targets. ``is_mapped``: it returns labels of a path map.
    """

    name: str
    source: str
    forward: tuple[str, ...]
    back: tuple[str, ...] = ()
    fan: Fan | None = None
    many: bool = False
    is_mapped: bool = False
    is_async: bool = False


@dataclass(frozen=True)
class Step:
    """A node: what it reads, writes and returns, where it goes by itself, and the graph inside it, if any."""

    name: str
    writes: tuple[Write, ...] = ()
    returns: Returns = "dict"
    goto: tuple[str, ...] = ()
    goto_back: tuple[str, ...] = ()
    fan: Fan | None = None
    reads: tuple[str, ...] | None = None
    is_deferred: bool = False
    is_async: bool = False
    naps: int = 0
    """How often an async body lets others run first: shuffles the order of completion, without a clock."""
    inner: Recipe | None = None
    use: Literal["node", "call", "call twice"] = "node"
    """The inner graph is the node itself, or is invoked by the node's code."""


@dataclass(frozen=True)
class Recipe:
    """A whole graph with its input."""

    fields: tuple[Field, ...]
    steps: tuple[Step, ...]
    entries: tuple[str, ...]
    edges: tuple[tuple[str, str], ...] = ()
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()
    branches: tuple[Branch, ...] = ()
    given: tuple[str, ...] = ()
    """Fields that the input sets, beside ``turns``."""
    output: tuple[str, ...] | None = None
    schema: SchemaKind = "typeddict"
    reads_remaining: bool = False
    limit: int = 3
    """Value of ``turns`` at which nothing leads back any more."""
    recursion_limit: int = 25

    def kind(self, name: str) -> FieldKind:
        """Return the kind of the field called *name*."""
        return next(f.kind for f in self.fields if f.name == name)

    def input(self) -> dict[str, Any]:
        """Return the run's input; a new object for each run, since a library must not change it."""
        return {TURNS: 0, **{name: value_for(self.kind(name), "in", len(name)) for name in self.given}}


def concat(left: str, right: str) -> str:
    """Merge texts; neither commutative nor, for the cap, ever large."""
    return (left + right)[-160:]


def extend(left: list[str], right: list[str]) -> list[str]:
    """Merge lists; keeps the last forty."""
    return (left + right)[-40:]


def mix(left: int, right: int) -> int:
    """Merge numbers so that each order of writes has a result of its own."""
    return (left * 31 + right + 7) % 1_000_003


def plain(value: Any) -> Any:
    """Return a value in a form that is equal for both libraries: objects of theirs become tuples."""
    if type(value).__name__ == "Overwrite":
        return ("Overwrite", plain(value.value))
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def text_of(value: Any) -> str:
    """Return a text that is equal for equal values, whatever the order of keys."""
    value = plain(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}={text_of(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    return repr(value)


def view_of(state: Any) -> dict[str, Any]:
    """Return what a node sees as a dict, for every kind of schema."""
    return dict(state) if isinstance(state, Mapping) else dict(vars(state))


def digest(state: Mapping[str, Any]) -> int:
    """Return a number that says everything about what was read."""
    return crc32(text_of(dict(state)).encode())


def value_for(kind: FieldKind, writer: str, seed: int) -> Any:
    """Return what *writer* writes to a field of that kind, given what it read (*seed*)."""
    match kind:
        case "sum":
            return 1 + seed % 2
        case "text":
            return f"{writer}{seed % 97};"
        case "log":
            return [f"{writer}:{seed % 997}"]
        case "mix":
            return seed % 9973
        case "topic" | "kept":
            return [writer, f"{seed % 7}"] if seed % 2 else f"{writer}{seed % 11}"
        case "last" | "any" | "ephemeral" | "untracked":
            return f"{writer}={seed % 9973}"
