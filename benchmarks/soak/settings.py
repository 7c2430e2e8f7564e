"""How long a soak is, and how much it runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["QUICK", "Settings"]


@dataclass(frozen=True)
class Settings:
    """How long a soak is."""

    runs: int = 200_000
    warm_up: float = 0.1
    """The part of the runs after which the figures count."""
    samples: int = 60
    rss_limit: float | None = 0.05
    """By which part resident memory may grow; None: it is not judged."""
    calls: int = 3
    """How often each scenario is called in a round in the pool, and on the loop; all calls on the loop are made at once."""
    classes: int = 600
    """How many graphs with classes of their own run first: more than any cache of ours holds, so that all are full."""
    patience_s: float = 20.0
    """The longest wait for what a correct run brings about at once."""


QUICK: Final = Settings(runs=1_000, warm_up=0.3, samples=9, rss_limit=None, patience_s=5.0)
"""A smoke test: memory needs longer to settle than this takes."""
