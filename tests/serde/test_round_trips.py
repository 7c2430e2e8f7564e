"""Each kind of value comes back equal and of the same type."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Literal, Union
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
import stored_types as own
from sameness import SERDE, again, is_same

from tracegraph.channels.delta import DeltaSnapshot
from tracegraph.constants import MISSING, UNCHANGED
from tracegraph.errors import NodeError
from tracegraph.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from tracegraph.types import (
    Command,
    GraphOutput,
    Interrupt,
    Overwrite,
    PregelTask,
    Send,
    StateSnapshot,
    StateUpdate,
    TimeoutPolicy,
)

NY = ZoneInfo("America/New_York")


def marked(value: Any, **attributes: Any) -> Any:
    for name, item in attributes.items():
        setattr(value, name, item)
    return value


PLAIN: list[Any] = [
    *(None, True, False, 0, -1, 2**63, 2**64 - 1, -(2**63), 1.5, float("inf"), float("nan"), -0.0, "", "ä€😀", b"", b"\xc4"),
    [1, [2, [3]]],
    {"a": {"b": [1, None]}},
    {1: "int", 1.5: "float", b"b": "bytes", None: "none", True and "s": True, (1, (2,)): "tuple", frozenset({1}): "set"},
    {dt.date(2026, 1, 1): 1, UUID(int=1): 2, own.Colour.RED: 3, 2**70: 4, own.Level.LOW: 5, Decimal(1) / 3: 6},
    {"keys": {False: 0, 2: 1}},
]
NUMBERS: list[Any] = [
    *(2**64, -(2**63) - 1, 2**1000, -(2**1000), 1 << 127, 1 << 128, -(1 << 127)),
    *(1 + 2j, complex("nan"), complex(-0.0, float("inf"))),
    *(Decimal("1.10"), Decimal("-0"), Decimal("NaN"), Decimal("sNaN123"), Decimal("Infinity"), Decimal("1E+1000")),
    *(Fraction(1, 3), Fraction(-(2**80), 3)),
]
TIMES: list[Any] = [
    dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC).replace(tzinfo=None),
    dt.datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=dt.UTC).replace(tzinfo=None),
    dt.datetime(2026, 3, 7, 9, tzinfo=NY),
    dt.datetime(2026, 11, 1, 1, 30, tzinfo=NY, fold=1),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30), "Home")),
    *(dt.datetime.min, dt.datetime.max),  # noqa: DTZ901  # without a zone, as some are
    dt.date(1, 1, 1),
    *(dt.time(1, 2, 3, 4), dt.time(1, tzinfo=NY, fold=1), dt.time(1, tzinfo=dt.UTC)),
    *(dt.timedelta.min, dt.timedelta.max, dt.timedelta(microseconds=-1)),
    *(dt.UTC, dt.timezone(dt.timedelta(hours=1, seconds=1)), NY, ZoneInfo("UTC")),
]
SMALL: list[Any] = [
    UUID("12345678-1234-5678-1234-567812345678"),
    *(Path("a/b"), Path(), PurePosixPath("/x"), PureWindowsPath("C:\\x")),
    *(ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("fe80::1%eth0"), ipaddress.ip_network("10.0.0.0/8")),
    *(ipaddress.ip_network("2001:db8::/32"), ipaddress.ip_interface("10.0.0.1/8"), ipaddress.ip_interface("::1/64")),
    *(re.compile("a(b)", re.IGNORECASE | re.MULTILINE), re.compile(b"x"), re.compile("(?i)x")),
    *(range(1, 10, 3), slice(None, (1,), "x"), ..., NotImplemented, MISSING, UNCHANGED),
]
CONTAINERS: list[Any] = [
    *((), (1, (2, [3])), set(), {(1, 2), (3, 4)}, frozenset({(1, frozenset({2}))}), bytearray(b"x"), bytearray()),
    [bytearray(b"x"), {"a": bytearray(b"y"), "b": b"y"}, (bytearray(b"z"), b"z")],
    *(deque([1, (2,)]), deque([1, 2], maxlen=3), deque([], maxlen=0)),
    *(defaultdict(list, a=[1]), defaultdict(None, a=1), defaultdict(own.Plain, a=own.Plain()), defaultdict(own.Model)),
    *(Counter("abba"), Counter({(1, 2): -1}), OrderedDict(b=1, a=2)),
    *("\ud800", ["a\udfff"], {"\ud800": "\ud800"}, ("\ud800",), {"\ud800"}, {"b": bytearray(b"x"), "t": "\ud800"}),
]
OBJECTS: list[Any] = [
    *(own.Colour.RED, own.Colour.CRIMSON, own.Shape.DOT, own.Shape.LINE, own.Shape.YES, own.Shape.FUNCTION),
    *(own.Level.LOW, own.Mode.FAST, own.Rights.READ, own.Rights.READ | own.Rights.WRITE, own.Rights(0)),
    *(own.Point(1), own.Point((1,), [own.Point(2)]), marked(own.Marked(1, 2), note=(3,))),
    *(own.Plain([own.Plain()]), own.Frozen((1,), {2}), own.Derived(3), own.DictAndData("x")),
    *(own.Model(items=[(1,), {2}]), own.Model(items=[], name="n"), own.Model(items=[], seen={(1, 2)})),
    *(own.Open(), own.Open(number=1, more=(1,)), own.Private(), own.Private(number=2), own.Names(["a"])),
    *(own.Box(held=(1,)), own.Box[int](held=1), own.Box[own.Box[list[int]]](held=own.Box[list[int]](held=[1]))),
    *(own.Text("t"), own.Number(3), own.Number(2**80), own.Real(1.5), own.Raw(b"x"), own.Pair((1, [2])), own.Group({1})),
    *(marked(own.Table({"a": 1}), note=[(1,)]), own.Row([(1,)]), own.Bag({1}), own.Queue([1], maxlen=2)),
    *(own.Tally("aab"), own.Ordered(b=1, a=2), own.Lists(list, a=[1]), marked(own.Slotted(a=1), mark=(1,))),
    [pydantic.SecretStr("s"), pydantic.SecretBytes(b"s"), own.Secretive(secret="s")],
    [pydantic.HttpUrl("https://example.org/x?y=1"), pydantic.AnyUrl("x://y"), pydantic.PostgresDsn("postgres://u:p@h/db")],
]
FORMS: list[Any] = [
    *(int, own.Model, own.Box[int], own.Colour, type(None), Any, Literal["a", 1], Annotated[int, "note", (1,)]),
    *(list[int], dict[str, list[own.Model]], tuple[int, ...], int | None, Union[str, None], Union[int, Literal["a"]], list[Any]),  # noqa: UP007  # not the same type as `|` makes
]
OURS: list[Any] = [
    *(Send("n", {"a": (1,)}), Send("n", 1, timeout=2.0)),
    Command(update={"a": {1}}, goto=[Send("n", 1), "m"], graph=Command.PARENT),
    *(Interrupt((1,), "id"), Interrupt("q", "id", response_schema=own.Model), Interrupt("q", "id", response_schema=int | None)),
    *(Overwrite({1}), TimeoutPolicy(run_timeout=1.5), StateUpdate({"a": 1}, "n"), DeltaSnapshot([(1,)]), GraphOutput({"a": 1})),
    PregelTask("id", "n", ("__pregel_pull", "n"), interrupts=(Interrupt(1, "i"),)),
    StateSnapshot({"a": 1}, ("n",), {}, None, None, None, (), ()),
]
MESSAGES: list[Any] = [
    *(HumanMessage("hi", id="1"), SystemMessage("s"), AIMessage(), AIMessageChunk("a"), BaseMessage("b"), RemoveMessage("7")),
    HumanMessage(["a", {"type": "text", "text": "b"}], name="me", additional_kwargs={"k": (1,)}, response_metadata={"m": 1}),
    AIMessage(
        "a", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}], usage_metadata={"total_tokens": 3}
    ),
    *(ToolMessage("t", tool_call_id="c", status="error", artifact={1, 2}), ToolMessage(0, tool_call_id="c", artifact=False)),
    ChatMessage("c", role="critic"),
]
ALL = [*PLAIN, *NUMBERS, *TIMES, *SMALL, *CONTAINERS, *OBJECTS, *FORMS, *OURS, *MESSAGES]


@pytest.mark.parametrize("value", ALL, ids=lambda value: type(value).__name__)
def test_value_comes_back_the_same(value: Any) -> None:
    """By itself, and within everything that can hold it."""
    assert is_same(again(value), value)
    assert is_same(
        again([value, {"k": value}, (value,), own.Plain([value])]), [value, {"k": value}, (value,), own.Plain([value])]
    )


def test_small_kinds_have_tags_of_their_own() -> None:
    """A saver may keep them as they are."""
    assert [SERDE.dumps_typed(value) for value in (None, b"b", bytearray(b"a"))] == [
        ("null", b""),
        ("bytes", b"b"),
        ("bytearray", b"a"),
    ]
    assert SERDE.dumps_typed([None])[0] == "msgpack"


def test_zone_keeps_its_rules() -> None:
    """An instant with an offset would be an hour off after the clocks change."""
    before = dt.datetime(2026, 3, 7, 9, tzinfo=NY)

    assert (again(before) + dt.timedelta(days=1)).utcoffset() == dt.timedelta(hours=-4)


def test_counting_on_after_a_restore_works() -> None:
    """The behaviour of the containers is there again, not only their content."""
    lists, tally, last = again((defaultdict(list), Counter("a"), deque([1, 2], maxlen=2)))

    lists["new"].append(1)
    tally.update("ab")
    last.append(3)

    assert (lists, tally, list(last)) == ({"new": [1]}, {"a": 2, "b": 1}, [2, 3])


def test_order_of_an_ordered_dict_is_its_own() -> None:
    """``move_to_end`` changes it, and the dict below does not know."""
    for kind in (OrderedDict, own.Ordered):
        value = kind(a=1, b=2)
        value.move_to_end("a")

        assert list(again(value)) == ["b", "a"]


def test_errors_come_back_as_text() -> None:
    """At every depth: an exception's arguments need not be data, nor enough to build it again."""
    assert again([ValueError("x"), {"e": KeyError(1)}]) == ["ValueError('x')", {"e": "KeyError(1)"}]
    assert again(NodeError("n", ValueError("x"))) == NodeError("n", "ValueError('x')")


