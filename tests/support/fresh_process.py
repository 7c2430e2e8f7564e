"""Python code in a process of its own: what one process can be set up for only once, such as OpenTelemetry's global providers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["run_python"]


def run_python(
    code: str, home: Path, *, prelude: str = "", fails: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run *prelude* and *code* with *environment*, without the telemetry variables of this process; the store is in *home*.

    *fails*: it must say this on standard error, and may exit as it likes; else it must exit with 0.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACEGRAPH_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", prelude + code],
        env={**clean, "TRACEGRAPH_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    if fails is None:
        assert done.returncode == 0, done.stderr
    else:
        assert fails in done.stderr, done.stderr
    return done
