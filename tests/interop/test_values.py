"""What LangGraph's serialiser wrote is what comes back, without LangGraph having a part in it."""

from __future__ import annotations

import re
from collections import deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Address
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import langgraph.types as theirs
import numpy as np
import pytest
from app_types import Aliased, Colour, Customer, Order, Point
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, FunctionMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from pydantic import SecretStr

import tracegraph.messages as our_messages
from tracegraph.channels.delta import DeltaSnapshot
from tracegraph.interop.langgraph import ThreadRefusedError
from tracegraph.interop.langgraph import messages as moved_messages
from tracegraph.interop.langgraph.decoder import Decoder
from tracegraph.interop.langgraph.stored import Place
from tracegraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy

PLACE = Place("t1", "", "c1")


def decoded(value: Any, decoder: Decoder | None = None) -> Any:
    kind, data = JsonPlusSerializer(pickle_fallback=False).dumps_typed(value)
    return (decoder or Decoder()).value(kind, data, PLACE, "channel 'x'")


SAME = [
    *(None, b"bytes", bytearray(b"array"), True, -(2**63), 1.5, "text \N{SNOWMAN}", ["a", {"k": [None]}], {1: "int key"}),
    *({"a", "b"}, frozenset({1}), {(1, (2, 3))}, deque([1, 2]), UUID(int=7), Decimal("1.10")),
    *(
        datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
        datetime(2026, 1, 2),  # noqa: DTZ001  # a naive one
        date(2026, 1, 2),
        time(1, 2, 3, 4),
        timedelta(days=1, seconds=2),
    ),
    *(timezone(timedelta(hours=2), "X"), ZoneInfo("Europe/Paris"), IPv4Network("10.0.0.0/8"), IPv6Address("::1")),
    *(Path("a") / "b", re.compile("a+", re.IGNORECASE), SecretStr("s"), {(1, 2): "tuple key"}),
    *(
        HumanMessage("hi", id="1"),
        AIMessage("", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "c"}]),
        AIMessageChunk("piece"),
    ),
    *(RemoveMessage("1"), ChatMessage("x", role="critic"), Document("text", metadata={"k": 1})),
]


@pytest.mark.parametrize("value", SAME, ids=repr)
def test_value_comes_back_the_same(value: Any) -> None:
    """Equal, and of the same type."""
    found = decoded(value)

    assert found == value
    assert type(found) is type(value)


