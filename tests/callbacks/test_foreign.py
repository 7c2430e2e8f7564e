"""Calls through LangChain's managers: events for spans and streams, and handlers are told once."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import UUID

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from recording import recording
from small_graphs import State, chain

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.callbacks.foreign import ForeignCalls
from tracegraph.callbacks.manager import CallbackManager, handlers_of
from tracegraph.callbacks.place import NOWHERE
from tracegraph.config import RunnableConfig, get_config
from tracegraph.events import (
    CALL_KINDS,
    Event,
    ModelEnded,
    ModelStarted,
    ModelToken,
    RetrievalEnded,
    RetrievalStarted,
    ToolEnded,
    ToolStarted,
)


def chat() -> Any:
    return GenericFakeChatModel(messages=iter([AIMessage("hello there")]))


class Shelf(BaseRetriever):
    """Finds one document, or fails."""

    is_broken: bool = False

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if self.is_broken:
            raise LookupError(query)
        return [Document(page_content=query)]


@tool
def look(what: str) -> str:
    """Ask a model."""
    return str(chat().invoke(what).content)


@tool
def fail(what: str) -> str:
    """Fail."""
    raise ValueError(what)


def tried(call: Any) -> None:
    """Call what may fail."""
    with contextlib.suppress(ValueError, LookupError):
        call()


def calls_of(node: Any, **config: Any) -> list[Event]:
    """Run a node and return the events of what it called."""
    with recording() as recorder:
        chain(a=node).invoke({"n": 0}, config)
    return [event for event in recorder.events if event.bit & CALL_KINDS]


def test_models_tools_and_retrievers_of_langchain_s_are_events() -> None:
    """In the node that calls them, and inside each other."""

    def node(state: State) -> None:
        look.invoke({"name": "look", "args": {"what": "x"}, "id": "c1", "type": "tool_call"})
        Shelf().invoke("query")
        FakeListLLM(responses=["text"]).invoke("prompt")

    found = calls_of(node)

    assert [type(event) for event in found] == [
        ToolStarted, ModelStarted, ModelEnded, ToolEnded, RetrievalStarted, RetrievalEnded, ModelStarted, ModelEnded,
    ]  # fmt: skip
    tool_start, model_start = found[0], found[1]
    assert isinstance(tool_start, ToolStarted)
    assert isinstance(model_start, ModelStarted)
    assert (tool_start.name, tool_start.input, tool_start.tool_call_id) == ("look", {"what": "x"}, "c1")
    assert model_start.parent_call_id == tool_start.call_id
    assert model_start.is_chat
    assert model_start.metadata["langgraph_node"] == "a"
    assert not found[-2].is_chat  # type: ignore[union-attr]  # a ModelStarted
    assert {event.is_foreign for event in found} == {True}  # type: ignore[union-attr]  # all are calls


def test_failures_are_told_as_such() -> None:
    """Of each kind."""

    class Broken(FakeListLLM):
        def _call(self, *args: Any, **kwargs: Any) -> str:
            raise ValueError("no")

    def node(state: State) -> None:
        tried(lambda: fail.invoke({"what": "x"}))
        tried(lambda: Shelf(is_broken=True).invoke("q"))
        tried(lambda: Broken(responses=[""]).invoke("p"))

    ends = [event for event in calls_of(node) if isinstance(event, (ToolEnded, RetrievalEnded, ModelEnded))]

    assert [type(event.error) for event in ends] == [ValueError, LookupError, ValueError]


def test_a_streamed_answer_is_told_in_pieces() -> None:
    """Nobody makes it stream who only counts."""
    streamed = calls_of(lambda state: list(chat().stream("x")) and None)
    whole = calls_of(lambda state: chat().invoke("x") and None)

    assert [event.token for event in streamed if isinstance(event, ModelToken)] == ["hello", " ", "there"]
    assert [type(event) for event in whole] == [ModelStarted, ModelEnded]


def test_handlers_are_told_by_langchain_alone() -> None:
    """Also of a call to which the node passes its config; a graph called so has no more handlers than its caller."""
    seen: list[str] = []

    class Handler(BaseCallbackHandler):
        def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
            seen.append("model")

        def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            seen.append("documents")

        def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
            seen.append("tool")

    handler = Handler()

    def node(state: State, config: RunnableConfig) -> None:
        chat().invoke("x", config)
        Shelf().invoke("x")
        look.invoke({"what": "x"})
        assert handlers_of(config["callbacks"]) == [handler]

    calls_of(node, callbacks=[handler])

    assert seen == ["model", "documents", "tool", "model"]


def test_a_call_through_our_manager_is_told_once_as_well() -> None:
    """Even if one of another task's handlers has got among its own."""

    def node(state: State) -> None:
        foreign = CallbackManager(get_config()["callbacks"].handlers)
        (run,) = get_config()["callbacks"].merge(foreign).on_chat_model_start({"name": "ours"}, [[]])
        run.on_llm_end(None)

    assert [event.is_foreign for event in calls_of(node)] == [False, False]  # type: ignore[union-attr]  # both are calls


def test_outside_a_run_it_tells_nobody() -> None:
    """And what LangChain calls whether it is there or not does nothing."""
    foreign, call = ForeignCalls(NOWHERE), UUID(int=1)

    foreign.on_llm_start({}, ["p"], run_id=call)
    foreign.on_llm_new_token("x", run_id=call)
    foreign.on_llm_end(None, run_id=call)
    foreign.on_llm_end(None, run_id=call)
    foreign.on_agent_action(None)
    foreign.on_agent_finish(None)
    foreign.on_stream_event({})

    assert foreign._open == {}
