"""``python -m dashboards [--check]`` writes the dashboards, data sources and alerts, or says what is not up to date."""

from __future__ import annotations

import sys

from dashboards.build import outdated, write


def main(arguments: list[str]) -> int:
    """Write, or only check; return the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m dashboards [--check]", file=sys.stderr)
        return 2
    if not arguments:
        write()
        return 0
    found = list(outdated())
    for path in found:
        print(f"not up to date: dashboards/{path}; run `python -m dashboards`", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
