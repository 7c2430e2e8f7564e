"""How much of a delta channel's history an import holds at once."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tracegraph.channels.delta import DeltaLog, DeltaSnapshot
from tracegraph.constants import MISSING
from tracegraph.interop.langgraph.delta import DeltaValues
from tracegraph.interop.langgraph.stored import Place, Stored, StoredWrite
from tracegraph.types import Overwrite


def checkpoint(number: int, parent: int | None, write: Any, **values: Any) -> Stored:
    """Return a checkpoint that has seen one more write than its parent, and whose own superstep made *write*."""
    record = {"v": 4, "ts": "2026-01-01T00:00:00+00:00", "channel_values": values, "channel_versions": {"log": number}}
    made = Stored(Place("t", "", str(number)), None if parent is None else str(parent), record | {"versions_seen": {}}, {})
    made.writes = [StoredWrite("", "task", 0, "log", write)]
    return made


def line(steps: int, snapshot_every: int | None = None) -> Iterator[Stored]:
    for step in range(steps):
        values = {}
        if snapshot_every is not None and step % snapshot_every == 0:
            values = {"log": DeltaSnapshot([f"{step:01000}"] * 10)}
        yield checkpoint(step, step - 1 if step else None, f"{step:01000}", **values)


def forks(count: int) -> Iterator[Stored]:
    """Yield a line, and as many branches of its end that go on by one checkpoint each."""
    yield from line(count)
    for number in range(count, 2 * count):
        yield checkpoint(number, count - 1, f"{number:01000}")


def parents(steps: Iterable[Stored]) -> list[str | None]:
    return [stored.parent_id for stored in steps]


def peak_bytes(make: Any, *arguments: Any) -> int:
    """Return the most that filling in the values takes at once, where nobody keeps them."""
    values = DeltaValues({"log"}, parents(make(*arguments)))
    gc.collect()
    tracemalloc.start()
    try:
        for stored in make(*arguments):
            values.complete(stored)
            values.increments(stored)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [line, forks])
def test_memory_grows_with_the_writes_and_not_with_their_square(make: Any) -> None:
    """What is read is held once, whatever the number of checkpoints that see it."""
    small, large = peak_bytes(make, 1_000), peak_bytes(make, 2_000)

    assert large < 2.5 * small
    assert large < 2 * 2_000 * 1_200


def test_what_lies_before_a_snapshot_is_let_go_of() -> None:
    """A line with snapshots takes no more however long it is."""
    assert peak_bytes(line, 2_000, 20) < 1.2 * peak_bytes(line, 200, 20)


def completed(*steps: Stored) -> list[Any]:
    values = DeltaValues({"log"}, parents(steps))
    found = []
    for stored in steps:
        values.complete(stored)
        values.increments(stored)
        found.append(stored.checkpoint["channel_values"].get("log", MISSING))
    return found


def test_branches_that_share_a_log_have_their_own_writes() -> None:
    """Also where one goes on before the other begins, and one of them overwrites."""
    found = completed(
        checkpoint(0, None, "a"),
        checkpoint(1, 0, "b"),
        checkpoint(2, 1, "c"),
        checkpoint(3, 2, "d"),
        checkpoint(4, 1, Overwrite(["left"])),
        checkpoint(5, 4, "e"),
        checkpoint(6, 3, "f"),
        checkpoint(7, 5, "g"),
        checkpoint(8, 1, "h"),
        checkpoint(9, 8, "i"),
    )

    assert [(held.base, held.writes) if type(held) is DeltaLog else held for held in found] == [
        MISSING,
        (MISSING, ["a"]),
        (MISSING, ["a", "b"]),
        (MISSING, ["a", "b", "c"]),
        (MISSING, ["a", "b"]),
        ["left"],
        (MISSING, ["a", "b", "c", "d"]),
        (["left"], ["e"]),
        (MISSING, ["a", "b"]),
        (MISSING, ["a", "b", "h"]),
    ]
