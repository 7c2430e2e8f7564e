"""What cannot come back the same is refused, and the error says where it is."""

from __future__ import annotations

import datetime as dt
import io
import sys
import threading
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgpack
import pytest
import stored_types as own
from sameness import SERDE, again

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde import extensions
from tracegraph.checkpoint.serde.codes import Code
from tracegraph.checkpoint.serde.errors import UnserializableValueError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.constants import Missing
from tracegraph.errors import InvalidInputError
from tracegraph.graph import END, START, StateGraph
from tracegraph.messages import HumanMessage
from tracegraph.types import Send

LOCK = threading.Lock()
# A zone of one rule: counts of its parts (one type, four letters), offset 0, and its abbreviation.
ZONE_FILE = b"TZif" + bytes(32) + bytes([0, 0, 0, 1, 0, 0, 0, 4]) + bytes(6) + b"UTC\0"


class OwnZone(dt.tzinfo):
    pass


def refused(value: Any) -> UnserializableValueError:
    with pytest.raises(UnserializableValueError) as caught:
        SERDE.dumps_typed(value)
    return caught.value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (LOCK, ""),
        ([1, [LOCK]], "[1][0]"),
        ({"user": own.Plain({"session": (1, LOCK)})}, "['user'].items['session'][1]"),
        ({1: {own.Frozen(1, len): 2}}, "[1].keys()[0].right"),
        ({"a": {(1, len)}}, "['a'][0][1]"),
        (frozenset({len}), "[0]"),
        (deque([1, LOCK], maxlen=3), "[1]"),
        (defaultdict(list, a=LOCK), "['a']"),
        (defaultdict(lambda: 1), ""),
        ([Counter({len: 1})], "[0].keys()[0]"),
        (OrderedDict(a=LOCK), "['a']"),
        (own.Point(1, LOCK), ".y"),
        (own.Table(a=LOCK), "['a']"),
        (own.Row([LOCK]), "[0]"),
        (own.Model(items=[LOCK]), ".items[0]"),
        (own.Open(more=LOCK), ".more"),
        (HumanMessage("a", additional_kwargs={"x": LOCK}), ".additional_kwargs['x']"),
        (Send("n", LOCK), ".arg"),
        (dt.datetime(2026, 1, 1, tzinfo=OwnZone()), ".tzinfo"),
        (dt.time(1, tzinfo=OwnZone()), ".tzinfo"),
        (slice(1, LOCK), ".stop"),
        (typing.Annotated[int, LOCK], "[1]"),
        (list[typing.TypeVar("T")], "[0]"),  # type: ignore[misc]
        ({"a": bytearray(b"x"), "b": ValueError(), "c": LOCK}, "['c']"),
    ],
    ids=repr,
)
def test_path_leads_to_the_culprit(value: Any, path: str) -> None:
    """As one would write it in Python."""
    error = refused(value)

    assert error.path == path
    assert not path or f" object at {path} cannot be serialised: " in str(error)


def test_path_leads_into_attributes_of_derived_containers() -> None:
    """Beside what they contain; and text has no members that could be at fault."""
    text, table, named = own.Text("ab"), own.Table(a=1), own.Marked(1)
    for value in (text, table, named):
        value.note = LOCK  # type: ignore[attr-defined]

        assert refused([value]).path == "[0].note"


@dataclass
class _Hidden:
    value: int


def test_class_that_cannot_be_found_again_is_refused() -> None:
    """Saved by a name that leads nowhere, it could not be loaded."""

    @dataclass
    class Local:
        value: int

    class LocalTuple(NamedTuple):
        value: int

    for value in (Local(1), LocalTuple(1), Local):
        assert "cannot be found in module" in str(refused(value))
    _Hidden.__module__ = "no.such.module"
    assert "'no.such.module'" in str(refused(_Hidden(1)))


