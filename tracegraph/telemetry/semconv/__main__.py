"""``python -m tracegraph.telemetry.semconv [PATH]`` writes the registry down as ``docs/telemetry.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from tracegraph.telemetry.semconv.page import telemetry_page

if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/telemetry.md")
    path.write_text(telemetry_page(), encoding="utf-8")
