"""Running programs that are no Python packages."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def run(command: Sequence[str | Path], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Return how a command ended that was given this text."""
    assert shutil.which(str(command[0])), f"{command[0]} is missing"
    return subprocess.run([*map(str, command)], input=text, capture_output=True, text=True, timeout=120, check=False)
