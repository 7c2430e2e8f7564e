"""All that is measured, in the order of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.graphs import GRAPHS
from benchmarks.streams import STREAMS

if TYPE_CHECKING:
    from benchmarks.case import Scenario

__all__ = ["SCENARIOS"]

SCENARIOS: Final[tuple[Scenario, ...]] = (*GRAPHS, *STREAMS)
