"""``python -m tests.mutants``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parent)
    runpy.run_path(str(Path(__file__).with_name("run.py")), run_name="__main__")
