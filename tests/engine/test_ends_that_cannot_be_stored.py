"""A run ends even if its end cannot be stored, and a command begins one where there is no start node."""

from __future__ import annotations

from typing import Any

import pytest
from channel_graphs import channel_graph, doubling

from tracegraph.channels import BaseChannel, EphemeralValue, LastValue
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.constants import MISSING
from tracegraph.errors import EmptyChannelError
from tracegraph.pregel import NodeBuilder, Pregel
from tracegraph.types import Command


class Unsavable(BaseChannel[Any, Any, Any]):
    """A channel of the user's own that cannot say what to store once it holds something."""

    def __init__(self, value: Any = MISSING) -> None:
        super().__init__(Any)
        self.value = value

    ValueType = UpdateType = Any  # type: ignore[assignment]

    def update(self, values: Any) -> bool:
        if values:
            self.value = values[-1]
        return bool(values)

    def get(self) -> Any:
        if self.value is MISSING:
            raise EmptyChannelError
        return self.value

    def checkpoint(self) -> Any:
        if self.value is not MISSING:
            raise RuntimeError("no form to store")
        return MISSING

    def copy(self) -> Unsavable:
        return type(self)(self.value)

    def from_checkpoint(self, checkpoint: Any) -> Unsavable:
        return type(self)(checkpoint)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_channel_that_cannot_be_stored_fails_the_run(durability: Any) -> None:
    """With its own error, under every durability; nothing waits for an end that never comes."""
    node = NodeBuilder().subscribe_only("a").do(lambda x: x).write_to("b", "u")
    app = Pregel(
        nodes={"d": node},
        channels={"a": EphemeralValue(int), "b": LastValue(int), "u": Unsavable()},
        input_channels="a",
        output_channels="b",
        checkpointer=InMemorySaver(),
    )

    with pytest.raises(RuntimeError, match="no form to store"):
        app.invoke(1, {"configurable": {"thread_id": "t"}}, durability=durability)


def test_a_command_begins_a_low_level_run() -> None:
    """Its update is the input: there is no start node that could read the command."""
    app = channel_graph({"double": doubling()})

    assert app.invoke(Command(update={"a": 5})) == app.invoke(5)
