"""What savers raise of their own."""

from __future__ import annotations

__all__ = ["UnsavableValueError"]


class UnsavableValueError(TypeError):
    """A value that the saver cannot copy or serialise; nothing of the checkpoint or the writes was stored."""

    code = "TG207"

    def __init__(self, channel: str, value: object, reason: BaseException) -> None:
        self.channel = channel
        super().__init__(
            f"[{self.code}] channel {channel!r} holds a {type(value).__qualname__} that cannot be saved ({reason}); keep what "
            "cannot be saved out of the state, or in an UntrackedValue channel"
        )
