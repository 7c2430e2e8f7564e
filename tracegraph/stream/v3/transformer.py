"""The base of what turns a run's events into projections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tracegraph.stream.v3.protocol import ProtocolEvent

if TYPE_CHECKING:
    from tracegraph.stream.v3.mux import StreamMux

__all__ = ["StreamTransformer"]

logger = logging.getLogger("tracegraph.stream")


class StreamTransformer:
    """Reads every event of a run and fills projections of its own.

    Subclasses override ``init()`` and ``process()``, or ``aprocess()`` in async runs; the other hooks are optional.
    ``required_stream_modes`` are switched on for the run; with ``before_builtins`` it sees events before the built-in
    transformers do; ``_native`` makes its projections attributes of the run. A transformer with async hooks (or
    ``requires_async``) is refused by a sync run, unless ``supports_sync`` says that its sync hooks do as well.

    >>> from tracegraph.stream import StreamChannel
    >>> class Names(StreamTransformer):
    ...     required_stream_modes = ("updates",)
    ...
    ...     def __init__(self, scope=()):
    ...         super().__init__(scope)
    ...         self.names = StreamChannel("names")
    ...
    ...     def init(self):
    ...         return {"names": self.names}
    ...
    ...     def process(self, event):
    ...         if event["method"] == "updates":
    ...             self.names.push(next(iter(event["params"]["data"])))
    ...         return True

    Args:
        scope: namespace of the graph whose events it is for.
    """

    required_stream_modes: ClassVar[tuple[str, ...]] = ()
    before_builtins: ClassVar[bool] = False
    requires_async: ClassVar[bool] = False
    supports_sync: ClassVar[bool] = False
    _native: ClassVar[bool] = False
    _methods: ClassVar[frozenset[str] | None] = None
    """Methods of the events that process() makes anything of; None: it must see all of them."""
    _takes_inside: ClassVar[bool] = False
    """It makes something of all events of graphs inside, whatever _methods says."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_methods" not in cls.__dict__ and not cls.__dict__.keys().isdisjoint(("process", "aprocess")):
            cls._methods = None  # those of the base are what another process() reads

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self.scope = tuple(scope)

    def init(self) -> dict[str, Any]:
        """Return the projections by name; any object will do, and StreamChannels are bound to the run."""
        return {}

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event, which may be changed in place; False keeps it out of the main log."""
        raise NotImplementedError(f"{type(self).__name__} must override process(), or aprocess() for async runs")

    async def aprocess(self, event: ProtocolEvent) -> bool:
        """Do what :meth:`process` does, in an async run."""
        return self.process(event)

    def finalize(self) -> None:
        """The run has ended: push what is left. Channels are closed afterwards."""

    async def afinalize(self) -> None:
        """Do what :meth:`finalize` does, in an async run."""
        self.finalize()

    def fail(self, err: BaseException) -> None:
        """The run has failed. Channels are failed afterwards."""

    async def afail(self, err: BaseException) -> None:
        """Do what :meth:`fail` does, in an async run."""
        self.fail(err)

    def schedule(self, coro: Coroutine[Any, Any, Any], *, on_error: Literal["log", "raise"] = "log") -> asyncio.Task[Any]:
        """Run a coroutine beside the stream: it is awaited before the end is announced, and cancelled if the run fails.

        With ``on_error="raise"`` an error of it fails the run at its end; else it is logged.

        Raises:
            RuntimeError: no event loop is running.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            coro.close()
            raise RuntimeError(f"{type(self).__name__}.schedule() needs an async run: astream_events()") from None
        task = loop.create_task(coro)
        self.scheduled[task] = on_error
        if on_error == "log":
            task.add_done_callback(self._log_failure)
        return task

    @property
    def scheduled(self) -> dict[asyncio.Task[Any], str]:
        """What :meth:`schedule` has begun, and what becomes of its errors."""
        # Made on demand: subclasses may well forget super().__init__().
        found: dict[asyncio.Task[Any], str] = self.__dict__.setdefault("_scheduled", {})
        return found

    def _log_failure(self, task: asyncio.Task[Any]) -> None:
        self.scheduled.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a coroutine scheduled by %s failed; the run goes on", type(self).__name__, exc_info=error)

    def _on_register(self, mux: StreamMux) -> None:
        """Get to know the mux this transformer belongs to."""

    @classmethod
    def has_async_hooks(cls) -> bool:
        """Say whether it does something else in async runs."""
        base = StreamTransformer
        return (
            cls.requires_async
            or cls.aprocess is not base.aprocess
            or cls.afinalize is not base.afinalize
            or cls.afail is not base.afail
        )
