"""Watch a run in the terminal: what the models say on the left, how far the run is on the right.

One run, read through several projections at once: the answers of each graph for the left side, the main log, which has
the events of all graphs in order, for the right one. Where the output is no terminal, the same is printed line by line::

    python examples/terminal_reader.py README.md
    python examples/terminal_reader.py README.md | grep done

The first line names the trace, which ``tracegraph trace ID`` shows afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

from briefing import Text, graph
from opentelemetry import trace
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text as Line

from tracegraph.stream import AsyncChatModelStream, AsyncGraphRunStream, DebugTransformer, ProtocolEvent
from tracegraph.telemetry import setup


class Screen:
    """What there is to see by now; printed at once if nobody can be shown a screen."""

    def __init__(self, *, is_live: bool) -> None:
        self._is_live = is_live
        self._answers: dict[str | None, tuple[str, str]] = {}
        """Node and text, by the id of the message: a node may be at work several times at once."""
        self._progress: dict[str, str] = {}
        """Lines, by the id of what they are about."""

    def take_event(self, event: ProtocolEvent) -> None:
        """Show that a task or a graph inside began or ended."""
        namespace, data = event["params"]["namespace"], event["params"]["data"]
        indent = "    " * len(namespace)
        match event["method"], data:
            case "debug", {"type": "task", "step": step, "payload": {"id": task_id, "name": name}}:
                self._note(task_id, f"{indent}step {step}: {name}", "...")
            case "debug", {"type": "task_result", "step": step, "payload": {"id": task_id, "name": name, **ended}}:
                status = "failed" if ended["error"] is not None else "asks" if ended["interrupts"] else "done"
                self._note(task_id, f"{indent}step {step}: {name}", status)
            case "lifecycle", {"namespace": [*_, name] as inside, "event": status}:
                self._note(name, f"{'    ' * len(inside)}graph {name.partition(':')[0]}", status)
            case _:
                pass  # states and tokens, which the projections have as well

    def take_token(self, answer: AsyncChatModelStream, token: str) -> None:
        """Show a piece of an answer."""
        node, text = self._answers.get(answer.message_id, (answer.node or "", ""))
        self._answers[answer.message_id] = node, text + token

    def end_answer(self, answer: AsyncChatModelStream) -> None:
        """Show that it is whole."""
        if not self._is_live and answer.message_id in self._answers:
            print("{}: {}".format(*self._answers[answer.message_id]), flush=True)

    def _note(self, about: str, line: str, status: str) -> None:
        self._progress[about] = f"{line} {status}"
        if not self._is_live:
            print(self._progress[about], flush=True)

    def __rich__(self) -> RenderableType:
        answers = Group(*(Panel(Line(text), title=node, title_align="left") for node, text in self._answers.values()))
        sides = Table.grid(expand=True, padding=(0, 1))
        sides.add_column(ratio=3)
        sides.add_column(ratio=2)
        sides.add_row(answers, Line("\n".join(self._progress.values())))
        return sides


async def watch(question: Text, screen: Screen) -> Any:
    """Run the graph, show what happens, and return what it made."""
    run = await graph.astream_events(question, version="v3", transformers=[DebugTransformer])
    async with run, asyncio.TaskGroup() as readers:
        readers.create_task(follow_log(aiter(run), screen))
        follow(run, screen, readers)
    return await run.output()


def follow(run: AsyncGraphRunStream, screen: Screen, readers: asyncio.TaskGroup) -> None:
    """Begin to read the answers of a graph and the graphs inside it; now, for what comes before is not kept."""
    readers.create_task(follow_answers(aiter(run.messages), screen, readers))
    readers.create_task(follow_graphs(aiter(run.subgraphs), screen, readers))


async def follow_log(events: AsyncIterator[ProtocolEvent], screen: Screen) -> None:
    """Show what begins and ends, in all graphs."""
    async for event in events:
        screen.take_event(event)


async def follow_graphs(inside: AsyncIterator[AsyncGraphRunStream], screen: Screen, readers: asyncio.TaskGroup) -> None:
    """Read each graph inside, as it begins."""
    async for run in inside:
        follow(run, screen, readers)


async def follow_answers(answers: AsyncIterator[AsyncChatModelStream], screen: Screen, readers: asyncio.TaskGroup) -> None:
    """Read each answer, as it begins: those of parallel nodes come at the same time."""
    async for answer in answers:
        readers.create_task(follow_tokens(answer, screen))


async def follow_tokens(answer: AsyncChatModelStream, screen: Screen) -> None:
    """Show an answer while it is said."""
    async for token in answer.text:
        screen.take_token(answer, token)
    screen.end_answer(answer)


def main() -> None:
    """Watch one run, below a span of our own whose trace has the run's spans too."""
    question: Text = {"path": sys.argv[1]} if len(sys.argv) > 1 else {}
    console = Console()
    screen = Screen(is_live=console.is_terminal)
    with setup(), trace.get_tracer("terminal_reader").start_as_current_span("watch") as span:
        print(f"trace {trace.format_trace_id(span.get_span_context().trace_id)}", flush=True)
        shown = Live(screen, console=console) if console.is_terminal else contextlib.nullcontext()
        with shown:
            asyncio.run(watch(question, screen))


if __name__ == "__main__":
    try:
        main()
    except* KeyboardInterrupt:
        sys.exit(130)
    except* Exception as failed:  # noqa: BLE001  # whatever failed the run
        error = failed.exceptions[0]  # each reader is given it: one is enough
        sys.exit(f"the run failed: {type(error).__name__}: {error}")
