"""What a node calls: a function, a callable object, a compiled graph or a Runnable, analysed once."""

from __future__ import annotations

import functools
import inspect
import typing
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tracegraph.errors import NodeError

if TYPE_CHECKING:
    from tracegraph.drivers.here import HereNow

__all__ = ["Body"]

INJECTABLE: Final = ("config", "writer", "store", "previous", "runtime", "error")
_CONFIG_ANNOTATIONS: Final = ("RunnableConfig", "Optional[RunnableConfig]", "RunnableConfig | None", "None | RunnableConfig")


class Body:
    """A callable with its two lanes and the parameters that the runtime supplies.

    ``fn`` is the sync lane (None if there is only an async one), ``afn`` the async lane.
    """

    __slots__ = ("afn", "fn", "inject", "name", "needs_store", "takes_config", "target")

    def __init__(
        self,
        target: Any,
        *,
        name: str,
        fn: Callable[..., Any] | None,
        afn: Callable[..., Any] | None,
        inject: tuple[str, ...] = (),
        takes_config: bool = False,
        needs_store: bool = False,
    ) -> None:
        self.target = target
        self.name = name
        self.fn = fn
        self.afn = afn
        self.inject = inject
        """Names of keyword parameters to supply, among config, writer, store, previous, runtime, error."""
        self.takes_config = takes_config
        """A Runnable: the config is its second positional argument."""
        self.needs_store = needs_store

    @property
    def is_async(self) -> bool:
        """Whether it can only be awaited."""
        return self.fn is None

    @property
    def has_sync(self) -> bool:
        """Whether sync runs can call it."""
        return self.fn is not None

    @classmethod
    def of(cls, target: Any, *, name: str | None = None, takes_state: bool = True) -> Body:
        """Analyse a callable; its first parameter is the state, whatever its name, unless ``takes_state`` is false.

        Raises:
            TypeError: *target* can be neither called nor invoked.
        """
        if (
            not inspect.isroutine(target)
            and callable(getattr(target, "invoke", None))
            and callable(getattr(target, "ainvoke", None))
        ):
            # A graph of ours inherits the ambient config; handed over as its own, it would override what the graph is bound to.
            takes_config = not getattr(target, "is_compiled_graph", False)
            return cls(
                target, name=name or _runnable_name(target), fn=target.invoke, afn=target.ainvoke, takes_config=takes_config
            )
        if not callable(target):
            raise TypeError(f"a node is a function, a callable object, a compiled graph or a Runnable, not {target!r}")
        inject, needs_store = _injected(target, 1 if takes_state else 0)
        is_async = _is_async(target)
        return cls(
            target,
            name=name or callable_name(target),
            fn=None if is_async else target,
            afn=target if is_async else None,
            inject=inject,
            needs_store=needs_store,
        )

    def arguments(self, here: HereNow) -> dict[str, Any]:
        """Return the keyword arguments the runtime supplies.

        Raises:
            ValueError: the callable needs a store and the graph has none.
        """
        found: dict[str, Any] = {}
        for name in self.inject:
            match name:
                case "config":
                    found[name] = here.config()
                case "error":
                    found[name] = here.task.handles
                case "runtime":
                    found[name] = here.runtime
                case "writer":
                    found[name] = here.runtime.stream_writer
                case "previous":
                    found[name] = here.runtime.previous
                case _:
                    store = here.runtime.store
                    if store is None and self.needs_store:
                        node = here.task.node.name
                        raise ValueError(f"node {node!r} takes a store, but the graph has none: compile(store=...)")
                    found[name] = store
        return found


def callable_name(target: Any) -> str:
    """Return the name a callable goes by: its own, else that of its class."""
    while isinstance(target, functools.partial):
        target = target.func
    return str(getattr(target, "__name__", None) or type(target).__name__)


def _runnable_name(target: Any) -> str:
    get_name = getattr(target, "get_name", None)
    if callable(get_name):
        return str(get_name())
    return str(getattr(target, "name", None) or type(target).__name__)


def _is_async(target: Any) -> bool:
    while isinstance(target, functools.partial):
        target = target.func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(_call_method(target))


def _call_method(target: Any) -> Any:
    """Return the ``__call__`` of a callable object, which tells its colour and its annotations."""
    return target.__call__


def _injected(target: Any, skipped: int) -> tuple[tuple[str, ...], bool]:
    """Return which parameters the runtime supplies, and whether a missing store is an error; the first *skipped* never count."""
    try:
        parameters = list(inspect.signature(target).parameters.values())[skipped:]
    except (ValueError, TypeError):  # builtins without a signature take the state alone
        return (), False
    named = [p for p in parameters if p.name in INJECTABLE and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not named:
        return (), False
    hints = _hints(target)
    found = [p for p in named if _is_wanted(p, hints.get(p.name, p.annotation), target)]
    needs_store = any(
        p.name == "store"
        and p.default is p.empty
        and "None" not in str(hints.get(p.name, p.annotation))
        and "Optional" not in str(p.annotation)
        for p in found
    )
    return tuple(p.name for p in found), needs_store


def _hints(target: Any) -> dict[str, Any]:
    function = target if inspect.isroutine(target) else getattr(target, "func", None) or _call_method(type(target))
    try:
        return typing.get_type_hints(function)
    except Exception:  # a forward reference to a name that is gone: the text of the annotation decides
        return {}


def _is_wanted(parameter: inspect.Parameter, annotation: Any, target: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "") or str(annotation)
    bare = annotation is parameter.empty
    match parameter.name:
        case "config":
            if bare or any(text.endswith(name) for name in _CONFIG_ANNOTATIONS) or "RunnableConfig" in str(annotation):
                return True
            warnings.warn(
                f"parameter 'config' of {callable_name(target)!r} is annotated {annotation!r}, so it is not supplied; "
                "annotate it RunnableConfig, or leave the annotation out",
                UserWarning,
                stacklevel=2,
            )
            return False
        case "writer":
            return (
                bare
                or annotation is Any
                or "StreamWriter" in str(annotation)
                or "Callable[[typing.Any], None]" in str(annotation)
                or "Callable" in str(annotation)
            )
        case "store":
            return bare or "Store" in str(annotation)
        case "error":
            return annotation is NodeError or "NodeError" in str(annotation)
        case _:
            return True
