"""The executable graph, and the low-level way to build one."""

from __future__ import annotations

from tracegraph.pregel.graph import Pregel
from tracegraph.pregel.node_builder import NodeBuilder

__all__ = ["NodeBuilder", "Pregel"]
