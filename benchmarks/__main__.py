"""Start a worker for each library and mode, measure them alternately, print the table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from benchmarks.report import Key, Row, print_json, print_table
from benchmarks.scenarios import SCENARIOS
from benchmarks.worker import METRICS, MODES

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small graphs, few rounds: a smoke test, not a measurement")
    parser.add_argument("--json", action="store_true", help="print every sample as JSON")
    parser.add_argument("--rounds", type=int, default=None, help="measurements of each cell (default 5, quick 2)")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: processor time, for a machine that is shared"
    )
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--libraries", nargs="+", default=["tracegraph", "langgraph"], help="libraries to measure")
    parser.add_argument(
        "--modes", nargs="+", default=[*MODES, METRICS], choices=[*MODES, METRICS], help="with which telemetry (default all)"
    )
    args = parser.parse_args()
    rounds = args.rounds or (2 if args.quick else 5)
    with ExitStack() as stack:
        workers = {
            (library, mode): stack.enter_context(_started(library, mode, is_quick=args.quick))
            for library in args.libraries
            for mode in args.modes
            if mode != METRICS or library == "tracegraph"
        }
        rows = list(_measured(workers, rounds, args.only, args.clock))
    (print_json if args.json else print_table)(rows)


def _started(library: str, mode: str, *, is_quick: bool) -> subprocess.Popen[str]:
    # Anything that would trace to somewhere else by itself must stay out of the figures.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LANGSMITH_", "LANGCHAIN_", "TRACEGRAPH_"))}
    command = [sys.executable, "-m", "benchmarks.worker", library, mode, "quick" if is_quick else "full"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


def _measured(workers: dict[Key, subprocess.Popen[str]], rounds: int, only: str, clock: str) -> Iterator[Row]:
    for index, scenario in enumerate(SCENARIOS):
        for colour in scenario.colours if only in scenario.name else ():
            row = Row(scenario.name, colour, scenario.unit, clock)
            for _ in range(rounds):
                for key, worker in workers.items():
                    row.samples.setdefault(key, []).append(_ask(key, worker, [index, colour]))
            for line in filter(None, (row, row.of_first_parts())):
                print(f"measured {line}", file=sys.stderr)
                yield line


def _ask(key: Key, worker: subprocess.Popen[str], request: list[Any]) -> dict[str, float]:
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write(json.dumps(request) + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        sys.exit(f"the worker of {' '.join(key)} died on {request}; its message is above")
    answer: dict[str, float] = json.loads(line)
    return answer


if __name__ == "__main__":
    main()
