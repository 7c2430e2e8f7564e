"""Whether something grew, and the report that says so."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from benchmarks.soak.samples import Kind, Sample, Sizes

__all__ = ["Report", "Series", "judge"]

TOP: Final = 15
WORDS: Final[dict[Kind, str]] = {"count": "", "table": "table ", "type": "objects of class "}


class Series:
    """The samples after the warm-up, of which there will be *count*.

    It does not keep the names and sizes of each: what it kept would be part of what is measured.
    """

    def __init__(self, count: int) -> None:
        self.samples: list[Sample] = []
        self._third = max(1, count // 3)
        self._count = count
        self._before: dict[Kind, Sizes] = {kind: {} for kind in WORDS}
        self._after: dict[Kind, Sizes] = {kind: {} for kind in WORDS}

    def add(self, sample: Sample) -> None:
        """Take the next one in."""
        at = len(self.samples)
        self.samples.append(dataclasses.replace(sample, sizes={"count": sample.sizes["count"]}))
        for kind, sizes in sample.sizes.items():
            before, after = self._before[kind], self._after[kind]
            if at < self._third:
                before |= {name: max(size, before.get(name, 0)) for name, size in sizes.items()}
            if at == self._count - self._third:
                after |= sizes
            elif at > self._count - self._third:
                after |= {name: min(size, sizes.get(name, 0)) for name, size in after.items()}

    def growth(self, kind: Kind) -> Iterator[tuple[int, str]]:
        """Yield by how much each size is larger in all of the last third than it was in any of the first, most first.

        So a size that goes up and down has not grown, and neither has a cache that filled up once.
        """
        before = self._before[kind]
        grown = ((size - before.get(name, 0), name) for name, size in self._after[kind].items())
        yield from sorted((each for each in grown if each[0] > 0), reverse=True)


@dataclass
class Report:
    """The figures of a soak, and what is wrong with them: nothing, if ``findings`` is empty."""

    series: Series
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the report as text."""
        first, last = self.series.samples[0], self.series.samples[-1]
        yield f"{'':44}{'warmed up':>14}{'end':>14}"
        yield f"{'runs':44}{first.runs:>14,}{last.runs:>14,}"
        yield f"{'resident memory, MB':44}{first.rss_bytes / 1e6:>14.1f}{last.rss_bytes / 1e6:>14.1f}"
        for name, size in (last.totals | last.sizes["count"]).items():
            yield f"{name:44}{(first.totals | first.sizes['count'])[name]:>14,}{size:>14,}"
        yield from self.notes
        yield from (f"GREW: {finding}" for finding in self.findings)
        yield f"{len(self.findings)} findings" if self.findings else "nothing grew"


def judge(series: Series, *, rss_limit: float | None) -> Report:
    """Return what the samples say.

    Args:
        rss_limit: by which part resident memory may have grown; None: it is not judged.
    """
    report = Report(series)
    first, last = series.samples[0], series.samples[-1]
    measured = last.runs - first.runs
    slack: dict[Kind, int] = {
        "count": max(4, measured // 20_000),
        "table": max(8, measured // 5_000),
        "type": max(50, measured // 1_000),
    }
    for kind, word in WORDS.items():
        report.findings += [f"{word}{name}, by {by:,}" for by, name in series.growth(kind) if by > slack[kind]]
    by_difference = last.rss_bytes / first.rss_bytes - 1
    by_line = _slope(series.samples) * measured / first.rss_bytes
    report.notes.append(f"resident memory: {by_difference:+.1%} from warm-up to end, {by_line:+.1%} along the median line")
    if rss_limit is not None and max(by_difference, by_line) >= rss_limit:
        report.findings.append(f"resident memory, by {max(by_difference, by_line):.1%} where {rss_limit:.0%} is too much")
        report.notes += [f"  more objects of class {name}: {by:+,}" for by, name in itertools.islice(series.growth("type"), TOP)]
    return report


def _slope(samples: list[Sample]) -> float:
    """Return bytes a run: the median of the slopes between any two samples (Theil and Sen), so that a spike counts little."""
    pairs = itertools.combinations(samples, 2)
    return statistics.median((b.rss_bytes - a.rss_bytes) / (b.runs - a.runs) for a, b in pairs)
