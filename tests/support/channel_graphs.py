"""Low-level graphs for tests: a few channels and builders, assembled by keyword."""

from __future__ import annotations

import operator
from typing import Any

from tracegraph.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, Topic
from tracegraph.constants import TASKS
from tracegraph.pregel import NodeBuilder, Pregel
from tracegraph.types import Send


def channel_graph(nodes: dict[str, Any], **options: Any) -> Pregel:
    """Return a graph with input channel ``a``, plain channels ``b`` and ``c``, the summing ``total``, and pending Sends."""
    given: dict[str, Any] = {
        "channels": {
            "a": EphemeralValue(int),
            "b": LastValue(int),
            "c": LastValue(int),
            "total": BinaryOperatorAggregate(int, operator.add),
            TASKS: Topic(Send),
        },
        "input_channels": "a",
        "output_channels": "b",
        **options,
    }
    return Pregel(nodes=nodes, **given)


def doubling() -> NodeBuilder:
    """Return a node that writes twice ``a`` to ``b``."""
    return NodeBuilder().subscribe_only("a").do(lambda x: x * 2).write_to("b")
