"""The bytes that databases hold. A change here means that stored threads cannot be read any more.

Should a form have to change, add a new extension code for it, and leave the reader of the old one and its line here.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
import stored_types as own
from msgpack import ExtType, Unpacker, packb
from pydantic import SecretStr
from sameness import SERDE, is_same

from tracegraph.checkpoint.serde.codes import Code
from tracegraph.constants import MISSING
from tracegraph.messages import AIMessage, HumanMessage
from tracegraph.types import Send

NY = ZoneInfo("America/New_York")

GOLDEN: list[tuple[Code, Any, str]] = [
    (Code.TUPLE, (1, (2,)), "91c706109201d5109102"),
    (Code.SET, {(1, 2)}, "91c7071191c70310920102"),
    (Code.FROZENSET, frozenset({1}), "91d5129101"),
    (Code.DEQUE, deque([1], maxlen=3), "91d61392910103"),
    (Code.DEFAULTDICT, defaultdict(list, a=[1]), "91c7181492c70f2a92a86275696c74696e73a46c69737481a1619101"),
    (Code.COUNTER, Counter("aab"), "91c7071582a16102a16201"),
    (Code.ORDERED_DICT, OrderedDict(b=1, a=2), "91c7071682a16201a16102"),
    (Code.BYTEARRAY, bytearray(b"x"), "91c70317c40178"),
    (Code.TEXT, "\ud800", "91c70518c403eda080"),
    (Code.BIG_INT, 2**64, "91c70b19c409000000000000000001"),
    (Code.BIG_INT, -(2**63) - 1, "91c70b19c409ffffffffffffff7fff"),
    (Code.COMPLEX, 1 + 2j, "91c7131a92cb3ff0000000000000cb4000000000000000"),
    (Code.DECIMAL, Decimal("1.10"), "91c7051ba4312e3130"),
    (Code.FRACTION, Fraction(1, 3), "91c7031c920103"),
    (
        Code.DATETIME,
        dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        "91c7261d92ba323032362d30312d30325430333a30343a30352e303030303036c7072191d62093000000",
    ),
    (
        Code.DATETIME,
        dt.datetime(2026, 11, 1, 1, 30, tzinfo=NY, fold=1),
        "91c72a1d93b3323032362d31312d30315430313a33303a3030c71122b0416d65726963612f4e65775f596f726b01",
    ),
    (
        Code.DATETIME,
        dt.datetime(2026, 11, 1, tzinfo=NY).replace(tzinfo=None),
        "91c7151d91b3323032362d31312d30315430303a30303a3030",
    ),
    (Code.DATE, dt.date(2026, 1, 2), "91c70b1eaa323032362d30312d3032"),
    (Code.TIME, dt.time(1, 2), "91c70a1f91a830313a30323a3030"),
    (Code.TIMEDELTA, dt.timedelta(days=-1, microseconds=5), "91d62093ff0005"),
    (Code.TIMEZONE, dt.timezone(dt.timedelta(hours=1), "home"), "91c70f2192c706209300cd0e1000a4686f6d65"),
    (Code.ZONEINFO, NY, "91c71122b0416d65726963612f4e65775f596f726b"),
    (Code.UUID, UUID(int=1), "91c71223c41000000000000000000000000000000001"),
    (Code.PATH, PurePosixPath("a/b"), "91c7132492ad50757265506f73697850617468a3612f62"),
    (Code.IP, ipaddress.ip_network("10.0.0.0/8"), "91c7182592ab495076344e6574776f726baa31302e302e302e302f38"),
    (Code.PATTERN, re.compile("a", re.IGNORECASE), "91d62692a16122"),
    (Code.RANGE, range(1, 9, 2), "91d62793010902"),
    (Code.SLICE, slice(1, None, None), "91d6289301c0c0"),
    (Code.CONSTANT, ..., "91c70929a8456c6c6970736973"),
    (Code.CONSTANT, MISSING, "91d729a74d495353494e47"),
    (Code.CLASS, int, "91c70e2a92a86275696c74696e73a3696e74"),
    (Code.FORM, list[int], "91c7272b93a25b5dc70f2a92a86275696c74696e73a46c697374c70e2a92a86275696c74696e73a3696e74"),
    (Code.FORM, int | None, "91c7262b93a17cc70e2a92a86275696c74696e73a3696e74d82a92a57479706573a84e6f6e6554797065"),
    (Code.FORM, Literal["a"], "91c70b2b92a74c69746572616ca161"),
    (Code.ENUM, own.Colour.RED, "91c7192c93ac73746f7265645f7479706573a6436f6c6f7572a3726564"),
    (Code.ENUM, own.Shape.DOT, "91c7192c94ac73746f7265645f7479706573a55368617065c0a3444f54"),
    (Code.ENUM, own.Rights.READ, "91c7162c93ac73746f7265645f7479706573a652696768747301"),
    (Code.NAMEDTUPLE, own.Point(1, 2), "91c71b2d93ac73746f7265645f7479706573a5506f696e7482a17801a17902"),
    (Code.DATACLASS, own.Frozen(1, (2,)), "91c7262e93ac73746f7265645f7479706573a646726f7a656e82a46c65667401a57269676874d5109102"),
    (
        Code.DATACLASS,
        Send("n", 1),
        "91c72d2e93b0747261636567726170682e7479706573a453656e6483a361726701a46e6f6465a16ea774696d656f7574c0",
    ),
    (
        Code.PYDANTIC,
        own.Model(items=[1]),
        "91c7373094ac73746f7265645f7479706573a54d6f64656c83a56974656d739101a46e616d65a16ea47365656ed4119092a46e616d65a47365656e",
    ),
    (
        Code.PYDANTIC,
        own.Open(number=2, more=3),
        "91c7243095ac73746f7265645f7479706573a44f70656e81a66e756d626572029081a46d6f726503",
    ),
    (
        Code.PYDANTIC,
        own.Private(),
        "91c73b3096ac73746f7265645f7479706573a75072697661746581a66e756d6265720191a66e756d626572c082a55f6e6f7465a46e6f7465a55f6c69737490",
    ),
    (
        Code.PYDANTIC,
        own.Box[int](held=1),
        "91c72b3093ac73746f7265645f747970657392a3426f78c70e2a92a86275696c74696e73a3696e7481a468656c6401",
    ),
    (Code.SUBCLASS, own.Text("a"), "91c7153193ac73746f7265645f7479706573a454657874a161"),
    (Code.SUBCLASS, own.Table({"a": 1}), "91c7183193ac73746f7265645f7479706573a55461626c6581a16101"),
    (Code.MESSAGE, HumanMessage("hi", id="1"), "91c71f3292ac48756d616e4d65737361676582a7636f6e74656e74a26869a26964a131"),
    (Code.MESSAGE, AIMessage(), "91c70c3292a941494d65737361676580"),
    (Code.PYDANTIC_TEXT, SecretStr("s"), "91c70d3392a9536563726574537472a173"),
]


@pytest.mark.parametrize(("code", "value", "stored"), GOLDEN, ids=lambda part: part.name if type(part) is Code else "")
def test_stored_bytes_are_these(code: Code, value: Any, stored: str) -> None:
    """Written so, and read from so."""
    assert SERDE.dumps_typed([value]) == ("msgpack", bytes.fromhex(stored))
    assert is_same(SERDE.loads_typed(("msgpack", bytes.fromhex(stored))), [value])
    assert _outermost(bytes.fromhex(stored)) == code


def test_numpy_and_pandas_bytes_are_these() -> None:
    """They are read without knowing which version wrote them."""
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    array = [Code.NDARRAY, ["<i8", [2], "C", b"\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"]]
    scalar = [Code.NUMPY_SCALAR, ["<i2", b"\1\0"]]
    series = [Code.PANDAS, ["Series", _extension(*array), _extension(Code.PANDAS, ["RangeIndex", 0, 2, 1, None]), "s", {}]]

    for value, parts in (
        (np.array([1, 2], "<i8"), array),
        (np.int16(1), scalar),
        (pd.Series([1, 2], name="s", dtype="<i8"), series),
    ):
        assert SERDE.dumps_typed([value])[1] == packb([_extension(*parts)])


def test_every_code_is_here() -> None:
    """Those of the libraries above."""
    here = {code for code, _value, _stored in GOLDEN} | {Code.NDARRAY, Code.NUMPY_SCALAR, Code.PANDAS, Code.ATTRS}

    assert here == set(Code)
    assert [*Code] == [*range(16, 16 + len(Code))]


def test_attrs_bytes_are_these() -> None:
    """As those of a dataclass, under another code."""
    pytest.importorskip("attrs")
    from test_attrs import Frozen

    name = Frozen.__module__
    assert SERDE.dumps_typed([Frozen("a")])[1] == packb([_extension(Code.ATTRS, [name, "Frozen", {"text": "a"}])])


def _extension(code: Code, data: Any) -> ExtType:
    return ExtType(code, packb(data))


def _outermost(stored: bytes) -> int:
    unpacker = Unpacker(ext_hook=lambda code, _data: code)
    unpacker.feed(stored)
    return int(unpacker.unpack()[0])
