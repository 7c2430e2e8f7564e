"""What runs notice of a collector that is down: nothing, but for making their spans.

Run it with ``python -m benchmarks.outage``. One process runs the same graph, 20 steps of 1 ms each, in turns: without
telemetry, with spans that a receiver takes, and with spans whose receiver is not there. Printed are medians and ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from benchmarks.case import load
from benchmarks.clocks import Clocks
from tracegraph.telemetry import use_provider
from tracegraph_exporters.spool import SpoolSpanExporter

STEPS = 20
STEP_S = 0.001
DEAD = "http://127.0.0.1:9/v1/traces"


def build() -> Any:
    """Return a chain of steps that take a millisecond each."""
    library = load("tracegraph")

    def step(state: dict[str, Any]) -> dict[str, Any]:
        time.sleep(STEP_S)
        return {"n": state["n"] + 1}

    graph = library.StateGraph(dict)
    names = [f"step{number}" for number in range(STEPS)]
    for name in names:
        graph.add_node(name, step)
    for before, after in zip([library.START, *names], [*names, library.END], strict=True):
        graph.add_edge(before, after)
    return graph.compile()


@contextmanager
def receiver() -> Iterator[str]:
    """Serve an address that takes whatever is sent there."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    server.shutdown()
    server.server_close()


def spooled(endpoint: str, folder: Path, name: str) -> TracerProvider:
    """Return a provider whose spans go through a spool of its own."""
    exporter = SpoolSpanExporter(endpoint=endpoint, protocol="http/protobuf", path=folder / f"{name}.db")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=16_384, schedule_delay_millis=200))
    return provider


def measure(rounds: int) -> dict[str, list[Clocks]]:
    """Return what each round of each way took."""
    app = build()
    taken: dict[str, list[Clocks]] = {"untraced": [], "collector takes spans": [], "collector is down": []}
    with tempfile.TemporaryDirectory() as folder, receiver() as live:
        providers: dict[str, TracerProvider | None] = {
            "untraced": None,
            "collector takes spans": spooled(live, Path(folder), "live"),
            "collector is down": spooled(DEAD, Path(folder), "dead"),
        }
        run: Callable[[], Any] = lambda: app.invoke({"n": 0})  # noqa: E731
        for number in range(rounds + 3):
            for name, provider in providers.items():
                use_provider(provider)
                started = Clocks.now()
                run()
                if number >= 3:  # the first ones warm up
                    taken[name].append(started.passed())
        use_provider(None)
        for provider in providers.values():
            if provider is not None:
                provider.shutdown()
    return taken


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    taken = measure(parser.parse_args().rounds)
    walls = {name: statistics.median(clocks.wall for clocks in found) for name, found in taken.items()}
    for name, wall in walls.items():
        print(f"{name:24}{wall * 1e3:8.2f} ms a run  {wall / walls['untraced']:6.3f} of untraced")
    print(f"down over taken: {walls['collector is down'] / walls['collector takes spans']:.3f}")


if __name__ == "__main__":
    main()
