"""The long-lived objects of a service: a tracer provider, handlers, savers, compiled graphs, a thread pool, a loop."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from benchmarks.soak.scenarios import SCENARIOS, Scenario
from benchmarks.soak.settings import Settings
from benchmarks.soak.shapes import build
from tracegraph.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.telemetry import use_provider
from tracegraph_exporters.sqlite import SQLiteSpanExporter

__all__ = ["Service"]

SAVERS: Final = ("none", "memory", "sqlite")
POOL_THREADS: Final = 4
QUEUE_SIZE: Final = 1 << 16
STORE_BYTES: Final = 2_000_000
STORED_SHARE: Final = 8
"""One in so many traces goes to the trace store."""


class OpenSpans(SpanProcessor):
    """Which spans have started and not ended; and how many have."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.ended_twice: list[str] = []
        self._lock = threading.Lock()
        self.ended = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note a span."""
        self.names[span.get_span_context().span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        """Cross it off."""
        context = span.get_span_context()
        if context is None or self.names.pop(context.span_id, None) is None:
            self.ended_twice.append(span.name)
        with self._lock:
            self.ended += 1


class Counting(SpanExporter):
    """Counts spans and drops them."""

    def __init__(self) -> None:
        self.count = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Count."""
        self.count += len(spans)
        return SpanExportResult.SUCCESS


class SomeTraces(BatchSpanProcessor):
    """Passes on the spans of one in so many traces."""

    def on_end(self, span: ReadableSpan) -> None:
        """Pass on, or drop."""
        context = span.get_span_context()
        if context is not None and context.trace_id % STORED_SHARE == 0:
            super().on_end(span)


class OpenRuns(BaseCallbackHandler):
    """Keeps each run from its start to its end, as most handlers do; if an end is missing, its table grows."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note a run."""
        self.names[kwargs["run_id"]] = kwargs["name"]

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """Cross it off."""
        del self.names[kwargs["run_id"]]

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Cross it off."""
        del self.names[kwargs["run_id"]]


class AsyncOpenRuns(AsyncCallbackHandler):
    """The same with methods that are awaited."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}

    async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note a run."""
        self.names[kwargs["run_id"]] = kwargs["name"]

    async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """Cross it off."""
        self.names.pop(kwargs["run_id"], None)

    async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Cross it off."""
        self.names.pop(kwargs["run_id"], None)


