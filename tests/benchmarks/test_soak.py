"""The soak runs, finds nothing in a service that keeps nothing, and names what one that leaks has kept."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.soak.containers import container_sizes, module_roots
from benchmarks.soak.samples import Sample
from benchmarks.soak.settings import Settings
from benchmarks.soak.soak import run_soak
from benchmarks.soak.verdict import Series, judge
from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.telemetry import roots

REPOSITORY = Path(__file__).parents[2]
SHORT = Settings(runs=200, warm_up=0.25, samples=4, rss_limit=None, calls=1, classes=0, patience_s=1.0)

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the soak reads /proc/self")


def test_nothing_grows_in_a_service_that_keeps_nothing() -> None:
    """The command's smoke mode ends with exit code 0 and says so."""
    command = [sys.executable, "-m", "benchmarks.soak", "--quick"]
    environment = {name: value for name, value in os.environ.items() if name != "TRACEGRAPH_CHECK"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["nothing grew"]), done.stdout + done.stderr


class Leaking(BaseCallbackHandler):
    """Keeps something of every eighth node or run."""

    def __init__(self, keep: Callable[[], Callable[[], object]] | None) -> None:
        self.ids: set[Any] = set()
        self._keep = keep
        self._count = 0
        self._give_back: list[Callable[[], object]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self._count += 1
        if self._count % 8:
            return
        if self._keep is None:
            self.ids.add(kwargs["run_id"])
        else:
            self._give_back.append(self._keep())

    def give_back(self) -> None:
        """Let go of what was kept, so that the tests after this one start as it did."""
        for each in self._give_back:
            each()


def a_file() -> Callable[[], object]:
    return partial(os.close, os.open(os.devnull, os.O_RDONLY))


def a_thread() -> Callable[[], object]:
    bell = threading.Event()
    threading.Thread(target=bell.wait, name="leaked", daemon=True).start()
    return bell.set


def a_span() -> Callable[[], object]:
    provider = roots._Choice.provider
    assert provider is not None
    return provider.get_tracer("leak").start_span("leaked").end


def a_task() -> Callable[[], object]:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return lambda: None
    waiting = loop.create_task(asyncio.sleep(3600))
    return waiting.get_name  # the loop is closed with the service


@pytest.mark.parametrize(
    ("keep", "finding"),
    [
        (None, "table handler Leaking.ids, by "),
        (a_file, "file descriptors, by "),
        (a_thread, "thread 'leaked' is there after all is closed"),
        (a_span, "span 'leaked' never ended"),
        (a_task, "asyncio tasks, by "),
    ],
    ids=["id", "file", "thread", "span", "task"],
)
def test_a_leak_is_named(keep: Callable[[], Callable[[], object]] | None, finding: str) -> None:
    """Whatever it is that a handler keeps."""
    handler = Leaking(keep)
    try:
        report = run_soak(SHORT, [handler])
    finally:
        handler.give_back()

    assert [line for line in report.findings if line.startswith(finding)], list(report.lines())


def test_memory_that_grows_is_a_finding_and_what_goes_up_and_down_is_none() -> None:
    """Resident memory is judged from the warm-up to the end, and along the line through all samples."""

    def judged(*sizes: int) -> list[str]:
        series = Series(len(sizes))
        for at, size in enumerate(sizes):
            series.add(Sample(1 + at, size, {}, {"count": {}, "table": {"dict": size}, "type": {}}))
        return judge(series, rss_limit=0.05).findings

    assert judged(1000, 1040, 1000, 1040, 1000, 1040) == []
    assert judged(1000, 1010, 1020, 1030, 1040, 1050) == [
        "table dict, by 30",
        "resident memory, by 5.0% where 5% is too much",
    ]
    assert judged(1000, 1100, 1200, 1300, 1400, 1010)[-1].startswith("resident memory, by ")


def test_containers_are_found_wherever_they_hang() -> None:
    """In attributes, slots, classes, modules, and other containers."""

    class Slotted:
        __slots__ = ("found", "missing")

        def __init__(self) -> None:
            self.found = {1, 2, 3}

    class Handler:
        shared: ClassVar[list[int]] = [1]

        def __init__(self) -> None:
            self.inner = {"a": deque([1, 2])}

    assert container_sizes({"table": {1: [10, 11], 2: [12]}}) == {"table": 2, "table[*]": 3}
    sizes = container_sizes({"slotted": Slotted(), "handler": Handler(), "class": Handler})

    assert sizes["slotted.found"] == 3
    assert sizes["handler.inner"] == 1
    assert sizes["handler.inner[*]"] == 2
    assert sizes["class.shared"] == 1
    assert "tracegraph.drivers.workers._idle" in container_sizes(module_roots())


def test_what_a_function_closes_over_and_what_a_cache_without_a_limit_keeps_is_found() -> None:
    """A cache that has a limit cannot grow with the number of runs, so it does not count."""
    kept = [1]

    def closing() -> list[int]:
        return kept

    closing.__module__ = "tracegraph.made"  # only functions of ours are looked into
    without, within = cache(abs), lru_cache(maxsize=8)(abs)
    without(-1), within(-1)

    assert container_sizes({"closing": closing, "without": without, "within": within}) == {"closing<kept>": 1, "without": 1}
