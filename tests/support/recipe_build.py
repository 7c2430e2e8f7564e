"""Builds a recipe on a library."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from dataclasses import field, make_dataclass
from typing import Annotated, Any, Literal, Protocol, TypeAlias, TypedDict

import recipes
from libraries import Library
from pydantic import create_model
from recipes import FINISH, REMAINING, TURNS, Branch, Fan, FieldKind, Recipe, Step, digest, value_for, view_of

Colour: TypeAlias = Literal["sync", "async"]


class Tamper(Protocol):
    """Stands between the graph and its nodes' functions."""

    options: dict[str, Any]
    """What every node is added with."""

    def body(self, step: Step, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return what runs instead of a node's function."""

    def inside(self, step: Step) -> Tamper:
        """Return what stands between the inner graph of a step and its nodes."""


def build(
    recipe: Recipe, lib: Library, colour: Colour = "sync", *, checkpointer: Any = None, tamper: Tamper | None = None
) -> Any:
    """Return the recipe as a compiled graph of *lib*.

    ``sync`` makes every body a plain function; ``async`` makes those async that the recipe says are.
    """
    graph = lib.StateGraph(_schema(recipe, lib), **_output(recipe, lib))
    for step in recipe.steps:
        below = None if tamper is None else tamper.inside(step)
        inner = build(step.inner, lib, _inner_colour(step, colour), tamper=below) if step.inner else None
        options: dict[str, Any] = dict(tamper.options) if tamper else {}
        if step.is_deferred:
            options["defer"] = True
        if step.reads is not None:
            options["input_schema"] = _typed_dict("Reads", {name: _plain_type(recipe.kind(name)) for name in step.reads})
        action = inner
        if inner is None or step.use != "node":
            action = body_of(recipe, step, lib, colour, inner)
            action = action if tamper is None else tamper.body(step, action)
        graph.add_node(step.name, action, **options)
    for entry in recipe.entries:
        graph.add_edge(lib.START, entry)
    for start, end in recipe.edges:
        graph.add_edge(start, _target(end, lib))
    for starts, end in recipe.joins:
        graph.add_edge(list(starts), end)
    for branch in recipe.branches:
        graph.add_conditional_edges(_source(branch, lib), path_of(recipe, branch, lib, colour), _path_map(branch, lib))
    return graph.compile(checkpointer=checkpointer)


def _inner_colour(step: Step, colour: Colour) -> Colour:
    """A sync body calls the sync side of its graph, on a worker thread if the run is async."""
    return colour if step.use == "node" or step.is_async else "sync"


def body_of(recipe: Recipe, step: Step, lib: Library, colour: Colour, inner: Any) -> Callable[[Any], Any]:
    """Return a node's function: reads its view, perhaps calls the inner graph, returns what the step says."""
    calls = {"node": 0, "call": 1, "call twice": 2}[step.use] if step.inner else 0

    def body(state: Any) -> Any:
        view = view_of(state)
        for turn in range(calls):
            view = {**view, "inner": inner.invoke(inner_input(step, view, turn))}
        return returned(recipe, step, lib, view)

    async def async_body(state: Any) -> Any:
        view = view_of(state)
        for _ in range(step.naps):
            await asyncio.sleep(0)
        for turn in range(calls):
            view = {**view, "inner": await inner.ainvoke(inner_input(step, view, turn))}
        return returned(recipe, step, lib, view)

    return async_body if step.is_async and colour == "async" else body


def inner_input(step: Step, view: dict[str, Any], turn: int) -> dict[str, Any]:
    """Return what a node's code gives to the graph it invokes: depends on what the node read, and on the call."""
    assert step.inner is not None
    return {
        **step.inner.input(),
        **{f.name: value_for(f.kind, f"{step.name}{turn}", digest(view)) for f in step.inner.fields if f.kind == "text"},
    }


def returned(recipe: Recipe, step: Step, lib: Library, view: dict[str, Any]) -> Any:
    """Return what a node that saw *view* returns."""
    seed = digest(view)
    pairs = [(w.field, _written(recipe, w.field, step, seed, lib if w.is_overwrite else None)) for w in step.writes]
    update = dict(pairs)
    match step.returns:
        case "none":
            return None
        case "dict":
            return update
        case "stray":
            return {**update, "no such field": 1}
        case "command":
            return lib.Command(update=update, goto=gotos(recipe, step, lib, view, seed))
        case "pairs":
            again = [
                (name, _written(recipe, name, step, seed + 1, None))
                for name, _ in pairs
                if recipe.kind(name) in ("text", "log", "mix")
            ]
            return lib.Command(update=pairs + again, goto=gotos(recipe, step, lib, view, seed))
        case "commands":
            return [update, lib.Command(goto=gotos(recipe, step, lib, view, seed))]


def _written(recipe: Recipe, name: str, step: Step, seed: int, overwriting: Library | None) -> Any:
    kind = recipe.kind(name)
    value = 1 if name == TURNS else value_for(kind, step.name, seed)
    return value if overwriting is None else overwriting.Overwrite(value)


def gotos(recipe: Recipe, step: Step, lib: Library, view: dict[str, Any], seed: int) -> list[Any]:
    """Return where a node that returns a Command goes by itself."""
    found: list[Any] = [_target(t, lib) for t in step.goto]
    if view.get(TURNS, recipe.limit) < recipe.limit:
        found += step.goto_back
    return found + packets(step.fan, lib, seed)


def packets(fan: Fan | None, lib: Library, seed: int) -> list[Any]:
    """Return the Sends of a fan-out."""
    if fan is None:
        return []
    args = [{"item": seed % 50 + i} for i in range(fan.count)]
    return [lib.Send(fan.target, arg) for arg in args + args[:1] * fan.is_repeated]


def path_of(recipe: Recipe, branch: Branch, lib: Library, colour: Colour) -> Callable[[Any], Any]:
    """Return a path function: chooses by everything it reads, and leads back only below the limit."""

    def path(state: Any) -> Any:
        view = view_of(state)
        seed = digest(view)
        is_open = view.get(TURNS, recipe.limit) < recipe.limit
        options = branch.back + branch.forward if is_open else branch.forward
        chosen = [options[seed % len(options)]] if options else []
        if branch.many and options:
            chosen.append(options[seed // 7 % len(options)])
        names: list[Any] = [f"to {t}" if branch.is_mapped else _target(t, lib) for t in chosen]
        names += packets(branch.fan, lib, seed)
        return names[0] if len(names) == 1 and not branch.many else names

    async def async_path(state: Any) -> Any:
        await asyncio.sleep(0)
        return path(state)

    chosen = async_path if branch.is_async and colour == "async" else path
    chosen.__name__ = branch.name
    return chosen


def _path_map(branch: Branch, lib: Library) -> dict[str, str] | None:
    if not branch.is_mapped:
        return None
    return {f"to {t}": _target(t, lib) for t in branch.forward + branch.back}


def _source(branch: Branch, lib: Library) -> str:
    return branch.source or lib.START


def _target(name: str, lib: Library) -> str:
    return lib.END if name == FINISH else name


def _plain_type(kind: FieldKind) -> Any:
    return {"sum": int, "mix": int, "log": list, "topic": list, "kept": list}.get(kind, str)


def _annotation(kind: FieldKind, lib: Library) -> Any:
    match kind:
        case "sum":
            return Annotated[int, operator.add]
        case "text":
            return Annotated[str, recipes.concat]
        case "log":
            return Annotated[list, recipes.extend]
        case "mix":
            return Annotated[int, recipes.mix]
        case "last":
            return str
        case "any":
            return Annotated[str, lib.AnyValue]
        case "ephemeral":
            return Annotated[str, lib.EphemeralValue]
        case "untracked":
            return Annotated[str, lib.UntrackedValue]
        case "topic" | "kept":
            return Annotated[list, lib.Topic(str, accumulate=kind == "kept")]


def _schema(recipe: Recipe, lib: Library) -> Any:
    hints = {f.name: _annotation(f.kind, lib) for f in recipe.fields}
    if recipe.reads_remaining:
        hints[REMAINING] = lib.RemainingSteps
    match recipe.schema:
        case "typeddict":
            return _typed_dict("State", hints)
        case "dataclass":
            return make_dataclass("State", [(name, hint, field(default=None)) for name, hint in hints.items()])
        case "pydantic":
            return create_model("State", **{name: (hint, None) for name, hint in hints.items()})  # type: ignore[call-overload]


def _output(recipe: Recipe, lib: Library) -> dict[str, Any]:
    if recipe.output is not None:
        return {"output_schema": _typed_dict("Output", {name: _annotation(recipe.kind(name), lib) for name in recipe.output})}
    if recipe.reads_remaining:  # a managed value may be in no input or output schema
        plain = _typed_dict("Plain", {f.name: _annotation(f.kind, lib) for f in recipe.fields})
        return {"input_schema": plain, "output_schema": plain}
    return {}


def _typed_dict(name: str, hints: dict[str, Any]) -> Any:
    return TypedDict(name, hints, total=False)  # type: ignore[operator]  # made at run time
