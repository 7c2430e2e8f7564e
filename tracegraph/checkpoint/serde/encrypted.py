"""Encryption around another serialiser."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.joining import joining_of
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.errors import InvalidInputError

__all__ = ["AesGcmCipher", "CipherProtocol", "EncryptedSerializer"]

_KEY_VARIABLES = ("TRACEGRAPH_AES_KEY", "LANGGRAPH_AES_KEY")
_NONCE_BYTES = 12


@runtime_checkable
class CipherProtocol(Protocol):
    """Encrypts and decrypts; the name says later which cipher it was."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Return the cipher's name, without ``+``, and the ciphertext."""
        ...

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Return the plaintext; raise if it was encrypted with another key or changed since."""
        ...


class AesGcmCipher:
    """AES-GCM from the ``cryptography`` package (extra ``crypto``): a fresh 12-byte nonce, then ciphertext and tag.

    One key is good for 2**32 values.
    """

    name = "aes-gcm"

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise ImportError("encryption needs the package cryptography; install tracegraph[crypto]") from error
        if len(key) not in (16, 24, 32):
            raise InvalidInputError(f"an AES key has 16, 24 or 32 bytes, not {len(key)}")
        self._aes = AESGCM(key)
        self._invalid = InvalidTag

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """See :class:`CipherProtocol`."""
        nonce = os.urandom(_NONCE_BYTES)
        return self.name, nonce + self._aes.encrypt(nonce, plaintext, None)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """See :class:`CipherProtocol`.

        Raises:
            UnreadableBytesError: another cipher, another key, or changed bytes.
        """
        if ciphername != self.name:
            raise UnreadableBytesError(f"they are encrypted with {ciphername!r}, not {self.name!r}")
        try:
            return self._aes.decrypt(ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:], None)
        except (self._invalid, ValueError) as error:
            raise UnreadableBytesError("the key is another one than they were encrypted with, or they were changed") from error


class EncryptedSerializer:
    """Encrypts what *serde* writes; the kind becomes ``msgpack+aes-gcm`` or the like.

    What was stored before encryption was turned on is still read, unless *accept_plain* is False: then
    nobody who can write to the database can pass off bytes of his own.
    """

    def __init__(self, cipher: CipherProtocol, serde: SerializerProtocol | None = None, *, accept_plain: bool = True) -> None:
        self.cipher = cipher
        self.serde: SerializerProtocol = JsonPlusSerializer() if serde is None else serde
        self.accept_plain = accept_plain

    @classmethod
    def from_aes(
        cls, key: bytes | str | None = None, *, serde: SerializerProtocol | None = None, accept_plain: bool = True
    ) -> EncryptedSerializer:
        """Return one with AES-GCM; without *key* it is taken from ``TRACEGRAPH_AES_KEY`` (or ``LANGGRAPH_AES_KEY``)."""
        found = key or next(filter(None, map(os.environ.get, _KEY_VARIABLES)), None)
        if found is None:
            raise InvalidInputError(f"encryption needs a key: give key=, or set {_KEY_VARIABLES[0]}")
        return cls(AesGcmCipher(found.encode() if isinstance(found, str) else found), serde, accept_plain=accept_plain)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the kind, with the cipher's name, and encrypted bytes; raises what the inner serialiser raises."""
        return self._encrypted(*self.serde.dumps_typed(obj))

    def join_typed(self, lists: Sequence[tuple[str, bytes]]) -> tuple[str, bytes]:
        """Return kind and bytes of the list with all items of these lists, which :meth:`dumps_typed` wrote."""
        plain = [self._plain(stored) for stored in lists]
        if (join := joining_of(self.serde)) is not None:
            return self._encrypted(*join(plain))
        return self.dumps_typed([item for stored in plain for item in self.serde.loads_typed(stored)])

    def _encrypted(self, kind: str, data: bytes) -> tuple[str, bytes]:
        # The kind is encrypted too, so that bytes cannot be read as another kind than they were written as.
        name, encrypted = self.cipher.encrypt(kind.encode() + b"\0" + data)
        return f"{kind}+{name}", encrypted

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value.

        Raises:
            UnreadableBytesError: another key, changed bytes, or plain ones that are not accepted.
        """
        return self.serde.loads_typed(self._plain(data))

    def _plain(self, data: tuple[str, bytes]) -> tuple[str, bytes]:
        """Return kind and bytes as the inner serialiser wrote them."""
        kind, stored = data
        kind, has_cipher, name = kind.partition("+")
        if not has_cipher:
            if self.accept_plain:
                return data
            raise UnreadableBytesError(f"they are not encrypted (kind {kind!r})")
        inner, _, plain = self.cipher.decrypt(name, stored).partition(b"\0")
        if inner != kind.encode():
            raise UnreadableBytesError(f"their kind was changed to {kind!r}")
        return kind, plain

    @property
    def is_strict(self) -> bool:
        """Whether the inner serialiser brings only listed classes to life."""
        return bool(getattr(self.serde, "is_strict", False))

    def with_msgpack_allowlist(self, extra_allowlist: Any) -> EncryptedSerializer:
        """Return one whose inner serialiser revives more classes; see :class:`JsonPlusSerializer`."""
        allow: Any = getattr(self.serde, "with_msgpack_allowlist", None)
        serde = self.serde if allow is None else allow(extra_allowlist)
        return EncryptedSerializer(self.cipher, serde, accept_plain=self.accept_plain)
