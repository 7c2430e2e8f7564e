"""Small finished runs as spans, handed to the store one batch each: a graph, a node, and in it a model and a tool call."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import StatusCode


class Story:
    """Makes runs with the maker of the exporters' tests, and writes them."""

    def __init__(self, maker: Any, exporter: Any) -> None:
        self.maker = maker
        self.exporter = exporter

    def run(self, graph: str, **facts: Any) -> None:
        """Write one run; arguments as for :meth:`spans`."""
        self.exporter.export(self.spans(graph, **facts))

    def spans(
        self,
        graph: str,
        *,
        at_ms: int = 0,
        took_ms: int = 100,
        thread: str = "t-1",
        node: str = "work",
        model: str = "gpt-4o",
        provider: str = "openai",
        tool: str = "search",
        tokens: tuple[int, int] = (100, 20),
        error: bool = False,
    ) -> list[Any]:
        """Return the spans of one run; with *error* its node failed, and so it did."""
        end_ms = at_ms + took_ms
        root = self._start(
            "invoke_workflow", graph, None, at_ms, {"gen_ai.workflow.name": graph, "gen_ai.conversation.id": thread}
        )
        root.set_attribute("tracegraph.run.status", "failed" if error else "completed")
        task = self._start("run_step", node, root, at_ms, {"gen_ai.step.name": node, "tracegraph.superstep": 1})
        usage = {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
        asked = {"gen_ai.request.model": model, "gen_ai.provider.name": provider}
        # An attempt lies between, which is no operation itself.
        attempt = self.maker.start("attempt", task, at_ms=at_ms)
        self.maker.end(self._start("chat", model, attempt, at_ms, asked | usage), at_ms=end_ms)
        self.maker.end(self._start("execute_tool", tool, attempt, at_ms, {"gen_ai.tool.name": tool}), at_ms=end_ms)
        self.maker.end(attempt, at_ms=end_ms)
        for span in (task, root):
            self.maker.end(self.failed(span) if error else span, at_ms=end_ms)
        return self.maker.take()

    def path(self, steps: list[tuple[int, str, str | None]], *, at_ms: int = 0) -> None:
        """Write a run of nodes, each with its superstep and its recorded output, if any, in the order of their start."""
        root = self._start("invoke_workflow", "g", None, at_ms, {"tracegraph.run.id": "r"})
        for start_ms, (superstep, node, output) in enumerate(steps, at_ms):
            attributes = {"gen_ai.step.name": node, "tracegraph.superstep": superstep}
            if output is not None:
                attributes["tracegraph.task.output"] = output
            self.maker.end(self._start("run_step", node, root, start_ms, attributes), at_ms=start_ms + 1)
        self.maker.end(root, at_ms=at_ms + len(steps))
        self.exporter.export(self.maker.take())

    def failed(self, span: Any) -> Any:
        """Give a span status ERROR."""
        span.set_status(StatusCode.ERROR, "boom")
        return span

    def _start(self, operation: str, name: str, parent: Any, at_ms: int, attributes: dict[str, Any]) -> Any:
        given = attributes | {"gen_ai.operation.name": operation}
        return self.maker.start(f"{operation} {name}", parent, at_ms=at_ms, attributes=given)
