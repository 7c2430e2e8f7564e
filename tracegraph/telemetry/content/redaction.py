"""Redaction: what of a value may leave the process. Every signal gets values that went through here, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from tracegraph.telemetry.content.patterns import (
    REDACTED,
    api_keys,
    bearer_tokens,
    card_numbers,
    emails,
    secret_assignments,
    url_passwords,
)
from tracegraph.telemetry.content.snapshot import MOST_LEVELS, snapshot

__all__ = ["PERSONAL", "SECRETS", "REDACTED_KEYS", "LeftOutError", "Redaction", "Redactor", "Where"]


class Where(NamedTuple):
    """Where a value stands: the attribute it is for, and the keys and indexes on the way to it."""

    attribute: str
    path: tuple[str | int, ...] = ()
    is_key: bool = False
    """It is itself a key of a mapping, the one that ``path`` ends in."""


Redactor = Callable[[Any, Where], Any]
"""Takes a value (a container before what is in it) and where it stands; returns what may leave in its place."""

SECRETS: Final[tuple[Redactor, ...]] = (api_keys, bearer_tokens, url_passwords, secret_assignments)
"""The redactors that are on unless others are given."""

PERSONAL: Final[tuple[Redactor, ...]] = (emails, card_numbers)

REDACTED_KEYS: Final = (
    r"\w*password|\w*passwd|passphrase|pass|pwd|\w*secret|secrets|credentials?|authorization|cookies?|bearer|dsn"
    r"|\w*api[_\-]?keys?|(private|access|secret|signing|encryption|auth)[_\-]?key"
    r"|token|(access|refresh|auth|session)[_\-]?token"
)
"""The last words of keys whose values never leave, as a regular expression: ``password``, ``x-api-key``, ``set_cookie``."""


class LeftOutError(Exception):
    """A redactor failed, so the value must not leave."""

    def __init__(self, redactor: Redactor, where: Where) -> None:
        self.redactor = getattr(redactor, "__qualname__", None) or type(redactor).__qualname__
        self.where = where
        super().__init__(f"redactor {self.redactor} failed on {where.attribute}")


class Redaction:
    """Redactors and secret keys, ready to be applied.

    >>> redaction = Redaction((*SECRETS, emails))
    >>> redaction.apply({"to": "ada@example.org", "headers": {"X-Api-Key": "abc"}}, "tracegraph.task.input")
    {'to': '[redacted]', 'headers': {'X-Api-Key': '[redacted]'}}
    """

    def __init__(self, redactors: Iterable[Redactor], redacted_keys: str = REDACTED_KEYS) -> None:
        self._redactors = tuple(redactors)
        # A word begins behind anything but a small letter, or with a capital: `DB_PASSWORD`, `set-cookie`, `apiKey`.
        self._is_secret = re.compile(rf"(?:.*[^a-z]|.*[a-z](?=[A-Z])|)(?i:{redacted_keys})", re.DOTALL).fullmatch

    def apply(self, data: Any, attribute: str) -> Any:
        """Return JSON data without what must not leave; *data* itself is not changed.

        Raises:
            LeftOutError: a redactor raised.
        """
        return self._walk(data, Where(attribute))

    def text(self, text: str, attribute: str) -> str:
        """Return a text without what must not leave.

        Raises:
            LeftOutError: a redactor raised.
        """
        data = self.apply(snapshot(text), attribute)
        return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)

    def is_secret_key(self, key: Any) -> bool:
        """Say whether a key is one of those whose values never leave."""
        return isinstance(key, str) and len(key) <= _LONGEST_KEY and self._is_secret(key) is not None

    def _walk(self, data: Any, where: Where) -> Any:
        if len(where.path) > MOST_LEVELS + 10:
            return REDACTED  # redactors that put containers into containers, without end
        data = self._redacted(data, where)
        if type(data) is dict:
            return self._dict(data, where)
        if type(data) is list:
            if len(data) == 2 and isinstance(data[1], str) and self.is_secret_key(data[0]):
                return [data[0], REDACTED]  # a header as a pair
            return [self._walk(item, Where(where.attribute, (*where.path, at))) for at, item in enumerate(data)]
        return data

    def _dict(self, data: dict[str, Any], where: Where) -> dict[str, Any]:
        safe: dict[str, Any] = {}
        for key, item in data.items():
            below = Where(where.attribute, (*where.path, key))
            item = REDACTED if item is not None and self.is_secret_key(key) else self._walk(item, below)
            shown = self._redacted(key, below._replace(is_key=True))
            if not isinstance(shown, str):
                shown = REDACTED
            # Two keys may be the same once redacted; neither value may take the other's place.
            name, count = shown, 2
            while name in safe:
                name, count = f"{shown} {count}", count + 1
            safe[name] = item
        return safe

    def _redacted(self, data: Any, where: Where) -> Any:
        for redactor in self._redactors:
            try:
                redacted = redactor(data, where)
            except Exception as error:
                raise LeftOutError(redactor, where) from error
            if redacted is not data:
                data = snapshot(redacted)
        return data


_LONGEST_KEY: Final = 100
