"""Two runs side by side: which nodes they went through, with what values, and where they part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final, Literal

from tracegraph_exporters import base
from tracegraph_exporters.base import SpanRecord
from tracegraph_exporters.tree import build_tree, status_of

__all__ = ["Pair", "Step", "compare", "steps_of"]

_MOST_COMPARED: Final = 2_000
"""Of longer stretches that differ the steps are compared one by one: finding what moved takes time that grows with the square."""

_VALUES: Final = {"input": "tracegraph.task.input", "output": "tracegraph.task.output"}


@dataclass(frozen=True, slots=True)
class Step:
    """A node's task. ``path``: the node, after those whose subgraphs it is in. ``values``: what was recorded of its content."""

    path: tuple[str, ...]
    superstep: int | None
    span_id: str
    status: str
    duration_ns: int
    attempts: int
    is_cached: bool
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """What both runs did at one point; one of them is None where only the other did something.

    ``changed`` are values that differ, by where they are (``output.total``), as (in a, in b); what is missing is None.
    """

    a: Step | None
    b: Step | None
    changed: dict[str, tuple[Any, Any]]

    @property
    def kind(self) -> Literal["same", "changed", "only_a", "only_b"]:
        """In what the two differ: not at all (but in how long they took), in status or values, or one is missing."""
        if self.a is None:
            return "only_b"
        if self.b is None:
            return "only_a"
        return "changed" if self.changed or self.a.status != self.b.status else "same"


def steps_of(spans: Sequence[SpanRecord]) -> list[Step]:
    """Return the tasks of a trace by superstep; those of one superstep by name, since their order of time is chance."""
    found: list[tuple[tuple[tuple[int, str, int], ...], Step]] = []
    for root in build_tree(spans):
        paths: list[tuple[str, ...]] = []
        keys: list[tuple[tuple[int, str, int], ...]] = []
        for depth, node in root.walk():
            del paths[depth:], keys[depth:]
            path, key = (paths[-1], keys[-1]) if paths else ((), ())
            span = node.span
            if isinstance(name := span.attributes.get(base.STEP_NAME), str):
                path = (*path, name)
                step = span.attributes.get(base.SUPERSTEP)
                key = (*key, (step if isinstance(step, int) else 0, name, span.start_ns))
                found.append((key, _step(span, path)))
            elif base.RUN_ID in span.attributes:
                key = (*key, (span.start_ns, "", 0))
            paths.append(path)
            keys.append(key)
    return [step for _, step in sorted(found, key=lambda item: item[0])]


def compare(a: Sequence[SpanRecord], b: Sequence[SpanRecord]) -> list[Pair]:
    """Return the steps of two traces, each beside the one of the other that it matches."""
    left, right = steps_of(a), steps_of(b)
    return [Pair(one, other, _changed(one, other)) for one, other in _matched(left, right)]


def _step(span: SpanRecord, path: tuple[str, ...]) -> Step:
    attempts = span.attributes.get(base.TASK_ATTEMPTS)
    step = span.attributes.get(base.SUPERSTEP)
    return Step(
        path=path,
        superstep=step if isinstance(step, int) else None,
        span_id=span.span_id,
        status=status_of(span),
        duration_ns=span.duration_ns,
        attempts=attempts if isinstance(attempts, int) else 1,
        is_cached=bool(span.attributes.get(base.CACHE_HIT)),
        values={name: _value(span.attributes[key]) for name, key in _VALUES.items() if key in span.attributes},
    )


def _value(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _matched(left: list[Step], right: list[Step]) -> Iterator[tuple[Step | None, Step | None]]:
    start, end = _common(left, right)
    yield from zip(left[:start], right[:start], strict=True)
    yield from _compared(left[start : len(left) - end], right[start : len(right) - end])
    yield from zip(left[len(left) - end :], right[len(right) - end :], strict=True)


def _common(left: list[Step], right: list[Step]) -> tuple[int, int]:
    """Return how many steps both begin with, and how many of the rest both end with."""
    most = min(len(left), len(right))
    start = next((at for at in range(most) if left[at].path != right[at].path), most)
    end = next((at for at in range(most - start) if left[-1 - at].path != right[-1 - at].path), most - start)
    return start, end


def _compared(left: list[Step], right: list[Step]) -> Iterator[tuple[Step | None, Step | None]]:
    if max(len(left), len(right)) > _MOST_COMPARED:
        for one, other in zip_longest(left, right):
            if one is None or other is None or one.path == other.path:
                yield one, other
            else:
                yield one, None
                yield None, other
        return
    matcher = SequenceMatcher(None, [step.path for step in left], [step.path for step in right], autojunk=False)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(left[a1:a2], right[b1:b2], strict=True)
        else:
            yield from ((step, None) for step in left[a1:a2])
            yield from ((None, step) for step in right[b1:b2])


def _changed(a: Step | None, b: Step | None) -> dict[str, tuple[Any, Any]]:
    if a is None or b is None:
        return {}
    found: dict[str, tuple[Any, Any]] = {}
    # What only one run recorded says nothing of a difference.
    for name in a.values.keys() & b.values.keys():
        before, after = a.values[name], b.values[name]
        if isinstance(before, dict) and isinstance(after, dict):
            parts = {f"{name}.{key}": (before.get(key), after.get(key)) for key in {**before, **after}}
            found |= {where: both for where, both in parts.items() if both[0] != both[1]}
        elif before != after:
            found[name] = (before, after)
    return dict(sorted(found.items()))
