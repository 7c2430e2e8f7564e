"""Which flat events a caller wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["EventChoice"]

Names = Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventChoice:
    """Included is what one of the ``include_*`` lists names (all, without any), and none of the ``exclude_*`` lists.

    >>> choice = EventChoice(include_types=["tool"], exclude_names=["noisy"])
    >>> choice.takes({"name": "add", "tags": []}, "tool"), choice.takes({"name": "add", "tags": []}, "chain")
    (True, False)
    """

    include_names: Names = None
    include_types: Names = None
    include_tags: Names = None
    exclude_names: Names = None
    exclude_types: Names = None
    exclude_tags: Names = None

    def takes(self, event: dict[str, Any], kind: str) -> bool:
        """Say whether an event of a ``chain``, ``tool``, ... is wanted."""
        name, tags = event["name"], event["tags"]
        given = (self.include_names, self.include_types, self.include_tags)
        if any(names is not None for names in given) and not _names_it(*given, name, kind, tags):
            return False
        return not _names_it(self.exclude_names, self.exclude_types, self.exclude_tags, name, kind, tags)


def _names_it(names: Names, types: Names, tags: Names, name: str, kind: str, own_tags: Sequence[str]) -> bool:
    return name in (names or ()) or kind in (types or ()) or any(tag in (tags or ()) for tag in own_tags)
