"""The flat events of ``astream_events(version="v2")`` are those that LangChain makes of LangGraph's runs."""

from __future__ import annotations

import asyncio
import operator
import threading
from importlib import import_module
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.language_models.llms import LLM
from langchain_core.messages import AIMessage
from langchain_core.outputs import GenerationChunk
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from small_graphs import PATIENCE_S, chain, says

LIBRARIES = ("tracegraph", "langgraph")
WITH_THREAD: Any = {"configurable": {"thread_id": "t"}, "tags": ["mine"], "metadata": {"user": "u"}}


class State(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]
    n: int


class Documents(BaseRetriever):
    """Finds the query."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> Any:
        return [query]


class Speller(LLM):
    """Says the prompt, letter by letter."""

    @property
    def _llm_type(self) -> str:
        return "speller"

    def _call(self, prompt: str, *args: Any, **kwargs: Any) -> str:
        return prompt

    async def _astream(self, prompt: str, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        for letter in prompt:
            chunk = GenerationChunk(text=letter)
            await run_manager.on_llm_new_token(letter, chunk=chunk)
            yield chunk


@tool
async def double(x: int) -> int:
    """Return twice as much."""
    return 2 * x


@tool
async def broken(x: int) -> int:
    """Raise."""
    raise LookupError("broken")


class Program:
    """A program written for either library."""

    def __init__(self, library: str) -> None:
        self.graphs = import_module(f"{library}.graph")
        self.types = import_module(f"{library}.types")
        self.saver = import_module(f"{library}.checkpoint.memory").InMemorySaver

    def chain(self, *bodies: Any, **options: Any) -> Any:
        made = self.graphs.StateGraph(State)
        made.add_sequence([(getattr(body, "__name__", "sub"), body) for body in bodies])
        made.add_edge(self.graphs.START, getattr(bodies[0], "__name__", "sub"))
        return made.compile(**options)

    def models(self) -> Any:
        """Return a graph that calls one of everything."""

        async def calls(state: State, config: RunnableConfig) -> State:
            answer = await GenericFakeChatModel(messages=iter([AIMessage("hello you")])).ainvoke("hi", config)
            text = "".join([piece async for piece in Speller().astream("ab", config)])
            doubled = await double.ainvoke({"x": 2}, config)
            found = await Documents().ainvoke("q", config)
            added = await RunnableLambda(lambda n: n + 1).with_config(run_name="add").ainvoke(doubled, config)
            return {"xs": [answer.content, text, *found, added]}

        async def fails(state: State, config: RunnableConfig) -> State:
            try:
                await broken.ainvoke({"x": 1}, config)
            except LookupError:
                return {"n": 0}
            raise AssertionError

        return self.chain(calls, fails)

    def routes(self) -> Any:
        """Return a graph with branches, commands, a graph inside and a question."""
        command, interrupt = self.types.Command, self.types.interrupt

        async def route(state: State) -> str:
            return "sub"

        async def inner(state: State) -> State:
            return {"xs": ["inner"]}

        async def nothing(state: State) -> None:
            return None

        async def jump(state: State) -> Any:
            return command(goto="ask", update={"n": 1})

        async def ask(state: State) -> State:
            return {"xs": [interrupt("who?")]}

        made = self.graphs.StateGraph(State)
        made.add_node("sub", self.chain(inner))
        for node in (nothing, jump, ask):
            made.add_node(node)
        made.add_conditional_edges(self.graphs.START, route)
        made.add_edge("sub", "nothing")
        made.add_edge("nothing", "jump")
        return made.compile(checkpointer=self.saver())


def simple(value: Any, names: dict[str, str]) -> Any:
    """Return data without what differs between libraries and runs."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return {key: simple(item, names) for key, item in value.items() if key not in {"id", "generation_info"}}
    if isinstance(value, (list, tuple)):
        return [simple(item, names) for item in value]
    if kind in {"AIMessage", "AIMessageChunk", "HumanMessage"}:
        return (kind, value.content)
    if kind in {"Interrupt", "Command", "LookupError", "ToolException"}:
        return (kind, str(getattr(value, "value", getattr(value, "update", value))))
    return value


def flat(app: Any, given: Any, **options: Any) -> list[Any]:
    """Return what every event says, with run ids numbered as they come."""
    names: dict[str, str] = {}

    def number(run_id: str) -> str:
        return names.setdefault(run_id, f"#{len(names)}")

    async def read() -> list[Any]:
        return [event async for event in app.astream_events(given, WITH_THREAD, **options)]

    found = []
    for event in asyncio.run(read()):
        assert set(event) == {"event", "name", "run_id", "parent_ids", "tags", "metadata", "data"}
        # Left out: what only one of the two libraries puts into the configs of nodes.
        metadata = {
            key: value
            for key, value in event["metadata"].items()
            if key not in {"ls_integration", "checkpoint_ns", "langgraph_checkpoint_ns", "lc_versions", "thread_id"}
        }
        ids = [number(run_id) for run_id in (*event["parent_ids"], event["run_id"])]
        found.append((event["event"], event["name"], ids, event["tags"], metadata, simple(event["data"], names)))
    return found


