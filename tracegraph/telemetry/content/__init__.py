"""Content in telemetry: what of states, messages, tool arguments and documents is recorded, and what of it is redacted.

Nothing is, by default. See :class:`ContentPolicy` and ``docs/content.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tracegraph.telemetry.content.capture import Capture
    from tracegraph.telemetry.content.choice import active_policy, use_content
    from tracegraph.telemetry.content.patterns import (
        REDACTED,
        api_keys,
        bearer_tokens,
        card_numbers,
        emails,
        secret_assignments,
        url_passwords,
    )
    from tracegraph.telemetry.content.policy import ContentPolicy
    from tracegraph.telemetry.content.redaction import PERSONAL, REDACTED_KEYS, SECRETS, Redactor, Where
    from tracegraph.telemetry.content.upload import Upload

__all__ = [
    "Capture",
    "ContentPolicy",
    "PERSONAL",
    "REDACTED",
    "Redactor",
    "SECRETS",
    "REDACTED_KEYS",
    "Upload",
    "Where",
    "active_policy",
    "api_keys",
    "bearer_tokens",
    "card_numbers",
    "emails",
    "secret_assignments",
    "url_passwords",
    "use_content",
]

_HOMES: Final = {
    "Capture": "capture",
    "ContentPolicy": "policy",
    "Upload": "upload",
    "active_policy": "choice",
    "use_content": "choice",
    **dict.fromkeys(("PERSONAL", "Redactor", "SECRETS", "REDACTED_KEYS", "Where"), "redaction"),
    **dict.fromkeys(
        ("REDACTED", "api_keys", "bearer_tokens", "card_numbers", "emails", "secret_assignments", "url_passwords"), "patterns"
    ),
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: the drivers import this package, and most applications record no content."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
