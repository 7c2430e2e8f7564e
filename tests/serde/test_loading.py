"""Stored bytes are not trusted: which classes come to life, and what damaged or made-up bytes do."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
import stored_types as own
from msgpack import ExtType, packb
from sameness import SERDE, again, is_same
from stored_types import CALLS

from tracegraph.checkpoint.serde import allowlist
from tracegraph.checkpoint.serde.codes import Code
from tracegraph.checkpoint.serde.encrypted import EncryptedSerializer
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.event_hooks import SerdeEvent, emit_serde_event, register_serde_event_listener
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.serde.pickled import PickleSerializer
from tracegraph.errors import TracegraphWarning

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
DEFAULT = JsonPlusSerializer()
OWN = "stored_types"


def stored(code: int, data: Any) -> tuple[str, bytes]:
    """Return bytes that hold one extension, as an attacker would write them."""
    return "msgpack", packb(ExtType(code, packb(data)))


def test_unlisted_class_is_revived_with_one_warning_and_an_event(events: list[SerdeEvent]) -> None:
    """By default; the warning says what to do about it."""
    data = SERDE.dumps_typed([own.Plain(1), own.Plain(2)])

    with pytest.warns(TracegraphWarning, match=r"stored_types.Plain.*with_msgpack_allowlist") as caught:
        assert DEFAULT.loads_typed(data) == [own.Plain(1), own.Plain(2)]
    assert JsonPlusSerializer().loads_typed(data) == [own.Plain(1), own.Plain(2)]

    assert len(caught) == 1
    assert events == 2 * [{"kind": "msgpack_unregistered_allowed", "module": OWN, "name": "Plain"}]


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        (own.Colour.RED, "red"),
        (own.Shape.DOT, "DOT"),
        (own.Rights.READ | own.Rights.WRITE, 3),
        (own.Point(1, (2,)), {"x": 1, "y": (2,)}),
        (own.Plain({1}), {"items": {1}, "name": "n"}),
        (own.Open(number=2, more=3), {"number": 2, "more": 3}),
        (own.Box[int](held=1), {"held": 1}),
        (own.Table(a=1), {"a": 1}),
        (own.Text("a"), "a"),
        (own.Plain, [OWN, "Plain"]),
        (list[own.Plain], ["[]", list, [OWN, "Plain"]]),
    ],
    ids=repr,
)
def test_strict_mode_gives_plain_data_for_unlisted_classes(value: Any, payload: Any, events: list[SerdeEvent]) -> None:
    """And tells whoever listens."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)

    assert serde.loads_typed(SERDE.dumps_typed([value])) == [payload]
    assert serde.loads_typed(SERDE.dumps_typed([value])) == [payload]
    assert [event["kind"] for event in events] == ["msgpack_blocked"]


def test_strict_mode_gives_a_dict_for_a_defaultdict_with_an_unlisted_factory() -> None:
    """What it holds is not lost."""
    from collections import defaultdict

    restored = STRICT.loads_typed(SERDE.dumps_typed(defaultdict(own.Plain, a=1)))

    assert (type(restored), restored) == (dict, {"a": 1})


def test_parametrised_model_with_a_blocked_argument_is_plain_data() -> None:
    """Its origin alone does not make it."""
    serde = STRICT.with_msgpack_allowlist([own.Box])

    assert serde.loads_typed(SERDE.dumps_typed(own.Box[own.Plain](held=own.Plain(1)))) == {"held": {"items": 1, "name": "n"}}


