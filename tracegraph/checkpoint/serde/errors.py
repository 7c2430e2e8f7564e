"""What serialisers raise."""

from __future__ import annotations

__all__ = ["Refused", "UnreadableBytesError", "UnserializableValueError"]


class Refused(TypeError):  # noqa: N818  # caught inside, and told to the user with a path as UnserializableValueError
    """Why one object cannot be serialised, wherever it stands."""

    def __init__(self, value: object, reason: str) -> None:
        self.value = value
        self.reason = reason
        super().__init__(reason)


class UnserializableValueError(TypeError):
    """A value that cannot become bytes and come back the same; nothing was written.

    ``path`` leads from the value given to the culprit, as one would write it: ``['user'].session[3]``; it is
    empty for the value itself. ``channel`` is set by savers, with :meth:`in_channel`.
    """

    code = "TG208"

    def __init__(self, value: object, reason: str, *, path: str = "", channel: str | None = None) -> None:
        self.value = value
        self.reason = reason
        self.path = path
        self.channel = channel
        where = f" at {path}" if path else ""
        holder = "" if channel is None else f"channel {channel!r}: "
        super().__init__(
            f"[{self.code}] {holder}{type(value).__qualname__} object{where} cannot be serialised: {reason}; store plain data, "
            "a dataclass or a model instead, or keep it out of the state, or in an UntrackedValue channel"
        )

    def in_channel(self, channel: str) -> UnserializableValueError:
        """Return the same error, naming the channel that holds the value."""
        return UnserializableValueError(self.value, self.reason, path=self.path, channel=channel)


class UnreadableBytesError(ValueError):
    """Stored bytes that are damaged, not ours, encrypted with another key, or of a class that is no longer what it was."""

    code = "TG209"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"[{self.code}] stored bytes cannot be read: {reason}")
