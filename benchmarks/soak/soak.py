"""One soak from its first round to its report."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.soak.samples import Sample, busy_threads, file_descriptors, take_sample, trimmed_rss_bytes
from benchmarks.soak.service import Service
from benchmarks.soak.settings import Settings
from benchmarks.soak.shapes import build_for_one_run
from benchmarks.soak.verdict import Report, Series, judge

__all__ = ["run_soak"]


def run_soak(settings: Settings, handlers: Iterable[Any] = (), say: Callable[[str], None] = lambda line: None) -> Report:
    """Run a service, and everything it has, until it has made so many runs; close it; return what grew.

    Args:
        handlers: callback handlers that each run gets beside the service's own.
        say: is given a line of progress at each sample.
    """
    threads, descriptors = busy_threads(), file_descriptors()
    began_s, cpu_s = time.perf_counter(), time.process_time()
    _fill_caches(settings.classes)
    with tempfile.TemporaryDirectory() as folder, Service.open(Path(folder), handlers, settings) as service:
        warm_up = math.ceil(settings.warm_up * settings.samples)
        series = Series(settings.samples - warm_up + 1)
        for number in range(1, settings.samples + 1):
            sample = _sample(service, settings, number, say, began_s)
            if number >= warm_up:
                series.add(sample)
        trimmed = trimmed_rss_bytes()
    report = judge(series, rss_limit=settings.rss_limit)
    report.notes.append(f"resident memory after malloc_trim at the end: {trimmed / 1e6:.1f} MB")
    report.notes.append(f"{service.spans.ended:,} spans ended, {service.exporter.count:,} were exported")
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    report.notes.append(
        f"{service.runs:,} runs in {wall_s:,.0f} s ({service.runs / wall_s:,.0f} a second), {cpu_s:,.0f} s of processor time"
    )
    report.findings += _left_behind(service, threads, descriptors, settings.patience_s)
    return report


def _sample(service: Service, settings: Settings, number: int, say: Callable[[str], None], began_s: float) -> Sample:
    until = settings.runs * number / settings.samples
    service.round()
    while service.runs < until:
        service.round()
    sample = take_sample(service)
    rate = service.runs / (time.perf_counter() - began_s)
    objects = sum(sample.sizes["type"].values())
    say(f"{sample.runs:>9,} runs  {rate:>6,.0f}/s  {sample.rss_bytes / 1e6:>7.1f} MB  {objects:>9,} objects")
    return sample


def _fill_caches(classes: int) -> None:
    for number in range(classes):
        build_for_one_run(is_async=False).invoke({"n": 0}, {"configurable": {"thread_id": str(number)}})


def _left_behind(service: Service, threads: list[str], descriptors: int, patience_s: float) -> list[str]:
    """Return what a closed service still has."""
    deadline = time.monotonic() + patience_s
    while (more := sorted(set(busy_threads()) - set(threads))) and time.monotonic() < deadline:
        time.sleep(0.01)
    found = [f"thread {name!r} is there after all is closed" for name in more]
    if (open_now := file_descriptors()) > descriptors:
        found.append(f"file descriptors: {descriptors} before the service, {open_now} after it is closed")
    found += [f"span {name!r} never ended" for name in sorted(set(service.spans.names.values()))]
    found += [f"span {name!r} ended twice" for name in sorted(set(service.spans.ended_twice))]
    if service.spans.ended != service.exporter.count:
        found.append(f"{service.spans.ended:,} spans ended, but {service.exporter.count:,} were exported")
    for handler in (service.open_runs, service.async_open_runs):
        found += [f"{type(handler).__name__}: run {name!r} has no end" for name in sorted(set(handler.names.values()))]
    return found