@pytest.mark.parametrize("options", [{}, {"stream_mode": ["values", "updates"], "subgraphs": True}, {"stream_mode": "values"}])
def test_calls_in_nodes_are_the_oracle_s_events(options: dict[str, Any]) -> None:
    """Models, tools, retrievers and other runnables: their pieces, results, parents, tags and metadata."""
    ours, theirs = (flat(Program(library).models(), {"xs": []}, version="v2", **options) for library in LIBRARIES)

    assert ours == theirs
    kinds = {event[0] for event in ours}
    assert {"on_chat_model_stream", "on_llm_stream", "on_tool_end", "on_tool_error", "on_retriever_end"} <= kinds


def test_the_path_of_a_run_is_the_oracle_s(subtests: pytest.Subtests) -> None:
    """Over branches, commands, a graph inside, and a question that is answered."""
    apps = [Program(library).routes() for library in LIBRARIES]
    for given in ({"xs": ["x"]}, None):
        with subtests.test(given=given):
            ours, theirs = (
                flat(app, import_module(f"{library}.types").Command(resume="me") if given is None else given)
                for app, library in zip(apps, LIBRARIES, strict=True)
            )
            assert ours == theirs
            assert len(ours) > 5


@pytest.mark.parametrize(
    "choice",
    [
        {"include_types": ["chat_model", "tool"]},
        {"include_names": ["calls", "double"]},
        {"include_tags": ["graph:step:2"]},
        {"exclude_types": ["chain"]},
        {"exclude_names": ["LangGraph", "add"]},
        {"exclude_tags": ["seq:step:1"]},
        {"include_types": ["chain"], "include_names": ["double"], "exclude_names": ["calls"]},
    ],
)
def test_chosen_events_are_the_oracle_s(choice: dict[str, Any]) -> None:
    """Included by name, type or tag, whichever; excluded likewise."""
    ours, theirs = (flat(Program(library).models(), {"xs": []}, version="v2", **choice) for library in LIBRARIES)

    # Of LangChain's, the very first event that is chosen has the input of the graph, whatever it is about.
    inputs = [
        [(*event[:5], {k: v for k, v in event[5].items() if k != "input"}) for event in events] for events in (ours, theirs)
    ]
    assert inputs[0] == inputs[1]
    assert ours


def test_events_of_the_program_s_own_have_the_node_s_id() -> None:
    """Their data is as it was dispatched."""
    from tracegraph.callbacks import adispatch_custom_event

    async def node(state: State) -> State:
        await adispatch_custom_event("mine", {"k": 1})
        return {}

    found = flat(chain(node=node), {"xs": []})
    (mine,) = [event for event in found if event[0] == "on_custom_event"]
    started = next(event for event in found if event[:2] == ("on_chain_start", "node"))

    assert mine[1:3] == ("mine", started[2])
    assert mine[5] == {"k": 1}


def test_an_error_comes_after_the_events_before_it() -> None:
    """What failed has no end of its own."""
    seen: list[Any] = []

    async def fails(state: State) -> State:
        raise LookupError("mine")

    async def read() -> None:
        async for event in chain(a=says("a"), fails=fails).astream_events({"xs": []}):
            seen.append((event["event"], event["name"]))

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(read())

    assert seen == [
        ("on_chain_start", "LangGraph"),
        ("on_chain_start", "a"),
        ("on_chain_stream", "a"),
        ("on_chain_end", "a"),
        ("on_chain_stream", "LangGraph"),
        ("on_chain_start", "fails"),
    ]


async def test_events_come_while_a_node_runs_and_stop_with_their_reader() -> None:
    """The node is cancelled when the reader leaves."""
    from tracegraph.callbacks import adispatch_custom_event

    stopped: list[str] = []

    async def node(state: State) -> State:
        await adispatch_custom_event("now", None)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append("cancelled")
            raise
        return {}

    events = chain(node=node).astream_events({"xs": []})
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            if event["name"] == "now":
                break
        await events.aclose()

    assert stopped == ["cancelled"]


async def test_events_of_sync_nodes_come_from_their_threads() -> None:
    """The reader is woken for each."""
    from tracegraph.callbacks import dispatch_custom_event

    read = threading.Event()
    waited: list[bool] = []

    def node(state: State) -> State:
        dispatch_custom_event("now", None)
        waited.append(read.wait(PATIENCE_S))
        return {}

    async for event in chain(node=node).astream_events({"xs": []}):
        if event["name"] == "now":
            read.set()

    assert waited == [True]


def test_flat_events_have_no_projections() -> None:
    """Nor options that nobody knows."""
    app = chain(a=says("a"))
    with pytest.raises(TypeError, match="version='v3'"):
        app.astream_events({}, transformers=[object])
    with pytest.raises(TypeError, match="colour"):
        app.astream_events({}, colour="red")