def test_dataclass_keeps_what_its_init_does_not_take() -> None:
    """Fields with init=False, and attributes that are no fields; cached properties are made anew."""
    value = own.Derived(3)
    assert value.costly == 4

    restored = again(value)

    assert vars(restored) == {"base": 3, "twice": 6, "extra": [3]}
    assert (restored.fixed, restored.costly) == (7, 4)


def test_model_keeps_which_fields_were_set() -> None:
    """``model_dump(exclude_unset=True)`` says the same before and after."""
    for value in (own.Model(items=[]), own.Model(items=[], name="n"), own.Open(more=1), own.Open(number=2)):
        assert again(value).model_fields_set == value.model_fields_set
        assert again(value).model_dump(exclude_unset=True) == value.model_dump(exclude_unset=True)


def test_model_keeps_private_attributes_and_makes_cached_ones_anew() -> None:
    """As for dataclasses."""
    value = own.Private()
    value._list.append(1)
    assert value.costly == 2

    restored = again(value)

    assert (restored, restored._list, restored._note, restored.costly) == (value, [1], "note", 2)
    assert "costly" not in vars(again(value))


def test_default_of_an_empty_message_is_not_shared() -> None:
    """Defaults are left out, and made anew for each message."""
    first, second = again([AIMessage("a"), AIMessage("b")])

    first.tool_calls.append(1)

    assert second.tool_calls == again(AIMessage()).tool_calls == []


def test_equal_is_not_the_same() -> None:
    """A message whose field equals its default, but is of another type, keeps it."""
    assert again(ToolMessage("t", tool_call_id="c", status=own.Text("success"))).status.__class__ is own.Text


def test_user_types_below_messages_are_stored_as_what_they_are() -> None:
    """A class derived from a message is a dataclass like any other."""
    assert is_same(again(own.Plain([HumanMessage("a")])), own.Plain([HumanMessage("a")]))
