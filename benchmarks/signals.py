"""What each signal of telemetry costs a run: python -m benchmarks.signals.

One process takes all modes in turn, in each round in another order, on the same graph: whatever else the machine does
meanwhile falls on all of them alike. A ratio is the median of the ratios within the rounds. The exporters throw away what
they get, so the ratios are those of recording alone; with an exporter that works, all modes but the first two cost more.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import Any, Final
from uuid import uuid4

from benchmarks.case import Case
from benchmarks.clocks import Clocks
from benchmarks.signal_cases import SHAPES
from benchmarks.signal_providers import MODES, Providers

__all__ = ["run_case"]

Samples = dict[str, list[float]]
"""Microseconds per unit, by mode."""

RATIOS: Final = {
    "off": ("sampled out", "untraced"),
    "metrics": ("traced + metrics", "traced"),
    "logs": ("traced + logs", "traced"),
    "both": ("traced + metrics + logs", "traced"),
}
"""Name -> what is divided by what."""
LIMITS: Final = {"off": 1.15, "both": 1.6}
"""What the project holds itself to."""


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signals", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs, two rounds: a smoke test, not a measurement")
    parser.add_argument("--json", action="store_true", help="print every sample as JSON")
    parser.add_argument("--rounds", type=int, default=None, help="measurements of each cell (default 15, quick 2)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu", help="cpu (default): processor time of all threads")
    parser.add_argument("--only", default="", help="shapes whose name or colour contains this")
    parser.add_argument("--modes", nargs="+", default=[*MODES], choices=[*MODES], help="with which telemetry (default all)")
    args = parser.parse_args()
    for variable in [name for name in os.environ if name.startswith(("OTEL_", "TRACEGRAPH_"))]:
        del os.environ[variable]  # what traces to somewhere else by itself must stay out of the figures
    with Providers() as providers:
        for name, unit, samples in _measured(providers, args):
            if args.json:
                print(json.dumps({"shape": name, "unit": unit, "clock": args.clock, "us": samples, "ratios": _ratios(samples)}))
            else:
                print(_line(name, unit, samples), flush=True)


def _measured(providers: Providers, args: argparse.Namespace) -> Iterator[tuple[str, str, Samples]]:
    rounds = args.rounds or (2 if args.quick else 15)
    for shape in SHAPES:
        for colour in ("sync", "async"):
            name = f"{shape.name}, {colour}"
            if args.only not in name:
                continue
            runs = 1 if args.quick else shape.runs
            samples: Samples = {mode: [] for mode in args.modes}
            order = deque(args.modes)
            with shape.opened(is_async=colour == "async", is_quick=args.quick) as case:
                for mode in order:
                    _measure(case, colour, runs, providers, mode)  # what is done once is done now
                for _ in range(rounds):
                    for mode in order:
                        took = _measure(case, colour, runs, providers, mode)
                        samples[mode].append(getattr(took, args.clock) * 1e6 / (runs * case.units))
                    order.rotate()
            yield name, shape.unit, samples


def _measure(case: Case, colour: str, runs: int, providers: Providers, mode: str) -> Clocks:
    providers.use(mode)
    gc.collect()
    began = Clocks.now()
    run_case(case, colour, runs)
    took = began.passed()
    providers.flush()
    return took


def run_case(case: Case, colour: str, runs: int) -> None:
    """Run a graph so often, each time on a thread of its own."""
    if colour == "sync":
        for _ in range(runs):
            case.graph.invoke(case.input, _config())
    else:
        asyncio.run(_arun(case, runs))


async def _arun(case: Case, runs: int) -> None:
    for _ in range(runs):
        await case.graph.ainvoke(case.input, _config())


def _config() -> dict[str, Any]:
    return {"recursion_limit": 100_000, "configurable": {"thread_id": uuid4().hex}}


def _ratios(samples: Samples) -> dict[str, float]:
    return {
        name: median(a / b for a, b in zip(samples[slow], samples[fast], strict=True))
        for name, (slow, fast) in RATIOS.items()
        if slow in samples and fast in samples
    }


def _line(name: str, unit: str, samples: Samples) -> str:
    times = "  ".join(f"{mode} {median(taken):.1f}" for mode, taken in samples.items())
    ratios = "  ".join(
        f"{key} {value:.2f}{'!' if value > LIMITS.get(key, value) else ''}" for key, value in _ratios(samples).items()
    )
    return f"{name:24} us/{unit:5} {times}   x: {ratios}"


if __name__ == "__main__":
    main()
