"""What a receiver's answer means for the request, whatever the protocol; and the waiting between attempts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

__all__ = ["Answer", "Transport", "Verdict", "delay_s"]

Verdict: TypeAlias = Literal["taken", "later", "refused", "too_large"]

_FIRST_S: Final = 0.5
_LONGEST_S: Final = 30.0
_LONGEST_ASKED_S: Final = 300.0

_spread: Final = random.Random()  # noqa: S311  # spread, not a secret
"""Of its own: the program's generator may have been seeded, and is not to be drawn from in another thread."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        verdict: ``taken``: it arrived; ``later``: send it again; ``refused``: never again; ``too_large``: in smaller pieces.
        text: what the receiver, or the network, said.
        wait_s: how long the receiver asked to wait, None if it did not say.
        rejected: how many items it did not take of a request that it took; they must not be sent again.
    """

    verdict: Verdict
    text: str = ""
    wait_s: float | None = None
    rejected: int = 0


class Transport(Protocol):
    """Sends requests to one destination, from one thread."""

    def send(self, body: bytes) -> Answer:
        """Send a request and wait for the answer, no longer than the destination's timeout."""
        ...

    def close(self) -> None:
        """Drop the connection."""
        ...


def delay_s(failures: int, asked_s: float | None) -> float:
    """Return how long to wait after *failures* in a row: what the receiver asked for, else twice as long each time.

    Up to half is taken off at random, so that many processes do not come back at once.

    >>> 0.25 <= delay_s(1, None) <= 0.5, 15 <= delay_s(50, None) <= 30, delay_s(1, 7.0), delay_s(1, 1e9)
    (True, True, 7.0, 300.0)
    """
    if asked_s is not None:
        return min(max(asked_s, 0.0), _LONGEST_ASKED_S)
    longest = min(_FIRST_S * 2.0 ** min(failures - 1, 10), _LONGEST_S)
    return longest * _spread.uniform(0.5, 1.0)