@pytest.mark.parametrize("name", ["TRACEGRAPH_STRICT_MSGPACK", "LANGGRAPH_STRICT_MSGPACK"])
@pytest.mark.parametrize("value", ["1", "true", "YES"])
def test_environment_makes_strict_the_default(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explicit argument still wins."""
    monkeypatch.setenv(name, value)
    data = SERDE.dumps_typed(own.Plain(1))

    assert JsonPlusSerializer().loads_typed(data) == {"items": 1, "name": "n"}
    assert JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(data) == own.Plain(1)


@pytest.mark.parametrize("entry", [own.Plain, (OWN, "Plain"), OWN], ids=repr)
def test_classes_are_listed_as_such_or_by_name_or_by_module(entry: Any) -> None:
    """A listed class needs no warning, and no other does without one."""
    data = SERDE.dumps_typed([own.Plain(1)])

    assert JsonPlusSerializer(allowed_msgpack_modules=[entry]).loads_typed(data) == [own.Plain(1)]
    assert STRICT.with_msgpack_allowlist([entry]).loads_typed(data) == [own.Plain(1)]
    assert DEFAULT.with_msgpack_allowlist([entry]).loads_typed(data) == [own.Plain(1)]
    assert STRICT.loads_typed(data) == [{"items": 1, "name": "n"}]


def test_module_path_may_be_given_in_parts() -> None:
    """As LangGraph's users write it."""
    listed = allowlist.Allowlist("strict", [("tracegraph", "engine", "task", "Task")])

    assert listed.find("tracegraph.engine.task", "Task") is not None
    assert listed.find("tracegraph.engine.node", "Node") is None


def test_strict_mode_imports_nothing_that_is_not_listed() -> None:
    """Importing a module runs it."""
    assert STRICT.loads_typed(stored(Code.DATACLASS, ["antigravity", "Fly", {"a": 1}])) == {"a": 1}
    assert "antigravity" not in sys.modules


def test_number_of_remembered_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from the bytes."""
    monkeypatch.setattr(allowlist, "_MOST_REMEMBERED", 3)
    listed = allowlist.Allowlist("strict")
    for number in range(10):
        listed.find("m", str(number))

    assert len(listed._found) <= 3


EVIL: list[tuple[int, Any]] = [
    *((code, ["os", "system", {"command": "echo"}]) for code in (Code.DATACLASS, Code.ATTRS, Code.PYDANTIC, Code.NAMEDTUPLE)),
    (Code.ENUM, ["os", "system", "echo"]),
    (Code.SUBCLASS, ["os", "system", "echo"]),
    (Code.CLASS, ["os", "system"]),
    (Code.CLASS, ["builtins", "eval"]),
    (Code.DEFAULTDICT, [ExtType(Code.CLASS, packb(["os", "system"])), {}]),
    *((code, [OWN, "Ordinary", {"a": 1}]) for code in (Code.DATACLASS, Code.ATTRS, Code.PYDANTIC, Code.NAMEDTUPLE, Code.ENUM)),
    *((code, ["subprocess", "Popen", {"args": "echo"}]) for code in (Code.DATACLASS, Code.ATTRS, Code.PYDANTIC, Code.SUBCLASS)),
    (Code.SUBCLASS, [OWN, "Colour", "red"]),
    (Code.SUBCLASS, [OWN, "Mode", "other"]),
    (Code.SUBCLASS, [OWN, "Number", True]),
    (Code.SUBCLASS, ["builtins", "object", None]),
    (Code.PYDANTIC, [OWN, ["Ordinary", ExtType(Code.CLASS, packb(["builtins", "int"]))], {}]),
    (Code.PYDANTIC_TEXT, ["BaseModel", "x"]),
    (Code.PYDANTIC_TEXT, ["validate_call", "x"]),
    (Code.PYDANTIC_TEXT, ["NewPath", "x"]),
    (Code.CLASS, ["no.such.module", "X"]),
    (Code.CLASS, [OWN, "NoSuchClass"]),
    (Code.CLASS, [OWN, "Plain.__init__"]),
    (Code.CLASS, ["", ""]),
    (Code.CLASS, [["a"], "b"]),
    (Code.CLASS, [1, 2]),
]


@pytest.mark.parametrize(("code", "data"), EVIL, ids=repr)
@pytest.mark.filterwarnings("ignore::tracegraph.errors.TracegraphWarning")
def test_made_up_names_run_nothing(code: int, data: Any) -> None:
    """Not even where every class is allowed: a class must be what the extension says, and a function is none."""
    CALLS.clear()
    for serde in (SERDE, JsonPlusSerializer()):
        with pytest.raises(UnreadableBytesError, match="TG209"):
            serde.loads_typed(stored(code, data))

    assert CALLS == []


def test_own_code_of_a_class_does_not_run() -> None:
    """Neither when its instance is stored nor when it is revived."""
    values = [own.Evil(), own.Derived(1), own.EvilModel(), own.Table({"a": 1})]
    CALLS.clear()

    restored = again(values)

    assert is_same(restored, values)
    assert CALLS == []


def test_module_attribute_hooks_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's ``__getattr__`` could do anything."""
    module = ModuleType("with_hook")
    module.__getattr__ = lambda name: CALLS.append(name)  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "with_hook", module)
    CALLS.clear()

    with pytest.raises(UnreadableBytesError, match="is gone"):
        SERDE.loads_typed(stored(Code.CLASS, ["with_hook", "X"]))
    assert CALLS == []


BROKEN: list[bytes] = [
    *(b"", b"\xc1", b"\x92\x01", b"\x01\x01", b"\xa1\xff", b"\xdd\xff\xff\xff\xff", b"\x81\x90\x01", b"\x91" * 3000),
    packb(ExtType(99, b"")),
    packb(ExtType(5, packb(["langgraph", "X", {}]))),
    *(packb(ExtType(code, b"")) for code in Code),
    *(packb(ExtType(code, packb(None))) for code in Code),
    packb(ExtType(Code.TUPLE, packb([1]) + packb(2))),
    packb(ExtType(Code.FRACTION, packb(["1e999999999", 1]))),
    packb(ExtType(Code.FRACTION, packb([1, 0]))),
    packb(ExtType(Code.DECIMAL, packb("x"))),
    packb(ExtType(Code.ZONEINFO, packb("../etc/passwd"))),
    packb(ExtType(Code.ZONEINFO, packb("No/Such"))),
    packb(ExtType(Code.PATTERN, packb(["(", 0]))),
    packb(ExtType(Code.PATH, packb(["WindowsPath" if sys.platform != "win32" else "PosixPath", "x"]))),
    packb(ExtType(Code.MESSAGE, packb(["ToolMessage", {"content": "x"}]))),
    packb(ExtType(Code.ENUM, packb([OWN, "Colour", "green"]))),
    packb(ExtType(Code.ENUM, packb([OWN, "Colour", None, "GREEN"]))),
    packb(ExtType(Code.FORM, packb(["Other", None]))),
]