@pytest.mark.parametrize(
    "value",
    [
        *(LOCK, len, lambda: 1, own.Ordinary(), iter(()), (x for x in ()), io.BytesIO(), memoryview(b"x"), [memoryview(b"x")]),
        *({"b": memoryview(b"x"), "t": "\ud800"}, [msgpack.ExtType(16, b""), b"x", bytearray()], Missing("OTHER")),
        *(typing.List[int], typing.Callable[[], int], ZoneInfo.from_file(io.BytesIO(ZONE_FILE))),  # noqa: UP006
    ],
    ids=lambda value: type(value).__name__,
)
def test_unknown_types_are_refused(value: Any) -> None:
    """No pickle in the dark."""
    assert isinstance(refused({"a": [value]}), TypeError)


def test_classes_are_recognised_without_optional_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only loaded ones are asked: nobody can have an object of another."""
    for name in ("numpy", "pandas", "pydantic"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    assert extensions._extension_for.__wrapped__(own.Plain).code is Code.DATACLASS


def test_error_has_its_facts() -> None:
    """As attributes, and in its text; a saver adds the channel."""
    error = refused({"a": LOCK})
    named = error.in_channel("user")

    assert (named.value, named.path, named.channel, error.channel) == (LOCK, "['a']", "user", None)
    assert str(named).startswith("[TG208] channel 'user': lock object at ['a'] cannot be serialised: no type that is stored;")
    assert "UntrackedValue" in str(error)


def test_what_contains_itself_is_refused() -> None:
    """At whatever level the ring closes."""
    ring: list[Any] = []
    ring.append({"a": (ring,)})
    plain = own.Plain()
    plain.items.append(plain)

    assert (refused(ring).path, refused(ring).reason) == ("[0]['a'][0]", "it contains itself")
    assert refused(["x", plain]).path == "[1].items[0]"


def test_shared_parts_are_no_ring() -> None:
    """A value may be in two places."""
    shared = (1, [2])

    assert refused([shared, shared, LOCK]).path == "[2]"


def nested(levels: int, *, within: Any = ()) -> Any:
    for _ in range(levels):
        within = (within,)
    return within


def test_nesting_has_a_limit_on_both_sides() -> None:
    """What can be stored can be loaded, wherever in a program."""
    assert again(nested(99)) == nested(99)
    error = refused(nested(101))

    assert "more than 100 objects deep" in str(error)
    assert error.path == "[0]" * 11 + "...[0]"


def test_lists_nest_deeper_but_not_for_ever() -> None:
    """They cost no calls."""
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    assert SERDE.dumps_typed(again(deep)) == SERDE.dumps_typed(deep)
    for _ in range(2000):
        deep = [deep]
    assert "recursion limit" in str(refused(deep))


def test_whatever_nesting_can_be_stored_can_be_loaded() -> None:
    """The two limits of msgpack are one level apart."""
    deep: Any = []
    for _ in range(1100):
        deep = [deep]
        try:
            data = SERDE.dumps_typed(deep)
        except UnserializableValueError:
            break
        SERDE.loads_typed(data)
    else:
        raise AssertionError("there is no limit")


def test_pickle_fallback_is_an_error_that_names_the_alternative() -> None:
    """It must not be ignored: what relied on it would fail much later."""
    with pytest.raises(InvalidInputError, match="PickleSerializer"):
        JsonPlusSerializer(pickle_fallback=True)


def test_nothing_is_written_when_a_channel_cannot_be() -> None:
    """The saver's error names the channel, the serialiser's the path in it."""
    saver = InMemorySaver(serde=JsonPlusSerializer())
    graph = StateGraph(dict).add_node("n", lambda _s: {"fine": 1, "user": {"session": [LOCK]}})
    graph.add_edge(START, "n").add_edge("n", END)
    config = {"configurable": {"thread_id": "1"}}

    with pytest.raises(TypeError, match=r"\['session'\]\[0\]"):
        graph.compile(checkpointer=saver).invoke({"a": 1}, config, durability="sync")

    writes = [channel for kept in saver.writes.values() for _task, channel, _value, _path in kept.values()]
    assert "user" not in writes and "fine" not in writes
