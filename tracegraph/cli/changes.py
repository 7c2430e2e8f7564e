"""What changed in a state between two checkpoints, channel by channel."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tracegraph.channels.delta import DeltaLog
from tracegraph.cli.output import json_line, to_plain_data
from tracegraph.cli.saved import visible
from tracegraph.records import CheckpointTuple

__all__ = ["Change", "changes_between", "changes_data"]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one channel's value; all values are JSON data.

    ``grew``: a list got more items at its end, a dict more keys, a delta channel more writes; ``added`` is these alone.
    """

    kind: Literal["new", "changed", "grew", "gone"]
    before: Any = None
    after: Any = None
    added: Any = None

    def line(self, channel: str) -> str:
        """Return the change on one line."""
        match self.kind:
            case "new":
                return f"+ {channel} = {json_line(self.after)}"
            case "changed":
                return f"~ {channel} = {json_line(self.after)}  (was {json_line(self.before)})"
            case "grew":
                return f"~ {channel} += {json_line(self.added)}"
            case "gone":
                return f"- {channel}  (was {json_line(self.before)})"


def changes_between(parent: CheckpointTuple | None, saved: CheckpointTuple) -> dict[str, Change]:
    """Return the changes from a checkpoint's parent to it, by channel; without a parent everything is new."""
    before = {} if parent is None else visible(parent)
    after = visible(saved)
    found = {name: _change(before, after, name) for name in {**before, **after} if not _is_same(before, after, name)}
    return {name: change for name, change in found.items() if change is not None}


def changes_data(changes: dict[str, Change]) -> dict[str, dict[str, Any]]:
    """Return changes as JSON data; a value stands only where the kind of change has it."""
    keys = {"new": ("after",), "changed": ("before", "after"), "grew": ("added",), "gone": ("before",)}
    return {
        name: {"kind": change.kind} | {key: value for key, value in asdict(change).items() if key in keys[change.kind]}
        for name, change in changes.items()
    }


def _is_same(before: dict[str, Any], after: dict[str, Any], name: str) -> bool:
    if name not in before or name not in after:
        return False
    try:
        return bool(before[name] == after[name])
    except Exception:  # noqa: BLE001  # arrays and the like have no plain equality; their JSON forms are compared then
        return False


def _change(before: dict[str, Any], after: dict[str, Any], name: str) -> Change | None:
    if name not in before:
        return Change("new", after=to_plain_data(after[name]))
    old = to_plain_data(before[name])
    if name not in after:
        return Change("gone", before=old)
    new = to_plain_data(after[name])
    if old == new:
        return None
    if isinstance(after[name], DeltaLog):
        base, writes = new["base"], new["writes"]
        known = old["writes"] if isinstance(before[name], DeltaLog) and old["base"] == base else [] if old == base else None
        if known is not None and writes[: len(known)] == known:
            return Change("grew", added=writes[len(known) :])
    if isinstance(old, list) and isinstance(new, list) and new[: len(old)] == old:
        return Change("grew", added=new[len(old) :])
    if isinstance(old, dict) and isinstance(new, dict) and old.items() <= new.items():
        return Change("grew", added={key: value for key, value in new.items() if key not in old})
    return Change("changed", before=old, after=new)
