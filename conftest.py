"""Makes the modules of ``tests/support`` importable from every test, and its fixtures known, to the documentation's pages too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tests" / "support"))

# Every run of every test checks the engine's invariants after every report.
os.environ.setdefault("TRACEGRAPH_CHECK", "1")

from postgres_fixtures import *  # noqa: F403  # only importable now
