"""Channel versions as our savers continue them: texts that begin with a counter of 32 digits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from tracegraph.records import Version

__all__ = ["with_text_versions"]

# The rest tells branches apart. LangGraph's savers have put a random number or a digest of the value there.
_TEXT: Final = re.compile(r"\d{32}(\.|$)")
_DIGITS: Final = 10**16


def with_text_versions(checkpoint: dict[str, Any], digest: Callable[[str], int]) -> None:
    """Turn the numbers that other savers count in into texts of the same order; texts stay as they are.

    Our savers go on with texts, and within a thread all versions must be of one type. Two branches may have given one
    number to different values, so the text of a channel's current version ends in a *digest* of its value.

    Raises:
        ValueError: a version is of no form whose order is known.
    """
    current: dict[str, Version] = checkpoint["channel_versions"]
    texts = {channel: _text(version, channel, digest) for channel, version in current.items()}
    checkpoint["versions_seen"] = {
        node: {
            # What a node has seen of an older version need only be older.
            channel: texts[channel] if current.get(channel) == version else _text(version, channel, None)
            for channel, version in seen.items()
        }
        for node, seen in checkpoint["versions_seen"].items()
    }
    checkpoint["channel_versions"] = texts


def _text(version: Version, channel: str, digest: Callable[[str], int] | None) -> str:
    if isinstance(version, str) and _TEXT.match(version):
        return version
    if isinstance(version, (int, float)) and not isinstance(version, bool) and 0 <= version < 10**32:
        count, rest = divmod(version, 1)
        text = f"{int(count):032}.{int(rest * _DIGITS):016}"
        return text if digest is None else f"{text}{digest(channel) % _DIGITS:016}"
    raise ValueError(
        f"channel {channel!r} has version {version!r}; known are numbers, and texts that begin with 32 digits: "
        "the saver that wrote it has an order of its own"
    )
