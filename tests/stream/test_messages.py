"""Mode ``messages``: tokens as they come, whole messages once, ids that the state shares (spec 8.9)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from langchain_core import messages as theirs
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.tools import tool
from pydantic import BaseModel
from scripted_models import ScriptedModel

from tracegraph import messages as ours
from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.config import RunnableConfig
from tracegraph.errors import InvalidUpdateError
from tracegraph.func import entrypoint, task
from tracegraph.graph import START, MessagesState, StateGraph
from tracegraph.graph.message import push_message
from tracegraph.types import Command, RetryPolicy

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}, "metadata": {"team": "blue"}, "tags": ["mine"]}


def graph_of(schema: Any = MessagesState, **nodes: Any) -> Any:
    """Return a graph that runs *nodes* in a row."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    graph.add_sequence(list(nodes.items()))
    graph.add_edge(START, next(iter(nodes)))
    return graph.compile()


def messages(colour: Colour, app: Any, given: Any = None, **options: Any) -> list[Any]:
    given = {"messages": [ours.HumanMessage("hi", id="in")]} if given is None else given
    return colour.stream(app, given, CONFIG, stream_mode="messages", **options)


def contents(parts: list[Any]) -> list[Any]:
    return [message.content for message, _ in parts]


# --- models that go through our managers ------------------------------------------------------------------------


@pytest.mark.parametrize("reports", ["chunk", "text"])
@pytest.mark.parametrize("given", ["config", "ambient"])
def test_tokens_come_one_by_one_and_the_answer_not_again(colour: Colour, reports: str, given: str) -> None:
    """Neither when the model ends nor when the node returns it; all share one id, which the state has, too."""
    model = ScriptedModel("Hel", "lo", reports=reports)

    def node(state: Any, config: RunnableConfig) -> Any:
        return {"messages": [model.invoke(state["messages"], config if given == "config" else None)]}

    found = colour.stream(graph_of(a=node), {"messages": [ours.HumanMessage("hi")]}, CONFIG, stream_mode=["messages", "values"])

    tokens = [part for mode, part in found if mode == "messages"]
    answer = found[-1][1]["messages"][-1]
    assert contents(tokens) == ["Hel", "lo"]
    assert all(isinstance(message, ours.AIMessageChunk) for message, _ in tokens)
    assert {message.id for message, _ in tokens} == {answer.id}
    assert answer.content == "Hello"


def test_a_reader_has_a_token_before_the_next_one_is_made(colour: Colour) -> None:
    """While the node runs."""
    went_on = threading.Event()

    def node(state: Any, config: RunnableConfig) -> Any:
        pieces = ScriptedModel("one", "two").stream(state["messages"], config)
        next(pieces)
        assert went_on.wait(10.0), "the reader did not get the first token"
        return {"messages": [list(pieces)[-1]]}

    found: list[Any] = []

    def consume(part: Any) -> None:
        found.append(part)
        went_on.set()

    colour.each(graph_of(a=node), {"messages": []}, consume, stream_mode="messages")

    assert contents(found) == ["one", "two"]


def test_a_model_that_does_not_stream_shows_its_answer_once(colour: Colour) -> None:
    """When it has it, with the call's metadata."""
    model = ScriptedModel("Hel", "lo", streams=False)

    ((message, about),) = messages(colour, graph_of(a=lambda state: {"messages": [model.invoke(state["messages"])]}))

    assert (message.content, type(message)) == ("Hello", ours.AIMessage)
    assert about["tags"] == ["mine"]


def test_a_model_that_gives_ids_keeps_them(colour: Colour) -> None:
    """Two calls are two messages."""
    first, second = ScriptedModel("a", answer_id="m1"), ScriptedModel("b", answer_id="m2")

    found = messages(colour, graph_of(a=lambda state: {"messages": [first.invoke([]), second.invoke([])]}))

    assert [(message.content, message.id) for message, _ in found] == [("a", "m1"), ("b", "m2")]


def test_a_failed_model_shows_what_it_had_said(colour: Colour) -> None:
    """Nothing is made up about its end."""

    def node(state: Any, config: RunnableConfig) -> None:
        (run,) = config["callbacks"].on_chat_model_start({}, [[]])
        run.on_llm_new_token("half", chunk=ours.AIMessageChunk("half"))
        run.on_llm_error(ValueError("cut"), response=ours.AIMessage("half"))

    assert contents(messages(colour, graph_of(a=node))) == ["half"]