@pytest.mark.parametrize("data", BROKEN, ids=lambda data: data[:12].hex())
def test_damaged_bytes_are_one_clear_error(data: bytes) -> None:
    """Whatever is wrong with them."""
    with pytest.raises(UnreadableBytesError, match=r"^\[TG209\] stored bytes cannot be read: ."):
        SERDE.loads_typed(("msgpack", data))


def test_nesting_made_up_to_exhaust_the_stack_is_an_error() -> None:
    """It would kill the process, not raise."""
    data = packb([])
    for _ in range(2000):
        data = packb(ExtType(Code.TUPLE, data))

    with pytest.raises(UnreadableBytesError, match="100 objects"):
        SERDE.loads_typed(("msgpack", data))


def test_trailing_bytes_are_an_error_at_every_depth() -> None:
    """Deep levels are read by another reader."""
    data = packb([]) + b"\x01"
    for _ in range(20):
        with pytest.raises(UnreadableBytesError):
            SERDE.loads_typed(("msgpack", data))
        data = packb([ExtType(Code.TUPLE, data)])


@pytest.mark.parametrize("kind", ["pickle", "json", "msgpack+aes", ""])
def test_kinds_of_other_serialisers_are_an_error(kind: str) -> None:
    """The one for pickle names the serialiser that reads it."""
    with pytest.raises(UnreadableBytesError, match="PickleSerializer" if kind == "pickle" else repr(kind).replace("+", ".")):
        SERDE.loads_typed((kind, b""))


@pytest.mark.parametrize("slots", [False, True])
def test_class_may_change_after_its_instance_was_stored(slots: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """New fields get their defaults, fields that are gone are dropped or stay as attributes."""

    @dataclass(slots=slots)
    class Before:
        kept: int
        gone: int = 1

    @dataclass(slots=slots)
    class After:
        kept: int
        new: int = 5

    @dataclass(slots=slots)
    class Demanding:
        kept: int
        needed: int

    for kind in (Before, After, Demanding):
        kind.__module__, kind.__qualname__ = OWN, f"Changing{slots}"
    monkeypatch.setattr(own, f"Changing{slots}", Before, raising=False)
    data = SERDE.dumps_typed(Before(3))
    monkeypatch.setattr(own, f"Changing{slots}", After)
    fresh = JsonPlusSerializer(allowed_msgpack_modules=True)

    restored = fresh.loads_typed(data)
    monkeypatch.setattr(own, f"Changing{slots}", Demanding)

    assert (restored, type(restored)) == (After(3, 5), After)
    with pytest.raises(UnreadableBytesError, match="now needs 'needed'.*give it a default"):
        JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(data)


def test_model_and_named_tuple_may_change_too() -> None:
    """By the same rules."""
    assert SERDE.loads_typed(stored(Code.PYDANTIC, [OWN, "Model", {"items": [], "gone": 1}])) == own.Model(items=[])
    assert SERDE.loads_typed(stored(Code.PYDANTIC, [OWN, "Private", {}])) == own.Private()
    assert SERDE.loads_typed(stored(Code.NAMEDTUPLE, [OWN, "Point", {"x": 1, "gone": 2}])) == own.Point(1, 0)
    for code, data in ((Code.PYDANTIC, [OWN, "Model", {}]), (Code.NAMEDTUPLE, [OWN, "Point", {"y": 1}])):
        with pytest.raises(UnreadableBytesError, match="now needs '(items|x)'"):
            SERDE.loads_typed(stored(code, data))


def test_attributes_with_odd_names_are_dropped() -> None:
    """They could not have been stored."""
    assert vars(SERDE.loads_typed(stored(Code.DATACLASS, [OWN, "Plain", {"items": 1, "name": "n", 5: 6}]))) == {
        "items": 1,
        "name": "n",
    }


def test_listener_that_raises_does_not_stop_a_load() -> None:
    """It becomes a warning; and one that has left twice does not mind."""

    def listener(_event: SerdeEvent) -> None:
        raise RuntimeError("no")

    stop = register_serde_event_listener(listener)
    with pytest.warns(TracegraphWarning, match="raised RuntimeError"):
        emit_serde_event({"kind": "msgpack_blocked", "module": "m", "name": "n"})
    stop()
    stop()
    emit_serde_event({"kind": "msgpack_blocked", "module": "m", "name": "n"})


def test_pickle_is_there_when_asked_for_by_name() -> None:
    """It reads nothing else, and nobody else reads it."""
    serde = PickleSerializer()
    data = serde.dumps_typed(own.Colour.RED)

    assert (data[0], serde.loads_typed(data)) == ("pickle", own.Colour.RED)
    with pytest.raises(UnreadableBytesError, match="'msgpack'"):
        serde.loads_typed(("msgpack", b"\x01"))
    assert EncryptedSerializer.from_aes(b"k" * 16, serde=serde).dumps_typed(1)[0] == "pickle+aes-gcm"
