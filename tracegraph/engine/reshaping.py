"""Checkpoints of a graph whose fields were nested otherwise: the marker ``Nested`` came, or went, since they were saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from tracegraph.channels.delta import DeltaLog
from tracegraph.channels.empty import bare_type
from tracegraph.constants import BRANCH_PREFIX, JOIN_PREFIX
from tracegraph.errors import InvalidUpdateError
from tracegraph.records import ChannelVersions
from tracegraph.refused_values import what_is_wrong

if TYPE_CHECKING:
    from tracegraph.engine.topology import Topology

__all__ = ["reshaped"]


def reshaped(
    saved: Mapping[str, Any], versions: ChannelVersions, topology: Topology
) -> tuple[dict[str, Any], ChannelVersions, set[str]]:
    """Return saved values and versions under the names that *topology* has, and the channels that are new by that.

    These keep the version of what they were, for nothing has changed, but have to be saved: under that name and version
    there is nothing yet.

    Raises:
        InvalidUpdateError: what is to be split was no dict; or what is to be joined is known to a delta channel only, or the
            field cannot hold it.
    """
    values, found = dict(saved), dict(versions)
    moved = _split(values, found, topology) | _joined(values, found, topology)
    return values, found, moved


def _split(values: dict[str, Any], versions: ChannelVersions, topology: Topology) -> set[str]:
    """Put the sub-fields in place of each nested field that was saved as one value; outer ones first."""
    moved: set[str] = set()
    for outermost in topology.nested.values():
        for field in outermost.fields():
            if field.key not in values or field.key in topology.channels:
                continue
            version = versions.pop(field.key)
            parts = {name: value for name, value in field.values_in(values.pop(field.key)) if name not in values}
            values.update(parts)
            versions.update(dict.fromkeys(parts, version))
            moved.update(parts)
    return moved


def _joined(values: dict[str, Any], versions: ChannelVersions, topology: Topology) -> set[str]:
    """Put one value in place of the saved sub-fields of each field that is nested no more."""
    made: dict[str, dict[str, Any]] = {}
    # Nodes' names have dots of their own, and their triggers are no fields.
    gone = [name for name in values if name not in topology.channels and not name.startswith((BRANCH_PREFIX, JOIN_PREFIX))]
    for name in gone:
        *outer, last = name.split(".")
        for length in range(len(outer), 0, -1):
            owner = ".".join(outer[:length])
            if owner in values or owner not in topology.channels:
                continue
            inside = made.setdefault(owner, {})
            for key in outer[length:]:
                inside = inside.setdefault(key, {})
            inside[last] = _whole(name, values.pop(name))
            version = versions.pop(name)
            versions[owner] = max(versions.get(owner, version), version)
            break
    values.update({owner: _as_one(owner, parts, topology.channels[owner].typ) for owner, parts in made.items()})
    return set(made)


def _whole(name: str, saved: Any) -> Any:
    if type(saved) is DeltaLog:
        raise InvalidUpdateError(
            f"the thread holds {name!r} as writes that only its DeltaChannel can fold, but the field is nested no more; mark it "
            "Nested again, overwrite the sub-field, and take the marker away",
            channel=name,
        )
    return saved


def _as_one(owner: str, parts: dict[str, Any], typ: Any) -> Any:
    """Return the sub-fields as a value of a type: a dict, or a Pydantic model where there is no dict among what it allows."""
    kinds = [*_alternatives(typ)]
    if any(map(_holds_dict, kinds)):
        return parts
    why, cause = f"is of a type that holds no dict ({typ!r})", None
    for kind in kinds:
        if (make := getattr(kind, "model_validate", None)) is not None:
            try:
                return make(parts)
            except ValueError as error:  # Pydantic's ValidationError is one
                why, cause = f"is a {kind.__name__} that they do not make up ({what_is_wrong(error)})", error
    name = f"{owner}.{next(iter(parts))}"
    raise InvalidUpdateError(
        f"the thread holds {name!r}, saved as a sub-field of {owner!r}, but that field is nested no more and {why}; give "
        f"{owner!r} a type that can hold its sub-fields as a dict, or mark it Nested again",
        channel=owner,
    ) from cause


def _alternatives(typ: Any) -> Iterator[Any]:
    """Yield the types that a type is a union of, each without its arguments."""
    origin = get_origin(typ)
    if origin in (Annotated, Required, NotRequired):
        yield from _alternatives(get_args(typ)[0])
    elif origin in (Union, UnionType):
        for each in get_args(typ):
            yield from _alternatives(each)
    else:
        yield bare_type(typ)


def _holds_dict(kind: Any) -> bool:
    if not isinstance(kind, type) or kind is Any:
        return kind is not None and kind is not Literal  # type variables and the like: nothing speaks against it
    try:
        return issubclass(kind, Mapping) or issubclass(dict, kind)
    except TypeError:  # a protocol, which cannot be asked
        return True