def test_prompts_and_odd_answers_are_no_messages(colour: Colour) -> None:
    """What is not a message cannot be one of the stream's."""

    def node(state: Any, config: RunnableConfig) -> None:
        (run,) = config["callbacks"].on_llm_start({}, ["prompt"])
        run.on_llm_new_token("text")
        run.on_llm_end("text")
        (run,) = config["callbacks"].on_chat_model_start({}, [[]])
        run.on_llm_new_token(None)
        run.on_llm_new_token("x", chunk=object())
        run.on_llm_end({"no": "message"})

    assert messages(colour, graph_of(a=node)) == []


# --- LangChain's models -----------------------------------------------------------------------------------------


def generic() -> Any:
    return GenericFakeChatModel(messages=iter([theirs.AIMessage("hello there")]))


def listed() -> Any:
    return FakeListChatModel(responses=["hello there"])


@pytest.mark.parametrize("make", [generic, listed])
@pytest.mark.parametrize("given", ["config", "ambient"])
@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_langchain_s_models_stream_however_they_are_called(colour: Colour, make: Callable[[], Any], given: str, how: str) -> None:
    """Asked for the whole answer as well; with the config passed on, or found by LangChain in its ContextVar."""

    def node(state: Any, config: RunnableConfig) -> Any:
        passed = (config,) if given == "config" else ()
        if how == "invoke":
            return {"messages": [make().invoke(state["messages"], *passed)]}
        whole = None
        for piece in make().stream(state["messages"], *passed):
            whole = piece if whole is None else whole + piece
        return {"messages": [whole]}

    async def anode(state: Any, config: RunnableConfig) -> Any:
        passed = (config,) if given == "config" else ()
        if how == "invoke":
            return {"messages": [await make().ainvoke(state["messages"], *passed)]}
        whole = None
        async for piece in make().astream(state["messages"], *passed):
            whole = piece if whole is None else whole + piece
        return {"messages": [whole]}

    app = graph_of(a=node if colour.name == "sync" else anode)
    found = colour.stream(app, {"messages": [theirs.HumanMessage("hi")]}, CONFIG, stream_mode=["messages", "values"])

    tokens = [part for mode, part in found if mode == "messages"]
    answer = found[-1][1]["messages"][-1]
    assert len(tokens) > 1
    assert "".join(contents(tokens)) == answer.content == "hello there"
    assert {message.id for message, _ in tokens} == {answer.id}
    about = tokens[0][1]
    assert (about["langgraph_node"], about["team"], about["tags"]) == ("a", "blue", ["mine"])
    assert about["langgraph_checkpoint_ns"] == about["checkpoint_ns"]


def test_handlers_hear_of_langchain_s_models_once(colour: Colour) -> None:
    """From LangChain, whether somebody streams or not; also where the node passed no config on."""
    seen: list[Any] = []

    class Handler(BaseCallbackHandler):
        def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
            seen.append("start")

        def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            seen.append(token)

        def on_llm_end(self, response: Any, **kwargs: Any) -> None:
            seen.append("end")

    app = graph_of(a=lambda state: {"messages": [generic().invoke("hi")]})

    colour.stream(app, {"messages": []}, {"callbacks": [Handler()]}, stream_mode="messages")
    streamed, seen = seen, []
    colour.invoke(app, {"messages": []}, {"callbacks": [Handler()]})

    assert streamed == ["start", "hello", " ", "there", "end"]
    assert seen == ["start", "end"]


def test_a_model_in_a_tool_of_langchain_s_streams_too(colour: Colour) -> None:
    """However deep it is called."""

    @tool
    def look(what: str) -> str:
        """Look something up."""
        return str(generic().invoke(what).content)

    app = graph_of(a=lambda state: {"messages": [ours.AIMessage(look.invoke("x"), id="whole")]})

    assert contents(messages(colour, app)) == ["hello", " ", "there", "hello there"]


# --- what nodes return ------------------------------------------------------------------------------------------


