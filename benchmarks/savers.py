"""Compare savers with langgraph's: python -m benchmarks.savers.

Each measurement runs in a process of its own, on an empty database, libraries in turn, so that whatever else the machine
does meanwhile falls on both. PostgreSQL is measured on the server of TRACEGRAPH_TEST_POSTGRES_URL, or one started for it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.case import load
from benchmarks.saver_cases import MEASURES, Measure, opened

Samples = dict[str, list[dict[str, float]]]
"""By library."""


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.savers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs, one round: a smoke test, not a measurement")
    parser.add_argument("--rounds", type=int, default=None, help="measurements of each cell (default 3, quick 1)")
    parser.add_argument("--only", default="", help="measures whose name or saver contains this")
    parser.add_argument("--measure", nargs=4, metavar=("LIBRARY", "KIND", "INDEX", "PLACE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        library, kind, index, place = args.measure
        print(json.dumps(_taken(library, kind, MEASURES[int(index)], place, is_quick=args.quick)))
        return
    rounds = args.rounds or (1 if args.quick else 3)
    with ExitStack() as stack:
        server = stack.enter_context(_postgres()) if any(_has(measure, "postgres", args.only) for measure in MEASURES) else ""
        for index, measure in enumerate(MEASURES):
            for kind in measure.kinds:
                if _has(measure, kind, args.only):
                    print(_line(measure, kind, _samples(index, measure, kind, server, rounds, is_quick=args.quick)), flush=True)


def _has(measure: Measure, kind: str, only: str) -> bool:
    return kind in measure.kinds and only in f"{measure.name} {kind}"


def _samples(index: int, measure: Measure, kind: str, server: str, rounds: int, *, is_quick: bool) -> Samples:
    found: Samples = {library: [] for library in measure.libraries}
    for _ in range(rounds):
        for library in measure.libraries:
            with _place(kind, server) as place:
                command = [sys.executable, "-m", "benchmarks.savers", "--measure", library, kind, str(index), place]
                done = subprocess.run(
                    [*command, *(["--quick"] if is_quick else [])], stdout=subprocess.PIPE, text=True, check=True
                )
            found[library].append(json.loads(done.stdout))
    return found


def _taken(library: str, kind: str, measure: Measure, place: str, *, is_quick: bool) -> dict[str, float]:
    lib = load(library)
    with opened(library, kind, place) as saver:
        measure.take(lib, saver, 200)  # whatever is done once is done now, on a thread that the measure then goes on with
        saver.delete_thread("t")
        gc.collect()
        return measure.take(lib, saver, measure.quick_size if is_quick else measure.size)


def _line(measure: Measure, kind: str, samples: Samples) -> str:
    parts = []
    for library, taken in samples.items():
        figures = ", ".join(f"{name} {median(each[name] for each in taken):.1f}" for name in taken[0])
        parts.append(f"{library}: {figures}")
    if len(samples) > 1:
        theirs, ours = (median(each[measure.figure] for each in samples[library]) for library in ("langgraph", "tracegraph"))
        parts.append(f"x {theirs / ours:.2f}")
    return f"{measure.name:26} {kind:9} " + "   ".join(parts)


@contextmanager
def _place(kind: str, server: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        if kind == "postgres":
            with _support().new_database(server) as url:
                yield url
        else:
            yield str(Path(folder) / "checkpoints.db")


@contextmanager
def _postgres() -> Iterator[str]:
    if yours := os.environ.get("TRACEGRAPH_TEST_POSTGRES_URL"):
        yield yours
        return
    support = _support()
    programs = support.find_programs()
    if not programs:
        sys.exit(support.NO_SERVER)
    with support.running_server(programs[0]) as url:
        yield url


def _support() -> Any:
    """Return the tests' way to a server."""
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
    import postgres_server  # type: ignore[import-not-found]

    return postgres_server


if __name__ == "__main__":
    main()
