"""Containers beside list and dict, which msgpack writes itself."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any, Final

from tracegraph.checkpoint.serde.codes import Code, Extension, Part, items, members
from tracegraph.checkpoint.serde.errors import Refused

__all__ = ["COLLECTIONS"]


def _factory_and_items(value: defaultdict[Any, Any]) -> list[Any]:
    factory = value.default_factory
    if factory is not None and not isinstance(factory, type):
        raise Refused(value, f"its default_factory {factory!r} is neither a class nor None, so it cannot be found again by name")
    return [factory, dict(value)]


def _defaultdict(data: Any, _types: object) -> Any:
    factory, held = data
    # A factory that the allow-list blocks came back as its name: then this is an ordinary dict.
    return defaultdict(factory, held) if factory is None or isinstance(factory, type) else held


def _parts_of_defaultdict(value: defaultdict[Any, Any]) -> Iterable[Part]:
    if isinstance(value.default_factory, type):
        yield ".default_factory", value.default_factory
    yield from items(value)


COLLECTIONS: Final[dict[type, Extension]] = {
    tuple: Extension(Code.TUPLE, list, lambda data, _types: tuple(data), members),
    set: Extension(Code.SET, list, lambda data, _types: set(data), members),
    frozenset: Extension(Code.FROZENSET, list, lambda data, _types: frozenset(data), members),
    deque: Extension(Code.DEQUE, lambda value: [list(value), value.maxlen], lambda data, _types: deque(*data), members),
    defaultdict: Extension(Code.DEFAULTDICT, _factory_and_items, _defaultdict, _parts_of_defaultdict),
    # Not Counter(data): that would count the pairs of a damaged list.
    Counter: Extension(Code.COUNTER, dict, lambda data, _types: Counter({**data}), items),
    OrderedDict: Extension(Code.ORDERED_DICT, dict, lambda data, _types: OrderedDict({**data}), items),
}
"""By exact type."""
