"""Encryption around another serialiser."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import stored_types as own

from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.encrypted import CipherProtocol, EncryptedSerializer
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.serde.pickled import PickleSerializer
from tracegraph.errors import InvalidInputError

KEY = b"0123456789abcdef"


class Reversing:
    """A cipher of a user's own."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "rev", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "rev"
        return ciphertext[::-1]


@pytest.mark.parametrize("value", [None, b"b", bytearray(b"a"), {"a": {(1, 2)}}, "secret text"], ids=repr)
@pytest.mark.parametrize("size", [16, 24, 32])
def test_values_come_back_and_do_not_show(value: Any, size: int) -> None:
    """With keys of each size; the kind tells how to read it."""
    serde = EncryptedSerializer.from_aes(b"k" * size)
    kind, data = serde.dumps_typed(value)

    assert serde.loads_typed((kind, data)) == value
    assert kind == f"{JsonPlusSerializer().dumps_typed(value)[0]}+aes-gcm"
    assert b"secret" not in data


def test_equal_values_do_not_look_equal() -> None:
    """Each has a nonce of its own."""
    serde = EncryptedSerializer.from_aes(KEY)

    assert serde.dumps_typed("x") != serde.dumps_typed("x")


def test_another_key_is_an_error() -> None:
    """Not wrong data."""
    data = EncryptedSerializer.from_aes(KEY).dumps_typed("x")

    with pytest.raises(UnreadableBytesError, match="key is another"):
        EncryptedSerializer.from_aes(KEY[::-1]).loads_typed(data)


def test_changed_bytes_are_an_error() -> None:
    """Wherever the change is, the kind included."""
    serde = EncryptedSerializer.from_aes(KEY)
    kind, data = serde.dumps_typed({"a": 1})

    for at in range(len(data)):
        with pytest.raises(UnreadableBytesError):
            serde.loads_typed((kind, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]))
    for damaged in (("bytes+aes-gcm", data), ("msgpack+other", data), (kind, b""), (kind, data[:10])):
        with pytest.raises(UnreadableBytesError):
            serde.loads_typed(damaged)


def test_plain_data_of_before_is_read_unless_forbidden() -> None:
    """Encryption can be turned on for an old database; and forged plain data kept out of a new one."""
    data = JsonPlusSerializer().dumps_typed([1])

    assert EncryptedSerializer.from_aes(KEY).loads_typed(data) == [1]
    with pytest.raises(UnreadableBytesError, match="not encrypted"):
        EncryptedSerializer.from_aes(KEY, accept_plain=False).loads_typed(data)


@pytest.mark.parametrize("name", ["TRACEGRAPH_AES_KEY", "LANGGRAPH_AES_KEY"])
def test_key_may_come_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text."""
    monkeypatch.setenv(name, KEY.decode())

    assert EncryptedSerializer.from_aes().loads_typed(EncryptedSerializer.from_aes(KEY).dumps_typed(1)) == 1


def test_missing_and_odd_keys_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the serialiser is made, not at the first checkpoint."""
    monkeypatch.delenv("TRACEGRAPH_AES_KEY", raising=False)
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)

    with pytest.raises(InvalidInputError, match="TRACEGRAPH_AES_KEY"):
        EncryptedSerializer.from_aes()
    with pytest.raises(InvalidInputError, match="16, 24 or 32 bytes, not 5"):
        EncryptedSerializer.from_aes(b"short")


def test_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is needed only here."""
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)

    with pytest.raises(ImportError, match=r"tracegraph\[crypto\]"):
        EncryptedSerializer.from_aes(KEY)


def test_any_cipher_will_do() -> None:
    """It needs two methods."""
    serde = EncryptedSerializer(Reversing())

    assert isinstance(Reversing(), CipherProtocol)
    assert isinstance(serde, SerializerProtocol)
    assert serde.dumps_typed([1]) == ("msgpack+rev", b"\x01\x91\0kcapgsm")
    assert serde.loads_typed(serde.dumps_typed([1])) == [1]


def test_allow_list_reaches_the_inner_serialiser() -> None:
    """One that has none is left as it is."""
    strict = EncryptedSerializer.from_aes(KEY, serde=JsonPlusSerializer(allowed_msgpack_modules=None), accept_plain=False)
    data = strict.dumps_typed(own.Colour.RED)
    wider = strict.with_msgpack_allowlist([own.Colour])

    assert (strict.loads_typed(data), wider.loads_typed(data)) == ("red", own.Colour.RED)
    assert not wider.accept_plain
    pickled = EncryptedSerializer.from_aes(KEY, serde=PickleSerializer())
    assert pickled.with_msgpack_allowlist([own.Colour]).serde is pickled.serde
