"""Makes the modules of ``tests/support`` importable from every test, and its fixtures known, to the documentation's pages too."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tests" / "support"))

# Every run of every test checks the engine's invariants after every report.
os.environ.setdefault("TRACEGRAPH_CHECK", "1")

# Shells start jobs in the background with Ctrl-C ignored, and so would be the tests' own, and that of their processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from postgres_fixtures import *  # noqa: F403  # only importable now
from run_fixtures import *  # noqa: F403
from span_watch import *  # noqa: F403  # its hooks