def test_a_returned_message_is_shown_with_its_node(colour: Colour) -> None:
    """And gets an id, which is the state's as well."""
    app = graph_of(a=lambda state: {"messages": [ours.AIMessage("y")]})

    found = colour.stream(app, {"messages": [ours.HumanMessage("hi")]}, CONFIG, stream_mode=["messages", "values"])

    ((message, about),) = (part for mode, part in found if mode == "messages")
    assert found[-1][1]["messages"][-1] is message
    assert message.id is not None
    assert about == {
        "team": "blue",
        "thread_id": "t",
        "ls_integration": "langgraph",
        "langgraph_node": "a",
        "langgraph_step": 1,
        "langgraph_triggers": ("branch:to:a",),
        "langgraph_path": ("__pregel_pull", "a"),
        "langgraph_checkpoint_ns": about["langgraph_checkpoint_ns"],
    }


def test_what_was_in_the_input_is_not_shown_again(colour: Colour) -> None:
    """Nor what another node has returned before."""
    new = ours.AIMessage("new", id="n")
    app = graph_of(a=lambda state: {"messages": [*state["messages"], new]}, b=lambda state: {"messages": [new]})

    assert contents(messages(colour, app)) == ["new"]


class Deep(TypedDict, total=False):
    one: Any
    many: Any
    deep: Any


@dataclasses.dataclass
class Returned:
    one: Any
    many: Any = ()


class Modelled(BaseModel):
    one: Any = None
    many: Any = ()


A, B = ours.AIMessage("a", id="a"), theirs.AIMessage("b", id="b")


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        ({"one": A, "many": (B,)}, ["a", "b"]),
        ({"deep": {"x": [A]}, "many": [[A]]}, []),
        ({"one": "text", "many": b"bytes"}, []),
        (Returned(A, [B]), ["a", "b"]),
        (Modelled(one=A, many=[B]), ["a", "b"]),
        (Command(update={"many": [A, B]}), ["a", "b"]),
        ([Command(update={"one": A}), Command(update={"many": [B]}), {"deep": A}], ["a", "b", "a"]),
        (Command(goto="__end__"), []),
        (None, []),
    ],
    ids=["fields", "deeper", "texts", "dataclass", "model", "command", "commands", "goto", "nothing"],
)
def test_messages_are_found_one_level_deep(colour: Colour, returned: Any, shown: list[str]) -> None:
    """In what a node returned: values, items, fields, commands' updates. Nothing is shown twice."""
    found = colour.stream(graph_of(Deep, a=lambda state: returned), {"one": 0}, stream_mode="messages")

    assert contents(found) == list(dict.fromkeys(shown))


def test_a_state_that_is_a_message_list_is_looked_at_as_well(colour: Colour) -> None:
    """Its items are the messages."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Annotated[list, ours.add_messages])  # type: ignore[arg-type]
    graph.add_node("a", lambda state: [*state, A])
    graph.add_edge(START, "a")

    assert contents(messages(colour, graph.compile(), [ours.HumanMessage("hi", id="in")])) == ["a"]


def test_nostream_is_for_the_model_only(colour: Colour) -> None:
    """What the node returns is shown as any other message."""
    model = GenericFakeChatModel(messages=iter([theirs.AIMessage("hello there")]))

    def node(state: Any, config: RunnableConfig) -> Any:
        return {"messages": [model.with_config(tags=["nostream"]).invoke("hi", config)]}

    found = messages(colour, graph_of(a=node))

    assert contents(found) == ["hello there"]
    assert "tags" not in found[0][1]


def test_a_failed_node_shows_nothing_more(colour: Colour) -> None:
    """Its tokens were shown."""

    def node(state: Any) -> Any:
        ScriptedModel("so", "far").invoke([])
        raise ValueError("boom")

    found: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        colour.each(graph_of(a=node), {"messages": []}, found.append, stream_mode="messages")

    assert contents(found) == ["so", "far"]


# --- graphs inside graphs, functions ----------------------------------------------------------------------------


def speaking(state: Any) -> Any:
    return {"messages": [ScriptedModel("Hel", "lo").invoke(state["messages"])]}


def test_of_a_graph_inside_only_what_its_node_returns_is_shown(colour: Colour) -> None:
    """As that node's; with subgraphs its tokens are, where they belong, and not the whole again."""
    app = graph_of(outer=graph_of(inner=speaking))

    ((whole, about),) = messages(colour, app)
    deep = messages(colour, app, subgraphs=True)

    assert (whole.content, about["langgraph_node"]) == ("Hello", "outer")
    assert [(len(ns), message.content, about["langgraph_node"]) for ns, (message, about) in deep] == [
        (1, "Hel", "inner"), (1, "lo", "inner"),
    ]  # fmt: skip


