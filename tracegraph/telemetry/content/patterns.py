"""Ready-made redactors: what is known to be a secret, or to be about a person, by its look.

A pattern either is anchored to the left or has a bounded first part, so that a long text costs no more than a few passes over it.
"""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["REDACTED", "api_keys", "bearer_tokens", "card_numbers", "emails", "secret_assignments", "url_passwords"]

REDACTED: Final = "[redacted]"

_API_KEY: Final = re.compile(
    r"""(?x)
    (?<![A-Za-z0-9]) (?:sk|pk|rk)[-_] [A-Za-z0-9_\-]{16,}             # OpenAI, Anthropic, Stripe, Langfuse
    | (?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w\-]{16,}
    | xox[abeoprs]-[A-Za-z0-9\-]{10,} | xapp-[A-Za-z0-9\-]{10,}       # Slack
    | (?<![A-Za-z0-9]) (?:AKIA|ASIA)[A-Z0-9]{16}                      # AWS
    | AIza[A-Za-z0-9_\-]{30,}                                         # Google
    | (?<![A-Za-z0-9]) (?:hf|gsk|npm|lsv2_pt|lsv2_sk|r8|tvly|pplx|xai|nvapi)[-_][A-Za-z0-9_\-]{16,}
    | (?<![A-Za-z0-9_\-]) eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*     # a JSON web token
    | -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY----- (?s:.*?) (?:-----END\ [A-Z ]{0,30}PRIVATE\ KEY-----|\Z)
    """
)
_BEARER: Final = re.compile(r"(?i)(?<![a-z])(bearer|basic)(\s{1,4})(?:(?=\S{0,200}[0-9_.=+])[\w.~+/=\-]{8,}|[a-z]{20,})")
_URL: Final = re.compile(
    r"""(?xi)
    ([a-z][a-z0-9+.\-]{1,30}://[^\s/:@"'<>]{0,100}:)
    (?: [^\s/?\#"'<>]{1,200} | (?!\d{1,5}[/?\#]) [^\s"'<>@]{1,200} ) (?=@)
    """
)
_ASSIGNMENT: Final = re.compile(
    r"""(?xis)
    (?<![a-z0-9]) ( (?:[a-z0-9]{1,20}[_\-]){0,3}
        (?:password|passwd|passphrase|pwd|secret|api[_\-]?key|access[_\-]?key|secret[_\-]?key|private[_\-]?key
          |(?:access|refresh|auth|id|session)[_\-]?token|authorization|signature)
        \\{0,15}["']?\s{0,3}[=:]\s{0,3} )
    (?:(?:bearer|basic|digest|negotiate)\s{1,3})?
    (?: (?P<quote>\\{0,15}["']) (?: (?! (?<!\\)(?P=quote) ) . )*+         # up to the same quote, as deep in JSON in JSON
      | (?!\[redacted\])[^\s"',;&}\])]+ )
    """
)
_EMAIL: Final = re.compile(r"[\w.%+'\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8}")
_CARD: Final = re.compile(r"(?<![\d.])\d(?:[ \-]?\d){12,18}(?![\d])")


def api_keys(value: Any, where: object = None) -> Any:  # noqa: ARG001  # a redactor's signature
    """Redact API keys of well-known services, JSON web tokens and private keys.

    >>> api_keys("use sk-proj-abcdefghijklmnop1234 for it")
    'use [redacted] for it'
    """
    return _API_KEY.sub(REDACTED, value) if isinstance(value, str) else value


def bearer_tokens(value: Any, where: object = None) -> Any:  # noqa: ARG001  # a redactor's signature
    """Redact what follows the word Bearer or Basic in an authorization header.

    >>> bearer_tokens("Authorization: Bearer abc.DEF-123456")
    'Authorization: Bearer [redacted]'
    """
    return _BEARER.sub(rf"\1\2{REDACTED}", value) if isinstance(value, str) else value


def url_passwords(value: Any, where: object = None) -> Any:  # noqa: ARG001  # a redactor's signature
    """Redact the password in a URL, as of a database.

    >>> url_passwords("postgresql://me:hunter2@db/app")
    'postgresql://me:[redacted]@db/app'
    """
    return _URL.sub(rf"\1{REDACTED}", value) if isinstance(value, str) and "://" in value else value


def secret_assignments(value: Any, where: object = None) -> Any:  # noqa: ARG001  # a redactor's signature
    """Redact what a text assigns to a password, secret or key: in a connection string, a query, JSON or code.

    >>> secret_assignments("host=db password=hunter2 user=me")
    'host=db password=[redacted] user=me'
    """
    return _ASSIGNMENT.sub(_assigned, value) if isinstance(value, str) else value


def _assigned(found: re.Match[str]) -> str:
    return f"{found[1]}{found['quote'] or ''}{REDACTED}"


def emails(value: Any, where: object = None) -> Any:  # noqa: ARG001  # a redactor's signature
    """Redact e-mail addresses.

    >>> emails("write to ada@example.org!")
    'write to [redacted]!'
    """
    return _EMAIL.sub(REDACTED, value) if isinstance(value, str) and "@" in value else value


def card_numbers(value: Any, where: object = None) -> Any:  # noqa: ARG001  # a redactor's signature
    """Redact numbers that look like a payment card's: 13 to 19 digits, the last one the checksum; also as an integer.

    >>> card_numbers("paid with 4111 1111 1111 1111"), card_numbers(4111111111111111), card_numbers(4111111111111112)
    ('paid with [redacted]', '[redacted]', 4111111111111112)
    """
    if isinstance(value, str):
        return _CARD.sub(lambda found: REDACTED if _is_card(found[0]) else found[0], value)
    # Compared as a number first: Python refuses to write integers of thousands of digits.
    if isinstance(value, int) and 10**12 <= value < 10**19 and _is_card(str(value)):
        return REDACTED
    return value


def _is_card(text: str) -> bool:
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    # Luhn: every second digit from the right is doubled, and its own digits are added up.
    return (sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10 == 0
