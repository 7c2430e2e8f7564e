"""What all events have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

__all__ = ["BaseEvent"]


@dataclass(slots=True)
class BaseEvent:
    """The fields of every event, and the bit of its kind."""

    bit: ClassVar[int] = 0
    run_id: UUID
    ns: str
    step: int
    at_ns: int
    seq: int = field(init=False, default=0)