class Service:
    """Runs rounds of all scenarios, in both colours; ``open`` makes one for the length of a block.

    Args:
        handlers: callback handlers that every run gets beside the service's own.
    """

    def __init__(self, folder: Path, handlers: Iterable[Any], settings: Settings) -> None:
        self.runs = 0
        self.patience_s = settings.patience_s
        self._calls = settings.calls
        self.spans, self.exporter = OpenSpans(), Counting()
        self.store = SQLiteSpanExporter(folder / "traces.db", max_bytes=STORE_BYTES)
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.spans)
        self.provider.add_span_processor(BatchSpanProcessor(self.exporter, max_queue_size=QUEUE_SIZE))
        self.provider.add_span_processor(SomeTraces(self.store, max_queue_size=QUEUE_SIZE))
        self.open_runs, self.async_open_runs = OpenRuns(), AsyncOpenRuns()
        self.handlers: tuple[Any, ...] = (self.open_runs, *handlers)
        self.loop = asyncio.new_event_loop()
        self.pool = ThreadPoolExecutor(POOL_THREADS, thread_name_prefix="soak")
        self.database_path = folder / "checkpoints.db"
        self.savers = {"none": None, "memory": InMemorySaver(), "sqlite": AsyncSqliteSaver(connect(self.database_path))}
        self._apps: dict[tuple[str, bool, bool, str], Any] = {}
        self._numbers = itertools.count()
        self._used: list[tuple[str, str]] = []

    @classmethod
    @contextmanager
    def open(cls, folder: Path, handlers: Iterable[Any], settings: Settings) -> Iterator[Service]:
        """Start a service whose files are in *folder*; close all it has at the end of the block."""
        service = cls(folder, handlers, settings)
        use_provider(service.provider)
        try:
            yield service
        finally:
            use_provider(None)
            service._close()

    def _close(self) -> None:
        self.pool.shutdown()
        saver = self.savers["sqlite"]
        assert isinstance(saver, AsyncSqliteSaver)
        saver._worker.shutdown()  # noqa: SLF001  # from_conn_string would do it, and needs a loop that runs all along
        saver.conn.close()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.provider.shutdown()

    def round(self) -> None:
        """Call each scenario on this thread, in the pool, and on the loop; then let all come to rest and forget the threads."""
        sync = [scenario for scenario in SCENARIOS if scenario.sync is not None]
        for scenario in sync:
            self._call(scenario)
        for called in [self.pool.submit(self._call, scenario) for _ in range(self._calls) for scenario in sync]:
            called.result()
        self.loop.run_until_complete(self._on_loop())
        self.loop.run_until_complete(self._rest())
        self.runs += (1 + self._calls) * sum(scenario.runs for scenario in sync)
        self.runs += self._calls * sum(scenario.runs for scenario in SCENARIOS if scenario.asynchronous is not None)

    def is_open(self) -> bool:
        """Say whether a span or, as handlers see it, a run has started that has not ended."""
        return bool(self.spans.names or self.open_runs.names or self.async_open_runs.names)

    def flush(self) -> None:
        """Let all spans that have ended be exported."""
        self.provider.force_flush()

    def rows(self) -> dict[str, int]:
        """Return how many rows each table of the checkpoint database has."""
        connection = sqlite3.connect(self.database_path)
        try:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}  # noqa: S608
        finally:
            connection.close()

    def _call(self, scenario: Scenario) -> None:
        assert scenario.sync is not None
        app, config = self._app(scenario, is_async=False)
        scenario.sync(app, config)

    async def _on_loop(self) -> None:
        calls = [s.asynchronous for s in SCENARIOS for _ in range(self._calls) if s.asynchronous is not None]
        apps = [self._app(s, is_async=True) for s in SCENARIOS for _ in range(self._calls) if s.asynchronous is not None]
        await asyncio.gather(*(call(app, config) for call, (app, config) in zip(calls, apps, strict=True)))

    def _app(self, scenario: Scenario, *, is_async: bool) -> tuple[Any, dict[str, Any]]:
        """Return a graph with one of the savers, in turn, and the config of a thread of its own."""
        number = next(self._numbers)
        saver = SAVERS[1 + number % 2] if scenario.needs_saver else SAVERS[number % 3]
        key = (scenario.shape, is_async, scenario.takes_turns, saver)
        app = self._apps.get(key)
        if app is None:
            options = {"concurrent_runs": "queue"} if scenario.takes_turns else {}
            app = self._apps[key] = build(scenario.shape, is_async=is_async, saver=self.savers[saver], **options)
        thread_id = f"soak-{number}"
        self._used.append((saver, thread_id))
        # In a sync run what async handlers do runs on a loop made for it, so only some runs have one.
        handlers = [*self.handlers, self.async_open_runs] if is_async or number % 4 == 0 else list(self.handlers)
        return app, {"configurable": {"thread_id": thread_id}, "callbacks": handlers}

    async def _rest(self) -> None:
        """Wait until runs whose readers were dropped have ended; delete the threads, as a service prunes old ones."""
        deadline = time.monotonic() + self.patience_s
        # The ends come from other threads too, so there is no asyncio.Event to wait for.
        while (is_open := self.is_open()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        if is_open:
            self.patience_s = 0.0  # what leaks in one round leaks in the next, and the soak need not wait each time
        for at, (name, thread_id) in enumerate(self._used):
            saver = self.savers[name]
            if saver is not None and at % 2:
                await saver.adelete_thread(thread_id)
            elif saver is not None:
                saver.delete_thread(thread_id)
        self._used.clear()
