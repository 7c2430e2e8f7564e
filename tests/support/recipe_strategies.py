"""Draws recipes: small graphs, each feature likely, and (almost) every run ends well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from recipes import CLEARING, FINISH, MERGING, TURNS, Branch, Fan, Field, FieldKind, Recipe, Returns, Step, Write

KINDS: tuple[FieldKind, ...] = ("text", "log", "mix", "last", "text", "log", "any", "ephemeral", "topic", "kept", "untracked")
NAMES = "bcdefgh"


def recipes(depth: int = 1, *, is_resumable: bool = False) -> st.SearchStrategy[Recipe]:
    """Return a strategy of recipes with subgraphs down to *depth* levels.

    ``is_resumable`` leaves out what a resumed run sees otherwise by design: untracked fields, and how many
    supersteps remain.
    """
    return _recipes(depth, is_root=True, is_resumable=is_resumable)


@st.composite
def _recipes(draw: st.DrawFn, depth: int, is_root: bool, is_resumable: bool) -> Recipe:
    fields = (Field(TURNS, "sum"), *_fields(draw, depth, is_resumable))
    # The order of names is not the order of edges: name order decides how parallel writes are merged.
    names = draw(st.permutations(NAMES[: draw(st.integers(2, 6 if is_root else 3))]))
    workers = set(draw(st.sets(st.sampled_from(names[1:]), max_size=2)))
    has_sends = bool(workers) and draw(st.booleans())
    plan = _Plan(draw, names, fields, workers if has_sends else set(), depth, is_resumable)
    steps = tuple(plan.step(i) for i in range(len(names)))
    branches = tuple(b for i in range(len(names)) for b in plan.branches(i))
    entry_branch = plan.entry_branch() if draw(st.booleans()) else ()
    output = draw(st.none() | st.sets(st.sampled_from([f.name for f in fields]))) if is_root else None
    return Recipe(
        fields=fields,
        steps=steps,
        entries=tuple(sorted({names[0], *draw(st.sets(st.sampled_from(names), max_size=2))})),
        edges=plan.edges(),
        joins=plan.joins(),
        branches=branches + entry_branch,
        given=tuple(f.name for f in fields[1:] if draw(st.booleans())),
        output=None if output is None else (TURNS, *sorted(output - {TURNS})),
        schema=draw(st.sampled_from(("typeddict", "typeddict", "typeddict", "dataclass", "pydantic"))),
        reads_remaining=not is_resumable and draw(st.sampled_from((False, False, True))),
        limit=draw(st.integers(1, 4)),
        recursion_limit=draw(st.sampled_from((25, 25, 25, 25, 4))) if is_root and not is_resumable else 25,
    )


def _fields(draw: st.DrawFn, depth: int, is_resumable: bool) -> list[Field]:
    choice = [kind for kind in KINDS if not (is_resumable and kind == "untracked")]
    kinds = draw(st.lists(st.sampled_from(choice), min_size=1, max_size=5 if depth else 3))
    # Shared names across levels: an inner graph reads and writes its parent's fields of the same name.
    return [Field(f"{kind}_{i}", kind) for i, kind in enumerate(kinds)]


class _Plan:
    """Draws the parts of one graph whose nodes are *names*, in the order in which edges may lead."""

    def __init__(
        self, draw: st.DrawFn, names: Sequence[str], fields: Sequence[Field], workers: set[str], depth: int, is_resumable: bool
    ) -> None:
        self._draw = draw
        self._names = list(names)
        self._fields = list(fields[1:])
        self._workers = workers
        self._depth = depth
        self._is_resumable = is_resumable
        self._has_clearing = any(f.kind in CLEARING for f in fields)
        self._owners = {f.name: draw(st.sampled_from([n for n in names if n not in workers])) for f in self._fields}
        self._overwriters = {name: owner for name, owner in self._owners.items() if draw(st.integers(0, 4)) == 0}
        self._is_careless = draw(st.integers(0, 9)) == 0

    def step(self, i: int) -> Step:
        draw, name = self._draw, self._names[i]
        inner = None
        if self._depth and draw(st.integers(0, 3)) == 0:
            inner = draw(_recipes(self._depth - 1, is_root=False, is_resumable=self._is_resumable))
        use = draw(st.sampled_from(("node", "call", "call twice"))) if inner else "node"
        if inner is not None and use == "node":
            inner = self._fitting(inner, name)
        later = self._names[i + 1 :]
        returns = self._returns()
        return Step(
            name=name,
            writes=self._writes(name),
            returns=returns,
            goto=tuple(draw(st.sets(st.sampled_from([*later, FINISH]), max_size=2)))
            if returns.startswith(("comm", "pair"))
            else (),
            goto_back=tuple(draw(st.sets(st.sampled_from(self._names), max_size=1))),
            fan=self._fan(i),
            reads=self._reads(),
            is_deferred=not self._workers and draw(st.integers(0, 7)) == 0,
            is_async=draw(st.booleans()),
            naps=draw(st.integers(0, 3)),
            inner=inner,
            use=use,  # type: ignore[arg-type]  # one of the three literals
        )

    def _returns(self) -> Returns:
        choice: Returns = self._draw(st.sampled_from(("dict", "dict", "dict", "command", "pairs", "commands", "none", "stray")))
        # LangGraph leaves out the values of a step that updated nothing, so a field that such a step clears would stay
        # in the result of invoke(); that is deviation D19.
        return "dict" if choice == "none" and self._has_clearing else choice

    def _writes(self, name: str) -> tuple[Write, ...]:
        draw = self._draw
        writes = [Write(TURNS)]  # always: see _returns, and whatever leads back needs it
        for f in self._fields:
            is_owner = self._owners[f.name] == name
            may = f.kind in MERGING or is_owner or self._is_careless
            if may and draw(st.integers(0, 3)) > 0:
                may_overwrite = f.kind in ("text", "log", "mix") and self._overwriters.get(f.name) == name
                writes.append(Write(f.name, may_overwrite))
        return tuple(draw(st.permutations(writes)))

    def _reads(self) -> tuple[str, ...] | None:
        if self._draw(st.integers(0, 3)):
            return None
        # Always the counter: a path that does not see it would be shown what its node wrote to it, never the sum.
        names = self._draw(st.sets(st.sampled_from([f.name for f in self._fields])))
        return (TURNS, *sorted(names))

    def _fan(self, i: int) -> Fan | None:
        draw = self._draw
        targets = [n for n in self._names[i + 1 :] if n in self._workers]
        if not targets or self._names[i] in self._workers or draw(st.integers(0, 2)) == 0:
            return None
        return Fan(draw(st.sampled_from(targets)), draw(st.integers(1, 4)), draw(st.booleans()))

    def _fitting(self, inner: Recipe, name: str) -> Recipe:
        """Give an inner graph that is a node only fields it may write here: all of them come back as its update."""
        mine = {f.name: f.kind for f in self._fields}
        may = {n for n, kind in mine.items() if kind in MERGING or (self._owners[n] == name and name not in self._workers)}
        keep = tuple(
            f.name for f in inner.fields if f.name == TURNS or f.name not in mine or (f.name in may and mine[f.name] == f.kind)
        )
        return Recipe(**{**vars(inner), "output": keep})

    def branches(self, i: int) -> list[Branch]:
        draw, name = self._draw, self._names[i]
        return [self._branch(f"path_{name}{k}", name, i) for k in range(draw(st.sampled_from((0, 0, 1, 1, 2))))]

    def entry_branch(self) -> tuple[Branch, ...]:
        return (self._branch("path_start", "", -1),)

    def _branch(self, branch: str, source: str, i: int) -> Branch:
        draw = self._draw
        later = [*self._names[i + 1 :], FINISH]
        back = draw(st.sets(st.sampled_from(self._names), max_size=2)) if source else ()
        return Branch(
            name=branch,
            source=source,
            forward=tuple(sorted(draw(st.sets(st.sampled_from(later), min_size=1, max_size=3)))),
            back=tuple(sorted(back)),
            fan=self._fan(i) if source else None,
            many=draw(st.booleans()),
            is_mapped=draw(st.booleans()),
            is_async=draw(st.booleans()),
        )

    def edges(self) -> tuple[tuple[str, str], ...]:
        pairs = [(a, b) for i, a in enumerate(self._names) for b in [*self._names[i + 1 :], FINISH]]
        return tuple(sorted(self._draw(st.sets(st.sampled_from(pairs), max_size=len(self._names)))))

    def joins(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        if len(self._names) < 3:
            return ()
        found: list[Any] = []
        for _ in range(self._draw(st.sampled_from((0, 0, 1, 1, 2)))):
            end = self._draw(st.integers(2, len(self._names) - 1))
            starts = self._draw(st.sets(st.sampled_from(self._names[:end]), min_size=2, max_size=3))
            found.append((tuple(sorted(starts)), self._names[end]))
        return tuple(dict.fromkeys(found))
