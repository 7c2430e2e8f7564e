"""What the tests of the command share: the sample graphs, and what a finished command is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRAPHS = Path(__file__).parent.parent / "cli" / "sample_graphs.py"


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Done]
