"""Finds the graph that a command names, and reads the JSON it is given."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from tracegraph.cli.output import CliError, fail, one_line, safe_str
from tracegraph.graph.state import StateGraph
from tracegraph.pregel import Pregel

__all__ = ["describe_error", "load_graph", "read_json", "user_place"]

T = TypeVar("T")

_OWN_FOLDER = str(Path(__file__).parent.parent)


def load_graph(target: str) -> Pregel:
    """Return the graph named by ``FILE.py:name`` or ``module:name``.

    ``name`` is a compiled graph, a ``StateGraph`` (which is compiled), or a function without parameters that
    returns one of them. Without a name the only graph of the file is meant.

    Raises:
        CliError: there is no such file, module or graph, or its code raises.
    """
    place, _, name = target.partition(":")
    if target[1:3] in (":\\", ":/"):  # a Windows drive
        place, _, name = target[2:].partition(":")
        place = target[:2] + place
    # What a file prints while it is loaded must not get into a result or a drawing.
    with redirect_stdout(sys.stderr):
        module = _load_file(Path(place)) if place.endswith(".py") else _import_module(place, target)
        found = _made(_find(module, name, target), target)
    if not isinstance(found, Pregel):
        fail(f"{target!r} is no graph but of type {type(found).__name__!r}{_hint(module)}")
    return found


def _made(found: Any, target: str) -> Any:
    """Return what a factory returns, and what a builder compiles to."""
    if not isinstance(found, (Pregel, StateGraph)) and callable(found):
        found = _call_factory(found, target)
    if not isinstance(found, StateGraph):
        return found
    try:
        return found.compile()
    except Exception as error:
        raise CliError(f"{target!r} does not compile: {describe_error(error)}") from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        fail(f"there is no file {str(path)!r}" if not path.exists() else f"{str(path)!r} is not a file")
    # A script's own folder is where its imports are looked up first; so it is here.
    sys.path.insert(0, str(path.parent.resolve()))
    name = _module_name(path)
    loader = SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(name, loader) or fail(f"{str(path)!r} is no Python file")
    )
    # Type hints of dataclasses and models are looked up in the module by its name.
    sys.modules[name] = module
    _guarded(lambda: loader.exec_module(module), str(path))
    return module


def _module_name(path: Path) -> str:
    """Return the name by which other files of its folder import it, unless that means something else here."""
    if path.stem.isidentifier() and path.stem not in sys.modules:
        found = importlib.util.find_spec(path.stem)
        if found is not None and found.origin is not None and Path(found.origin) == path.resolve():
            return path.stem
    return f"_graph_file_{path.stem}"


def _import_module(name: str, target: str) -> ModuleType:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        fail(f"{target!r} names no graph; write FILE.py:graph or module:graph")
    sys.path.insert(0, str(Path.cwd()))
    return _guarded(lambda: importlib.import_module(name), name)


def _guarded(load: Callable[[], T], what: str) -> T:
    try:
        return load()
    except (Exception, SystemExit) as error:
        raise CliError(f"{what!r} does not load: {describe_error(error)}") from error


def _find(module: ModuleType, name: str, target: str) -> Any:
    if not name:
        graphs = _graphs(module)
        if len(graphs) != 1:
            fail(f"{target!r} names no graph{_hint(module)}")
        return graphs[next(iter(graphs))]
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            fail(f"there is no {name!r} in {target.rpartition(':')[0]!r}{_hint(module)}")
        found = getattr(found, part)
    return found


def _graphs(module: ModuleType) -> dict[str, Any]:
    compiled = {name: value for name, value in vars(module).items() if isinstance(value, Pregel) and not name.startswith("_")}
    return compiled or {name: value for name, value in vars(module).items() if isinstance(value, StateGraph)}


def _hint(module: ModuleType) -> str:
    names = ", ".join(map(repr, _graphs(module)))
    return f"; graphs there: {names}" if names else "; no graph is defined there"


def _call_factory(factory: Any, target: str) -> Any:
    try:
        needs = [
            p.name for p in inspect.signature(factory).parameters.values() if p.default is p.empty and p.kind < p.VAR_POSITIONAL
        ]
    except (TypeError, ValueError):
        needs = ["?"]
    if isinstance(factory, type) or needs or inspect.iscoroutinefunction(factory):
        fail(f"{target!r} is neither a graph nor a function without parameters that returns one")
    try:
        return factory()
    except Exception as error:
        raise CliError(f"{target!r} returned no graph: {describe_error(error)}") from error


def describe_error(error: BaseException, node: str | None = None) -> str:
    """Return type and message, the node, and the line of the user's own code that raised it; all on one line."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({Path(error.filename or '?').name}:{error.lineno})"
    text = one_line(safe_str(error))
    # The drivers add a note for each level of graphs; here the innermost node says enough.
    notes = [one_line(safe_str(note)) for note in getattr(error, "__notes__", ())]
    notes = [note for note in notes if node is None or not note.startswith("while running")]
    named = [] if node is None or repr(node) in text else [f"in node {node!r}"]
    facts = ", ".join([*named, *notes, *filter(None, [user_place(error)])])
    return f"{type(error).__name__}{f': {text}' if text else ''}{f' ({facts})' if facts else ''}"


def user_place(error: BaseException) -> str:
    """Return ``file:line`` of the innermost code that is neither tracegraph's nor Python's own, empty if there is none."""
    for frame in reversed(_frames(error)):
        is_ours = frame.filename.startswith((_OWN_FOLDER, "<")) or "/lib/python" in frame.filename
        if not is_ours:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def read_json(text: str | None, option: str, kinds: Iterable[type] = (), *, hint: str = "") -> Any:
    """Return the JSON that an option gives: itself, in a file (``@FILE``), or on standard input (``-``).

    Args:
        text: None stands for an option that was not given, and is None.
        option: its name, for the error.
        kinds: what the value may be; anything if empty.
        hint: what to add to the error if it is no JSON.

    Raises:
        CliError: it cannot be read, or is no JSON, or of another kind.
    """
    if text is None:
        return None
    source, content = _content(text, option)
    try:
        value = json.loads(content)
    except ValueError as error:
        if not text.startswith("@") and _is_file(text):
            hint = f"; to read a file, write {option} @{text}"
        fail(f"{source} is no JSON: {error}{hint}", error)
    if kinds and not isinstance(value, tuple(kinds)):
        fail(f"{source} is a JSON {_JSON_NAMES[type(value)]}, but has to be {' or '.join(_JSON_NAMES[kind] for kind in kinds)}")
    return value


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it
        return False


_JSON_NAMES = {dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def _content(text: str, option: str) -> tuple[str, str]:
    try:
        if text == "-":
            return "standard input", sys.stdin.read()
        if text.startswith("@"):
            return f"the file {text[1:]!r} of {option}", Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fail(f"{option} {text} cannot be read: {reason}", error)
    return f"the value of {option}", text
