"""Nested fields: flat channels inside, dicts outside. What is written is split here, what is read is put together.

Nothing below knows of nesting: a sub-field is a channel like any other, whose name is the path to it (``meta.tags``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from tracegraph.channels.base import BaseChannel
from tracegraph.channels.nested import overwrite_of
from tracegraph.constants import INPUT, MISSING, START
from tracegraph.errors import InvalidUpdateError
from tracegraph.managed.base import ManagedValue
from tracegraph.refused_values import about, described
from tracegraph.types import Overwrite

if TYPE_CHECKING:
    from tracegraph.records import Write

__all__ = ["Field", "NestedField", "NestedKeys", "leaves"]

Field: TypeAlias = "BaseChannel[Any, Any, Any] | type[ManagedValue[Any]] | NestedField"
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class NestedField:
    """A field whose sub-fields are channels, or nested fields in turn."""

    path: Path
    UpdateType: Any
    """Its annotation, for schemas."""
    parts: Mapping[str, Field]
    """Sub-fields by their own names, in the order of the schema."""

    @property
    def key(self) -> str:
        """The path to it as one name, which is that of a channel for what is not nested."""
        return ".".join(self.path)

    def split(self, write: Any, writer: str, unknown: list[str]) -> list[Write]:
        """Return a write to this field as writes to its channels; names of no sub-field are put into *unknown*.

        None changes nothing. An Overwrite of the whole is one of every sub-field, and empties those it does not name.

        Raises:
            InvalidUpdateError: it is no dict, or has no dict for a nested field in it.
        """
        writes: list[Write] = []
        is_overwrite, value = Overwrite.unwrap(write)
        self._split(writes, {} if value is None else value, is_overwrite, writer, unknown)
        return writes

    def _split(self, writes: list[Write], given: Any, is_overwrite: bool, writer: str, unknown: list[str]) -> None:
        if not isinstance(given, Mapping):
            raise self._refusal(given, writer)
        unknown.extend(f"{self.key}.{name}" for name in given if name not in self.parts)
        for name in self.parts if is_overwrite else [name for name in given if name in self.parts]:
            part, value = self.parts[name], given.get(name, MISSING)
            if isinstance(part, NestedField):
                is_whole, inner = Overwrite.unwrap(value)
                inner = {} if inner is MISSING or inner is None else inner
                part._split(writes, inner, is_overwrite or is_whole, writer, unknown)  # noqa: SLF001  # of its own class
            else:
                assert isinstance(part, BaseChannel)
                writes.append((part.key, overwrite_of(part, value) if is_overwrite else value))

    def _refusal(self, value: Any, writer: str) -> InvalidUpdateError:
        who = "the input" if writer in (START, INPUT) else f"node {writer!r}"
        error = InvalidUpdateError(
            f"{who} wrote {described(value)} to the nested field {self.key!r}, which takes a dict of its "
            f"sub-fields {', '.join(map(repr, self.parts))}; write those that change, or Overwrite({{...}}) to replace them all",
            channel=self.key,
            node=writer,
        )
        return about(error, value)

    def values_in(self, whole: Any) -> Iterator[tuple[str, Any]]:
        """Yield channel and value of each sub-field in a dict that was saved as one value.

        Raises:
            InvalidUpdateError: it was no dict.
        """
        if whole is None:
            return
        if not isinstance(whole, Mapping):
            raise InvalidUpdateError(
                f"the thread holds a {type(whole).__name__} for {self.key!r}, saved before this field was marked Nested, and "
                "only a dict can be split into sub-fields; take the marker away, write a dict, and put it back",
                channel=self.key,
            )
        for name, part in self.parts.items():
            if name in whole:
                if isinstance(part, NestedField):
                    yield from part.values_in(whole[name])
                else:
                    yield f"{self.key}.{name}", whole[name]

    def channel_names(self) -> list[str]:
        """Return the names of its channels, those of fields nested in it among them."""
        return [".".join(path) for path, _ in leaves(self.parts, self.path)]

    def fields(self) -> Iterator[NestedField]:
        """Yield this field and those nested in it, outer ones first."""
        yield self
        for part in self.parts.values():
            if isinstance(part, NestedField):
                yield from part.fields()


def leaves(fields: Mapping[str, Field], outer: Path = ()) -> Iterator[tuple[Path, BaseChannel[Any, Any, Any]]]:
    """Yield the channels of *fields*, each with the path to it; managed values are none."""
    for name, field in fields.items():
        if isinstance(field, NestedField):
            yield from leaves(field.parts, field.path)
        elif not isinstance(field, type):
            yield (*outer, name), field


class NestedKeys(tuple[str, ...]):  # noqa: SLOT001  # a tuple with slots cannot have attributes
    """Names of channels, some of which are shown inside dicts: ``meta.tags`` as ``{"meta": {"tags": ...}}``.

    With *bare* only what is inside that nested field is shown, as a single channel's bare value is.
    """

    paths: Mapping[str, Path]
    bare: str | None

    def __new__(cls, names: Iterable[str], paths: Mapping[str, Path], bare: str | None = None) -> Self:
        """Make a tuple of the names that knows their paths; a name without one is shown as it is."""
        made = super().__new__(cls, names)
        made.paths = paths
        made.bare = bare
        return made

    @staticmethod
    def of(paths: Sequence[Path]) -> tuple[str, ...]:
        """Return the names of channels with these paths, a plain tuple if none is nested."""
        names = tuple(map(".".join, paths))
        nested = {name: path for name, path in zip(names, paths, strict=True) if len(path) > 1}
        return NestedKeys(names, nested) if nested else names

    def show(self, values: Mapping[str, Any]) -> Any:
        """Return values of channels, by name, in the dicts they are shown in."""
        shown: dict[str, Any] = {}
        for name, value in values.items():
            *outer, last = self.paths.get(name, (name,))
            inside = shown
            for key in outer:
                inside = inside.setdefault(key, {})
            inside[last] = value
        return shown if self.bare is None else shown.get(self.bare)

    def show_writes(self, writes: Mapping[str, Any]) -> Any:
        """Return writes to channels as a node would have written them: sub-fields all overwritten are one Overwrite."""
        whole = self._overwritten(writes)
        if not whole:
            return self.show(writes)
        values: dict[str, Any] = {}
        for name, write in writes.items():
            if _outermost(self.paths.get(name, ()), whole) is None:
                values[name] = write
            elif write.value is not MISSING:
                values[name] = write.value
        shown: dict[str, Any] = NestedKeys(self, self.paths).show(values)
        for *outer, last in dict.fromkeys(_outermost(path, whole) or () for path in whole):
            inside = shown
            for key in outer:
                inside = inside.setdefault(key, {})
            inside[last] = Overwrite(inside.get(last, {}))
        return shown if self.bare is None else shown.get(self.bare)

    def _overwritten(self, writes: Mapping[str, Any]) -> list[Path]:
        """Return the nested fields all of whose shown sub-fields are overwritten."""
        found: dict[Path, bool] = {}
        for name in self:
            path = self.paths.get(name, ())
            for length in range(1, len(path)):
                found[path[:length]] = found.get(path[:length], True) and type(writes.get(name)) is Overwrite
        return [path for path, is_whole in found.items() if is_whole]

    def show_each(self, writes: Sequence[tuple[str, Any]]) -> list[Any]:
        """Return writes in their order, channels written twice among them, as one-key dicts; see :meth:`show_writes`."""
        shown: list[Any] = []
        part: dict[str, Any] = {}
        top = ""
        for name, value in writes:
            outer = self.paths.get(name, (name,))[0]
            if part and (outer != top or name in part):
                shown.append(self.show_writes(part))
                part = {}
            part[name], top = value, outer
        return [*shown, self.show_writes(part)]


def _outermost(path: Path, whole: Sequence[Path]) -> Path | None:
    return next((path[:length] for length in range(1, len(path) + 1) if path[:length] in whole), None)
