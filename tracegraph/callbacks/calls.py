"""Calling the methods of user handlers: looked up once, isolated from the run and from each other."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, cast

from tracegraph.callbacks.base import FatalObserverError
from tracegraph.current import CURRENT

__all__ = ["HandlerCalls", "both"]

logger = logging.getLogger("tracegraph.callbacks")

_IGNORED_BY: Final = {
    "on_chain_start": "ignore_chain",
    "on_chain_end": "ignore_chain",
    "on_chain_error": "ignore_chain",
    "on_chat_model_start": "ignore_chat_model",
    "on_llm_start": "ignore_llm",
    "on_llm_new_token": "ignore_llm",
    "on_llm_end": "ignore_llm",
    "on_llm_error": "ignore_llm",
    "on_tool_start": "ignore_tool",
    "on_tool_end": "ignore_tool",
    "on_tool_error": "ignore_tool",
    "on_retriever_start": "ignore_retriever",
    "on_retriever_end": "ignore_retriever",
    "on_retriever_error": "ignore_retriever",
    "on_memory_start": "ignore_memory",
    "on_memory_end": "ignore_memory",
    "on_memory_error": "ignore_memory",
    "on_retry": "ignore_retry",
    "on_custom_event": "ignore_custom_event",
    "on_text": None,
    "on_superstep_start": None,
    "on_superstep_end": None,
    "on_checkpoint": None,
    "on_interrupt": None,
    "on_resume": None,
}
"""Handler method -> the flag that switches it off."""

# Methods found here do nothing: nobody overrode them.
_BASES: Final = frozenset({"tracegraph.callbacks.base", "langchain_core.callbacks.base"})

_ROLES: Final = {"human": "Human", "ai": "AI", "system": "System", "tool": "Tool", "function": "Function"}


class _Method:
    """One method of one handler."""

    __slots__ = ("accepted", "function", "handler", "name", "takes_prompts")

    def __init__(self, handler: Any, name: str, function: Callable[..., Any], *, takes_prompts: bool = False) -> None:
        self.handler = handler
        self.name = name
        self.function = function
        self.takes_prompts = takes_prompts
        self.accepted = _accepted(function)
        """Keywords it takes, None for any."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.takes_prompts:
            args = (args[0], [as_prompt(messages) for messages in args[1]])
        if self.accepted is not None:
            kwargs = {key: value for key, value in kwargs.items() if key in self.accepted}
        return self.function(*args, **kwargs)

    def instead(self) -> _Method | None:
        """Return what to call when this one says it is not implemented."""
        if self.name != "on_chat_model_start" or self.takes_prompts:
            return None
        return _as_llm_start(self.handler)


def _accepted(function: Callable[..., Any]) -> frozenset[str] | None:
    code = getattr(function, "__code__", None)
    # Most handlers end in **kwargs, and reading the flag is 30 times faster than inspecting the signature.
    if code is not None and code.co_flags & inspect.CO_VARKEYWORDS and not hasattr(function, "__wrapped__"):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.kind in {p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD})


def _find(handler: Any, name: str) -> Callable[..., Any] | None:
    function = getattr(handler, name, None)
    if not callable(function) or getattr(function, "__module__", None) in _BASES:
        return None
    flag = _IGNORED_BY[name]
    if flag is not None and getattr(handler, flag, False):
        return None
    # LangChain counts tools as "agent" things: its handlers have no ignore_tool.
    if flag == "ignore_tool" and getattr(handler, "ignore_agent", False):
        return None
    return cast("Callable[..., Any]", function)


def _as_llm_start(handler: Any) -> _Method | None:
    function = _find(handler, "on_llm_start")
    return None if function is None else _Method(handler, "on_llm_start", function, takes_prompts=True)


def as_prompt(messages: Sequence[Any]) -> str:
    r"""Return chat messages as one text, for handlers that know prompts only.

    >>> from types import SimpleNamespace as Message
    >>> as_prompt([Message(type="human", content="Hi"), Message(type="ai", content="Hello")])
    'Human: Hi\nAI: Hello'
    """
    return "\n".join(_as_line(message) for message in messages)


def _as_line(message: Any) -> str:
    if isinstance(message, dict):
        role, content = message.get("role") or message.get("type"), message.get("content")
    elif hasattr(message, "content"):
        role, content = getattr(message, "role", None) or getattr(message, "type", None), message.content
    else:
        return str(message)
    return f"{_ROLES.get(str(role), role)}: {content}"