def test_tuples_are_lists() -> None:
    """As they are after a round trip through LangGraph itself."""
    assert decoded((1, (2,))) == [1, [2]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back(order: Any) -> None:
    """With shape and type, and writable."""
    given = np.array([[1, 2, 3], [4, 5, 6]], dtype=">i4", order=order)

    found = decoded(given)

    assert (found == given).all()
    assert (found.dtype, found.shape, found.flags.writeable) == (given.dtype, given.shape, True)


def test_types_of_langgraph_become_ours() -> None:
    """Also within each other."""
    given = {
        "send": theirs.Send("n", {"q": theirs.Interrupt("why?", id="i1")}),
        "timed": theirs.Send("n", 1, timeout=2.0),
        "command": theirs.Command(update={"a": 1}, goto=[theirs.Send("n", 2)], resume="r"),
        "overwrite": theirs.Overwrite([1]),
        "snapshot": _DeltaSnapshot([theirs.Overwrite(1)]),
    }

    assert decoded(given) == {
        "send": Send("n", {"q": Interrupt("why?", "i1")}),
        "timed": Send("n", 1, timeout=TimeoutPolicy(run_timeout=2.0)),
        "command": Command(update={"a": 1}, goto=[Send("n", 2)], resume="r"),
        "overwrite": Overwrite([1]),
        "snapshot": DeltaSnapshot([Overwrite(1)]),
    }


def test_messages_become_ours_where_langchain_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that ours have a place for; what only LangChain knows is among the extras."""
    monkeypatch.setattr(moved_messages, "_langchain", lambda: None)
    call = {"name": "f", "args": {}, "id": "c", "type": "tool_call"}
    given = [
        HumanMessage("hi", id="1", name="Ann", additional_kwargs={"k": 1}),
        AIMessage("", id="2", tool_calls=[call], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        AIMessageChunk("piece", id="3"),
        FunctionMessage("done", name="f", id="4"),
        ChatMessage("no", role="critic", id="5"),
        RemoveMessage("1"),
    ]

    human, ai, chunk, function, chat, remove = decoded(given)

    assert human == our_messages.HumanMessage("hi", id="1", name="Ann", additional_kwargs={"k": 1})
    assert (type(ai), ai.tool_calls, ai.usage_metadata["total_tokens"]) == (our_messages.AIMessage, [call], 3)
    assert (type(chunk), chunk.content) == (our_messages.AIMessage, "piece")
    assert (type(function), function.tool_call_id, function.content) == (our_messages.ToolMessage, "f", "done")
    assert (chat.role, remove.id) == ("critic", "1")


def test_message_that_langchain_no_longer_accepts_is_kept() -> None:
    """It was valid when it was stored."""
    data = JsonPlusSerializer().dumps_typed(HumanMessage("hi"))[1]
    assert data.count(b"\xa7content\xa2hi") == 1

    found = Decoder().value("msgpack", data.replace(b"\xa7content\xa2hi", b"\xa7content\xcd\x00\x07"), PLACE, "channel 'x'")

    assert (type(found), found.content) == (HumanMessage, 7)


STRANGERS = [Order(1, ["a"]), Colour.RED, Point(1, 2), Customer(name="Ann"), Aliased(Number=3)]


def test_classes_nobody_allowed_stay_data_and_are_noted() -> None:
    """As LangGraph does it in its strict mode; nothing is imported for it."""
    decoder = Decoder()

    found = decoded(STRANGERS, decoder)

    assert found[:3] == [{"number": 1, "lines": ["a"]}, "red", {"x": 1, "y": 2}]
    assert found[3:] == [{"name": "Ann", "colour": "red"}, {"number": 3}]
    assert set(decoder.unknown) == {("app_types", type(value).__name__) for value in STRANGERS}
    assert decoder.unknown["app_types", "Order"] == "channel 'x' of checkpoint c1"


def test_allowed_classes_come_to_life() -> None:
    """All of a module, or one by one; a model that its own constructor refuses is made unchecked, as in LangGraph."""
    decoder = Decoder(["app_types"])

    found = decoded(STRANGERS, decoder)

    assert found == STRANGERS
    assert [type(value) for value in found] == [type(value) for value in STRANGERS]
    assert decoder.unknown == {}
    assert decoded(Order(1), Decoder([("app_types", "Order")])) == Order(1)


def test_allowed_class_that_is_gone_is_named() -> None:
    """With the place of the value."""
    kind, data = JsonPlusSerializer().dumps_typed(Order(1))

    with pytest.raises(ThreadRefusedError, match="channel 'x' of checkpoint c1.*'Older' of module 'app_types'"):
        Decoder(["app_types"]).value(kind, data.replace(b"Order", b"Older"), PLACE, "channel 'x'")


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("pickle", b"\x80\x04N.", "unpickling runs whatever code the database names"),
        ("msgpack+aes", b"x" * 40, "encrypted"),
        ("yaml", b"a: 1", "no form that LangGraph's serialiser writes"),
        ("msgpack", b"\xc7\x00\x63", "cannot be read"),
        ("msgpack", b"\x01\x01", "more than one value"),
        ("msgpack", b"\xc7\x01\x63\x01", "extension 99 is none"),
        ("json", b"{", "cannot be read"),
    ],
)
def test_unreadable_value_is_refused_with_its_place(kind: str, data: bytes, why: str) -> None:
    """And nothing is unpickled."""
    with pytest.raises(ThreadRefusedError, match=f"thread 't1'.*channel 'x' of checkpoint c1.*{why}"):
        Decoder().value(kind, data, PLACE, "channel 'x'")


def test_values_made_up_to_exhaust_the_stack_are_refused() -> None:
    """Each extension is read by a call of its own, in C."""
    data = b"\x01"
    for _ in range(200):
        data = b"\xc9" + len(data).to_bytes(4) + b"\x07" + data

    with pytest.raises(ThreadRefusedError, match="more than 100 objects lie within each other"):
        Decoder().value("msgpack", data, PLACE, "channel 'x'")


OLD_JSON = b"""[
  {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"],
   "kwargs": {"content": "hi", "id": "1"}},
  {"lc": 2, "type": "constructor", "id": ["datetime", "datetime"], "method": "fromisoformat", "args": ["2026-01-02T03:04:05"]},
  {"lc": 2, "type": "constructor", "id": ["builtins", "set"], "args": [["a"]]},
  {"lc": 2, "type": "constructor", "id": ["builtins", "bytes"], "method": "fromhex", "args": ["ff"]},
  {"lc": 2, "type": "constructor", "id": ["langgraph", "constants", "Send"], "kwargs": {"node": "n", "arg": {"a": 1}}},
  {"lc": 2, "type": "constructor", "id": ["app_types", "Customer"], "method": [null, "construct"], "kwargs": {"name": "Ann"}},
  {"id": ["just", "data"], "lc": 7}
]"""


def test_json_of_the_first_versions_is_read() -> None:
    """LangChain's form, and LangGraph's own before there was msgpack."""
    found = Decoder([("app_types", "Customer")]).value("json", OLD_JSON, PLACE, "channel 'x'")

    assert found == [
        HumanMessage("hi", id="1"),
        datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001  # same
        {"a"},
        b"\xff",
        Send("n", {"a": 1}),
        Customer(name="Ann"),
        {"id": ["just", "data"], "lc": 7},
    ]


def test_questions_of_older_versions_keep_their_ids() -> None:
    """Once made from the namespace; before that there was none, and the question is asked anew when the thread is resumed."""
    decoder = Decoder()
    held = JsonPlusSerializer().dumps_typed(theirs.Interrupt("why?", id="i1"))[1]
    assert held.count(b"\xa2id\xa2i1") == 1
    older = held.replace(b"\xa2id\xa2i1", b"\xa2ns\x91\xa1a")
    oldest = held.replace(b"\xa2id\xa2i1", b"\xa4when\xc0")

    found = [
        decoder.value("msgpack", data[:1] + bytes([data[1] + grown]) + data[2:], PLACE, "a write")
        for data, grown in ((held, 0), (older, len(older) - len(held)), (oldest, len(oldest) - len(held)))
    ]

    assert [question.value for question in found] == ["why?"] * 3
    assert [question.id for question in found] == ["i1", theirs.Interrupt("why?", ns=["a"]).id, "placeholder-id"]