def test_a_stream_that_a_node_reads_has_its_tokens(colour: Colour) -> None:
    """Whatever the outer call asked for."""
    inner, seen = graph_of(inner=speaking), []

    def node(state: Any) -> None:
        seen.extend(inner.stream({"messages": []}, stream_mode="messages"))

    async def anode(state: Any) -> None:
        seen.extend([part async for part in inner.astream({"messages": []}, stream_mode="messages")])

    app = graph_of(outer=node if colour.name == "sync" else anode)

    assert colour.stream(app, {"messages": []}, stream_mode="updates") == [{"outer": None}]
    assert contents(seen) == ["Hel", "lo"]


def test_functions_show_their_messages(colour: Colour) -> None:
    """A task's when it returns, the entrypoint's if they are new."""

    @task
    def speak() -> Any:
        return ours.AIMessage("from a task")

    @entrypoint()
    def talk(given: Any) -> Any:
        return [speak().result(), ours.AIMessage("of its own")]

    @entrypoint()
    async def atalk(given: Any) -> Any:
        return [await speak(), ours.AIMessage("of its own")]

    found = colour.stream(talk if colour.name == "sync" else atalk, 1, stream_mode="messages")

    assert [(message.content, about["langgraph_node"]) for message, about in found] == [
        ("from a task", "speak"),
        ("of its own", "talk" if colour.name == "sync" else "atalk"),
    ]


# --- push_message -----------------------------------------------------------------------------------------------


def test_a_pushed_message_is_shown_at_once_and_written(colour: Colour) -> None:
    """Before what the node returns; known by its id, it is not shown again."""

    def node(state: Any) -> Any:
        kept = push_message(ours.AIMessage("one", id="1"))
        push_message({"role": "ai", "content": "two", "id": "2"}, state_key=None)
        return {"messages": [kept, ours.AIMessage("three", id="3")]}

    found = colour.stream(graph_of(a=node), {"messages": []}, CONFIG, stream_mode=["messages", "values"])

    shown = [part for mode, part in found if mode == "messages"]
    assert contents(shown) == ["one", "two", "three"]
    assert [about["langgraph_node"] for _, about in shown] == ["a"] * 3
    assert [message.id for message in found[-1][1]["messages"]] == ["1", "3"]


def test_a_pushed_message_needs_an_id_and_a_place(colour: Colour) -> None:
    """What is wrong is said where it is pushed."""

    @task
    def inside() -> None:
        push_message(ours.AIMessage("x", id="1"))

    def call(state: Any) -> Any:
        inside().result()

    async def acall(state: Any) -> Any:
        await inside()

    with pytest.raises(ValueError, match="with an id"):
        colour.invoke(graph_of(a=lambda state: push_message(ours.AIMessage("x"))), {"messages": []})
    with pytest.raises(InvalidUpdateError, match="no key 'talk'"):
        colour.invoke(graph_of(a=lambda s: push_message(ours.AIMessage("x", id="1"), state_key="talk")), {"messages": []})
    with pytest.raises(InvalidUpdateError, match="called task"):
        colour.invoke(graph_of(a=call if colour.name == "sync" else acall), {"messages": []})
    with pytest.raises(RuntimeError, match="outside a run"):
        push_message(ours.AIMessage("x", id="1"))


def test_a_message_pushed_by_an_attempt_that_failed_is_not_kept(colour: Colour) -> None:
    """It was shown, which cannot be undone; the state has the last attempt's."""
    left = [1]

    def node(state: Any) -> None:
        push_message(ours.AIMessage(f"try {len(left)}", id=f"{len(left)}"))
        if left:
            left.pop()
            raise ConnectionError

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("a", node, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "a")

    found = colour.stream(graph.compile(), {"messages": []}, stream_mode=["messages", "values"])

    assert contents([part for mode, part in found if mode == "messages"]) == ["try 1", "try 0"]
    assert [message.content for message in found[-1][1]["messages"]] == ["try 0"]
