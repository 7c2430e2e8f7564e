"""A callback handler that makes flat events of what it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from typing_extensions import override

from tracegraph.callbacks.base import BaseCallbackHandler
from tracegraph.callbacks.manager import name_of
from tracegraph.stream.flat.choice import EventChoice

__all__ = ["FlatEvents"]

T = TypeVar("T")

_NODE_TAG: Final = "graph:step:"


@dataclass(slots=True)
class _Run:
    """Something that runs, as the events about it show it."""

    kind: str
    name: str
    tags: list[str]
    metadata: dict[str, Any]
    parents: list[str]
    """Ids of the runs around it, from the root inwards."""
    input: Any = None
    is_node: bool = False
    tool_call_id: str | None = None


class FlatEvents(BaseCallbackHandler):
    """Makes the events of one call; ``sink`` gets each, in the thread that publishes it.

    What pauses or fails has a start and no end (a tool's error is an event, though): the question is a piece of the
    graph's own, and the error is raised to the reader.
    """

    run_inline = True

    def __init__(self, choice: EventChoice, sink: Callable[[dict[str, Any]], None]) -> None:
        self._choice = choice
        self._sink = sink
        self._runs: dict[UUID, _Run] = {}
        self._root: UUID | None = None

    # --- graphs, nodes, path functions, and other chains ---------------------------------------------------

    @override
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if self._root is None:
            self._root = run_id
        run = self._open("chain", run_id, serialized, inputs, kwargs)
        run.is_node = any(tag.startswith(_NODE_TAG) for tag in run.tags[:1])
        self._send("on_chain_start", run_id, run, {"input": inputs})

    @override
    def on_chain_end(self, outputs: Any, *, run_id: UUID, is_paused: bool = False, **kwargs: Any) -> None:
        run = self._runs.pop(run_id, None)
        if run is not None and not is_paused:  # the question is a piece of the root's
            if run.is_node:
                self._send("on_chain_stream", run_id, run, {"chunk": outputs})
            # The root's input is in the very first event, and may be large.
            data = {"output": outputs} if run_id == self._root else {"output": outputs, "input": run.input}
            self._send("on_chain_end", run_id, run, data)

    @override
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._runs.pop(run_id, None)

    def root_chunk(self, chunk: Any) -> None:
        """Make the event of a part of the root's own stream."""
        if self._root is not None and (run := self._runs.get(self._root)) is not None:
            self._send("on_chain_stream", self._root, run, {"chunk": chunk})

    # --- models --------------------------------------------------------------------------------------------

    @override
    def on_chat_model_start(self, serialized: Any, messages: list[list[Any]], *, run_id: UUID, **kwargs: Any) -> None:
        given = {"messages": messages}
        run = self._open("chat_model", run_id, serialized, given, kwargs)
        self._send("on_chat_model_start", run_id, run, {"input": given})

    @override
    def on_llm_start(self, serialized: Any, prompts: list[str], *, run_id: UUID, **kwargs: Any) -> None:
        given = {"prompts": prompts}
        run = self._open("llm", run_id, serialized, given, kwargs)
        self._send("on_llm_start", run_id, run, {"input": given})

    @override
    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        if (run := self._runs.get(run_id)) is not None:
            piece = getattr(chunk, "message", chunk) if run.kind == "chat_model" else chunk
            self._send(f"on_{run.kind}_stream", run_id, run, {"chunk": token if piece is None else piece})

    @override
    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if (run := self._runs.pop(run_id, None)) is not None:
            shown = _answer(response) if run.kind == "chat_model" else _generations(response)
            self._send(f"on_{run.kind}_end", run_id, run, {"output": shown, "input": run.input})

    @override
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._runs.pop(run_id, None)

    # --- tools, retrievers, events of the program's own ----------------------------------------------------

    @override
    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, inputs: Any = None, **kwargs: Any) -> None:
        given = input_str if inputs is None else inputs
        run = self._open("tool", run_id, serialized, given, kwargs)
        run.tool_call_id = kwargs.get("tool_call_id")
        self._send("on_tool_start", run_id, run, {"input": given})

    @override
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if (run := self._runs.pop(run_id, None)) is not None:
            self._send("on_tool_end", run_id, run, {"output": output, "input": run.input})

    @override
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        if (run := self._runs.pop(run_id, None)) is not None:
            self._send("on_tool_error", run_id, run, {"error": error, "input": run.input, "tool_call_id": run.tool_call_id})

    @override
    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **kwargs: Any) -> None:
        given = {"query": query}
        self._send("on_retriever_start", run_id, self._open("retriever", run_id, serialized, given, kwargs), {"input": given})

    @override
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: Any) -> None:
        if (run := self._runs.pop(run_id, None)) is not None:
            self._send("on_retriever_end", run_id, run, {"output": documents, "input": run.input})

    @override
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._runs.pop(run_id, None)

    @override
    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        around = self._runs.get(run_id)
        parents = [] if around is None else around.parents
        run = _Run("custom", name, list(kwargs.get("tags") or ()), dict(kwargs.get("metadata") or {}), parents)
        self._send("on_custom_event", run_id, run, data)

    # LangChain knows by these that somebody reads tokens: its models stream even when their whole answer is asked for.

    def tap_output_iter(self, run_id: UUID, output: T) -> T:  # noqa: ARG002  # LangChain's signature
        """Return the output as it is."""
        return output

    def tap_output_aiter(self, run_id: UUID, output: T) -> T:  # noqa: ARG002  # LangChain's signature
        """Return the output as it is."""
        return output

    # --- what they have in common --------------------------------------------------------------------------

    def _open(self, kind: str, run_id: UUID, serialized: Any, given: Any, kwargs: dict[str, Any]) -> _Run:
        parent_id = kwargs.get("parent_run_id")
        around = self._runs.get(parent_id) if parent_id is not None else None
        parents = [] if around is None else [*around.parents, str(parent_id)]
        tags, metadata = list(kwargs.get("tags") or ()), dict(kwargs.get("metadata") or {})
        run = self._runs[run_id] = _Run(kind, name_of(serialized, kwargs.get("name")), tags, metadata, parents, given)
        return run

    def _send(self, event: str, run_id: UUID, run: _Run, data: Any) -> None:
        made = {
            "event": event,
            "name": run.name,
            "run_id": str(run_id),
            "parent_ids": list(run.parents),
            "tags": list(run.tags),
            "metadata": dict(run.metadata),
            "data": data,
        }
        if self._choice.takes(made, run.kind):
            self._sink(made)


def _first(response: Any) -> Any:
    generations = getattr(response, "generations", None)
    return generations[0][0] if generations and generations[0] else None


def _answer(response: Any) -> Any:
    """Return the message of a chat model's response: LangChain's result objects wrap it."""
    found = _first(response)
    return response if found is None else getattr(found, "message", found)


def _generations(response: Any) -> Any:
    if (batches := getattr(response, "generations", None)) is None:
        return response
    shown = [[{"text": g.text, "generation_info": g.generation_info, "type": g.type} for g in batch] for batch in batches]
    return cast("dict[str, Any]", {"generations": shown, "llm_output": getattr(response, "llm_output", None)})
