"""Seeds known mistakes into a copy of the package, one at a time; each must turn its tests red.

Exits 1 if a mistake survives, if a patch no longer applies, or if the tests are red without any mistake.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutants import MUTANTS, Mutant

REPOSITORY = Path(__file__).parents[2]
TESTS_FAILED = 1  # pytest's exit code; any other one means that the tests did not run


class PatchRefused(Exception):
    """The text to replace is not there exactly once: the code has moved on, so must the mutant."""


def copy_package(place: Path) -> Path:
    """Copy the package below *place* and return its folder."""
    package = place / "tracegraph"
    shutil.copytree(REPOSITORY / "tracegraph", package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def seed(mutant: Mutant, package: Path) -> None:
    """Make the mutant's edits."""
    for edit in mutant.edits:
        file = package / edit.path
        text = file.read_text()
        if (found := text.count(edit.find)) != 1:
            raise PatchRefused(f"{edit.path}: {edit.find.strip()!r} occurs {found} times, not once")
        file.write_text(text.replace(edit.find, edit.put))


def python(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy below *place* first on its path (``-P``: the repository's own package is not)."""
    environment = {**os.environ, "PYTHONPATH": str(place), "HYPOTHESIS_PROFILE": "ci", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def run_tests(place: Path, tests: Iterable[str]) -> tuple[int, str]:
    """Run *tests* against the copy below *place*; return pytest's exit code and what it printed."""
    where = python(place, "-c", "import tracegraph; print(tracegraph.__file__)")
    if not where.stdout.startswith(str(place)):
        return -1, f"the copy is not what Python imports: {where.stdout}{where.stderr}"
    done = python(place, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests)
    return done.returncode, done.stdout + done.stderr


def try_mutant(mutant: Mutant | None, tests: Sequence[str]) -> tuple[str, str]:
    """Return the verdict on one mutant (None: the package as it is), and the output behind it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        package = copy_package(place)
        try:
            if mutant is not None:
                seed(mutant, package)
        except PatchRefused as refusal:
            return "patch refused", str(refusal)
        code, output = run_tests(place, tests)
    if code not in (0, TESTS_FAILED):
        return "tests broken", output
    if mutant is None:
        return ("green", output) if code == 0 else ("tests red", output)
    return ("killed", output) if code == TESTS_FAILED else ("SURVIVED", output)


def killer(output: str) -> str:
    """Return the name of the first test that failed."""
    failed = next((line for line in output.splitlines() if line.startswith("FAILED ")), "")
    return failed.removeprefix("FAILED ").partition(" - ")[0].rpartition("::")[2]


def say(line: str) -> None:
    """Print a line of the table at once: the next one takes a while."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Try all mutants and print the table."""
    begun = time.monotonic()
    everything = list(dict.fromkeys(test for mutant in MUTANTS for test in mutant.tests))
    is_good = True
    for mutant in (None, *MUTANTS):
        start = time.monotonic()
        verdict, output = try_mutant(mutant, everything if mutant is None else mutant.tests)
        name = "(no mistake)" if mutant is None else mutant.name
        say(f"{name:34}{verdict:15}{time.monotonic() - start:7.1f} s  {killer(output)}")
        if verdict not in ("green", "killed"):
            is_good = False
            say(output[-4000:])
        if mutant is None and not is_good:
            break  # whatever is red now would be red for every mutant
    say(f"{len(MUTANTS)} mistakes, {time.monotonic() - begun:.0f} s")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