class HandlerCalls:
    """The handlers of a run (or of one call), ready to be called.

    What a handler raises is logged once per handler and method and counted in ``failure_count``, and the handler
    stays; ``raise_error`` turns it into a :class:`FatalObserverError`, after the other handlers have been called.
    """

    def __init__(self, handlers: Iterable[Any], *, on_failure: Callable[[str, BaseException], None] | None = None) -> None:
        self.handlers: tuple[Any, ...] = tuple(handlers)
        self.failure_count = 0
        self._on_failure = on_failure
        self._reported: set[tuple[int, str]] = set()
        self._methods: dict[str, tuple[_Method, ...]] = {}
        for name in _IGNORED_BY:
            found = [method for handler in self.handlers if (method := self._method(handler, name)) is not None]
            if found:
                self._methods[name] = tuple(found)

    @staticmethod
    def _method(handler: Any, name: str) -> _Method | None:
        function = _find(handler, name)
        if function is not None:
            return _Method(handler, name, function)
        if name == "on_chat_model_start" and not getattr(handler, "ignore_chat_model", False):
            return _as_llm_start(handler)
        return None

    def has_any(self, *names: str) -> bool:
        """Say whether some handler has one of these methods."""
        return any(name in self._methods for name in names)

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Awaitable[None] | None:
        """Call method *name* of every handler that has it; what is returned must be awaited.

        Handlers run with ``current`` unset, so that a graph called in a handler is a run of its own.

        Raises:
            FatalObserverError: a handler with ``raise_error`` raised.
        """
        methods = self._methods.get(name)
        if methods is None:
            return None
        pending: list[tuple[_Method, Awaitable[Any]]] = []
        fatal: BaseException | None = None
        token = CURRENT.set(None)
        try:
            for method in methods:
                try:
                    result = self._start(method, args, kwargs)
                except Exception as error:  # noqa: BLE001  user code: it must not break the run
                    fatal = self._note(method, error) or fatal
                else:
                    if inspect.isawaitable(result):
                        pending.append((method, result))
        finally:
            CURRENT.reset(token)
        if pending:
            return self._finish(pending, args, kwargs, fatal)
        if fatal is not None:
            raise FatalObserverError(fatal) from fatal
        return None

    def _start(self, method: _Method, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return method(args, kwargs)
        except NotImplementedError:
            if (other := method.instead()) is None:
                raise
            return other(args, kwargs)

    async def _finish(
        self,
        pending: list[tuple[_Method, Awaitable[Any]]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        fatal: BaseException | None,
    ) -> None:
        token = CURRENT.set(None)
        try:
            for method, awaitable in pending:
                try:
                    await self._wait(method, awaitable, args, kwargs)
                except Exception as error:  # noqa: BLE001  user code: it must not break the run
                    fatal = self._note(method, error) or fatal
        finally:
            CURRENT.reset(token)
        if fatal is not None:
            raise FatalObserverError(fatal) from fatal

    async def _wait(self, method: _Method, awaitable: Awaitable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            await awaitable
        except NotImplementedError:
            if (other := method.instead()) is None:
                raise
            result = other(args, kwargs)
            if inspect.isawaitable(result):
                await result

    def _note(self, method: _Method, error: Exception) -> Exception | None:
        """Count and log a failure; return it if it must fail the run."""
        self.failure_count += 1
        if getattr(method.handler, "raise_error", False):
            return error
        who = f"{type(method.handler).__qualname__}.{method.name}"
        key = (id(method.handler), method.name)
        if key not in self._reported:
            self._reported.add(key)
            logger.warning("%s raised %r; the run goes on, and more failures of it are only counted", who, error, exc_info=error)
            if self._on_failure is not None:
                self._on_failure(who, error)
        return None


def both(first: Awaitable[None] | None, then: Callable[[], Awaitable[None] | None]) -> Awaitable[None] | None:
    """Make the second of two calls; return one awaitable for what is left to await of both, in this order."""
    if first is None:
        return then()
    try:
        second = then()
    except FatalObserverError as error:
        return _one_after_the_other(first, None, error)
    return first if second is None else _one_after_the_other(first, second, None)


async def _one_after_the_other(first: Awaitable[None], second: Awaitable[None] | None, fatal: FatalObserverError | None) -> None:
    try:
        await first
    finally:
        if second is not None:
            await second
    if fatal is not None:
        raise fatal
