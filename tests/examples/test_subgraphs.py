"""The subgraphs example."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "subgraphs.py"), run_name="subgraphs")


def test_both_subgraphs_leave_a_note(tmp_path: Path) -> None:
    """The graph that is a node and the one that a node calls add to the same list; private keys stay private."""
    document = tmp_path / "document.txt"
    document.write_text("A graph is a graph. Another graph follows here, a little longer?", "utf-8")

    result = EXAMPLE["graph"].invoke({"path": str(document)})

    assert sorted(result["notes"]) == ["2 sentences, the longest has 7 words", "its most common word is 'graph'"]
    assert set(result) == {"path", "text", "notes"}
    assert asyncio.run(EXAMPLE["graph"].ainvoke({"path": str(document)})) == result
