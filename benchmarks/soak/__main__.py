"""Parse the command line, soak, print the report; exit 1 if something grew.

glibc gives threads arenas and caches of their own, which fill up for hours with what was freed long ago. To see what is
in use, the command starts itself again with one arena and without these caches; ``--allocator as-is`` leaves that out.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import Final

from benchmarks.soak.settings import QUICK, Settings
from benchmarks.soak.soak import run_soak

PLAIN: Final = {"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
FEWEST_SAMPLES: Final = 6


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK.runs:,} runs, memory not judged: a smoke test")
    parser.add_argument("--runs", type=int, default=None, help=f"calls of a graph (default {Settings.runs:,})")
    parser.add_argument("--samples", type=int, default=None, help="how often everything is looked at")
    parser.add_argument("--allocator", choices=("plain", "as-is"), default="plain", help="see above")
    args = parser.parse_args()
    if not Path("/proc/self/fd").is_dir():
        parser.error("it reads /proc/self, which only Linux has")
    if args.samples is not None and args.samples < FEWEST_SAMPLES:
        parser.error(f"--samples {args.samples}: growth shows in {FEWEST_SAMPLES} samples or more")
    if args.allocator == "plain" and PLAIN.items() - os.environ.items():
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.soak", *sys.argv[1:]], {**os.environ, **PLAIN})  # noqa: S606
    given = {name: value for name in ("runs", "samples") if (value := getattr(args, name)) is not None}
    settings = dataclasses.replace(QUICK if args.quick else Settings(), **given)
    report = run_soak(settings, say=lambda line: print(line, file=sys.stderr, flush=True))
    print("\n".join(report.lines()))
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
