"""The manager that node code finds in its config: it publishes calls on the Hub and tells handlers the Hub does not know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from recorded import ROOT, Recorder, run_started, task_started

from tracegraph.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    CallbackManager,
    adispatch_custom_event,
    dispatch_custom_event,
)
from tracegraph.callbacks.dispatch import HandlerObserver
from tracegraph.callbacks.manager import handlers_of
from tracegraph.callbacks.place import Place
from tracegraph.callbacks.runs import node_run_id
from tracegraph.config import ensure_config
from tracegraph.current import CURRENT
from tracegraph.errors import GraphInterrupt, InvalidInputError
from tracegraph.events import (
    CustomEmitted,
    Event,
    ModelEnded,
    ModelStarted,
    ModelToken,
    RetrievalEnded,
    RetrievalStarted,
    ToolEnded,
    ToolStarted,
    every_kind,
    kinds,
)

NODE = node_run_id(ROOT, "id-a")


class FakeHub:
    """Numbers and keeps what is published, and hands it to one observer."""

    def __init__(self, wants: int | None = None, observer: HandlerObserver | None = None) -> None:
        self.wants = every_kind() if wants is None else wants
        self.events: list[Any] = []
        self.observer = observer

    def publish(self, event: Event) -> None:
        self.events.append(event)
        if self.observer is not None and self.observer.wants & event.bit:
            self.observer.observe(event)


def place_on(hub: FakeHub | None, heard: tuple[Any, ...] = ()) -> Place:
    ticks = count(1_000)
    return Place(hub, ROOT, "ns", 1, "id-a", "a", 1, heard, now=lambda: next(ticks))


def manager_on(hub: FakeHub | None, heard: tuple[Any, ...] = ()) -> CallbackManager:
    return CallbackManager.at(place_on(hub, heard), tags=["u"], metadata={"m": 1})


class Model:
    """A streaming chat model with its answer written in advance."""

    def __init__(self, *pieces: str, error: Exception | None = None) -> None:
        self.pieces = pieces
        self.error = error

    def stream(self, messages: list[Any], config: Any = None) -> Iterator[str]:
        manager = ensure_config(config)["callbacks"]
        (run,) = manager.on_chat_model_start({"name": "Scripted"}, [messages], temperature=0.5, invocation_params={"model": "s1"})
        try:
            for piece in self.pieces:
                run.on_llm_new_token(piece, chunk={"text": piece})
                yield piece
            if self.error is not None:
                raise self.error
        except Exception as error:
            run.on_llm_error(error, response="".join(self.pieces))
            raise
        run.on_llm_end("".join(self.pieces))

    async def astream(self, messages: list[Any], config: Any = None) -> AsyncIterator[str]:
        manager = ensure_config(config)["callbacks"]
        (run,) = manager.on_chat_model_start(None, [messages])
        for piece in self.pieces:
            run.on_llm_new_token(piece)
            yield piece
        run.on_llm_end("".join(self.pieces))
        await run.settled()


def test_streaming_model_publishes_its_start_tokens_and_end() -> None:
    """One call, one id, times from the place's clock, the name from the serialized form."""
    hub = FakeHub()
    assert list(Model("he", "llo").stream(["hi"], {"callbacks": manager_on(hub)})) == ["he", "llo"]

    start, first, second, end = hub.events
    assert [type(event) for event in hub.events] == [ModelStarted, ModelToken, ModelToken, ModelEnded]
    assert (start.run_id, start.ns, start.step, start.task_id, start.parent_call_id) == (ROOT, "ns", 1, "id-a", None)
    assert (start.name, start.is_chat, start.messages) == ("Scripted", True, [["hi"]])
    assert (start.tags, start.metadata) == (["seq:step:1", "u"], {"m": 1})
    assert start.params == {"temperature": 0.5, "invocation_params": {"model": "s1"}}
    assert (first.token, first.chunk, second.token, end.response, end.error) == ("he", {"text": "he"}, "llo", "hello", None)
    assert len({event.call_id for event in hub.events}) == 1
    assert [event.at_ns for event in hub.events] == [1_000, 1_001, 1_002, 1_003]


def test_failing_model_publishes_the_error_and_what_had_arrived() -> None:
    """The exception goes on to the node."""
    hub, error = FakeHub(), ValueError("cut")
    with pytest.raises(ValueError, match="cut"):
        list(Model("he", error=error).stream([], {"callbacks": manager_on(hub)}))
    assert (hub.events[-1].response, hub.events[-1].error) == ("he", error)


def test_what_nobody_wants_is_not_built() -> None:
    """Tokens are many; an unobserved one costs a comparison."""
    hub = FakeHub(wants=kinds(ModelStarted, ModelEnded))
    list(Model("a", "b").stream([], {"callbacks": manager_on(hub)}))
    assert [type(event) for event in hub.events] == [ModelStarted, ModelEnded]

    hub = FakeHub(wants=0)
    manager = manager_on(hub)
    list(Model("a", error=None).stream([], {"callbacks": manager}))
    manager.on_tool_start(None, "x").on_tool_end("y")
    manager.on_tool_start(None, "x").on_tool_error(ValueError())
    manager.on_retriever_start(None, "x").on_retriever_end([])
    manager.on_retriever_start(None, "x").on_retriever_error(ValueError())
    manager.on_memory_start("search_memory").on_memory_end([])
    manager.on_memory_start("search_memory").on_memory_error(ValueError())
    manager.on_llm_start(None, ["x"])[0].on_llm_error(ValueError())
    manager.on_custom_event("n", 1)
    assert hub.events == []


def test_handlers_of_the_run_are_told_once_and_by_the_hub() -> None:
    """They are in the manager for others to read, not to be called twice."""
    recorder = Recorder()
    observer = HandlerObserver([recorder])
    observer.observe(run_started())
    observer.observe(task_started())
    manager = manager_on(FakeHub(observer=observer), (recorder,))

    list(Model("x").stream(["hi"], {"callbacks": manager}))

    assert recorder.names()[2:] == ["on_chat_model_start", "on_llm_new_token", "on_llm_end"]
    assert recorder.of("on_chat_model_start")[0]["parent_run_id"] == NODE == manager.parent_run_id


def test_handler_given_to_one_call_is_told_of_that_call_only() -> None:
    """And the run's own handlers are still told once."""
    recorder, local = Recorder(), Recorder()
    hub = FakeHub(observer=HandlerObserver([recorder]))
    token = CURRENT.set(type("Here", (), {"config": lambda self: {"callbacks": manager_on(hub, (recorder,))}})())
    try:
        list(Model("x").stream(["hi"], {"callbacks": [local]}))
        list(Model("y").stream(["hi"]))
    finally:
        CURRENT.reset(token)

    assert local.names() == ["on_chat_model_start", "on_llm_new_token", "on_llm_end"]
    assert recorder.names() == local.names() * 2
    assert local.of("on_llm_end")[0]["parent_run_id"] == NODE
    assert local.of("on_chat_model_start")[0]["temperature"] == 0.5


def test_manager_outside_any_run_tells_its_handlers() -> None:
    """A model may be called on its own."""
    recorder = Recorder()
    list(Model("x").stream(["hi"], {"callbacks": CallbackManager([recorder], [recorder], tags=["t"])}))
    assert recorder.names() == ["on_chat_model_start", "on_llm_new_token", "on_llm_end"]
    assert recorder.of("on_llm_end")[0]["tags"] == ["t"]


def test_call_ids_are_hashes_of_place_and_position() -> None:
    """A replay of the attempt makes the same ids, another attempt makes others."""

    def ids(place: Place) -> list[UUID]:
        manager = CallbackManager.at(place)
        return [manager.on_tool_start(None, "x").run_id, manager.copy().on_retriever_start(None, "q").run_id]

    first, again, retry = ids(place_on(FakeHub())), ids(place_on(FakeHub())), ids(replace(place_on(FakeHub()), attempt=2))
    assert first == again
    assert len({*first, *retry}) == 4
    assert manager_on(FakeHub()).on_tool_start(None, "x", UUID(int=9)).run_id == UUID(int=9)


def test_model_called_inside_a_tool_is_below_the_tool() -> None:
    """It inherits the tags of run and node, not those of the tool's own call."""
    hub = FakeHub()
    tool = manager_on(hub).on_tool_start({"name": "search"}, "{'q': 1}", inputs={"q": 1}, tool_call_id="c1")
    list(Model("x").stream([], {"callbacks": tool.get_child("inner")}))
    tool.on_tool_end("out")

    started, model, *_, ended = hub.events
    assert (type(started), started.input, started.tool_call_id, started.parent_call_id) == (ToolStarted, {"q": 1}, "c1", None)
    assert (model.parent_call_id, model.tags, model.metadata) == (started.call_id, ["inner", "u"], {"m": 1})
    assert (type(ended), ended.output, ended.call_id) == (ToolEnded, "out", started.call_id)


def test_tools_and_retrievers_publish_their_ends_and_errors() -> None:
    """An interrupt inside a tool is handed on as what it is."""
    hub = FakeHub()
    manager = manager_on(hub)
    manager.on_tool_start(None, "text", name="t").on_tool_error(pause := GraphInterrupt())
    manager.on_retriever_start({"id": ["lib", "Retriever"]}, "q").on_retriever_end(["d"])
    manager.on_retriever_start(None, "q").on_retriever_error(error := OSError())

    assert [type(e) for e in hub.events] == [ToolStarted, ToolEnded, *[RetrievalStarted, RetrievalEnded] * 2]
    assert [event.name for event in hub.events[::2]] == ["t", "Retriever", "unnamed"]
    assert (hub.events[0].input, hub.events[1].error) == ("text", pause)
    assert (hub.events[3].documents, hub.events[5].error) == (["d"], error)


def test_memory_calls_publish_what_is_asked_and_found() -> None:
    """The count is that of the records, unless it is given; what is called inside lies below."""
    hub = FakeHub()
    manager = manager_on(hub)
    search = manager.on_memory_start("search_memory", store_id="prefs", namespace=("ann",), query="tea")
    search.get_child().on_tool_start(None, "x")
    search.on_memory_end(["r1", "r2"])
    manager.on_memory_start("upsert_memory", record_id="r1", records=[{"likes": "tea"}], name="Prefs").on_memory_end(count=1)
    manager.on_memory_start("delete_memory").on_memory_error(error := OSError())

    asked, inside, found, write, written, _, failed = hub.events
    assert (asked.operation, asked.store_id, asked.namespace, asked.query) == ("search_memory", "prefs", ("ann",), "tea")
    assert (asked.tags, asked.metadata, inside.parent_call_id) == (["seq:step:1", "u"], {"m": 1}, asked.call_id)
    assert (found.records, found.count, found.error) == (["r1", "r2"], 2, None)
    assert (write.record_id, write.records, written.records, written.count) == ("r1", [{"likes": "tea"}], None, 1)
    assert [asked.name, write.name, failed.name] == ["prefs", "Prefs", "unnamed"]
    assert failed.error is error


def test_an_unknown_memory_operation_is_refused() -> None:
    """It would be a span that nobody knows."""
    with pytest.raises(InvalidInputError, match="operation must be one of search_memory, .*, not 'read'"):
        manager_on(FakeHub()).on_memory_start("read")  # type: ignore[arg-type]


def test_each_prompt_is_a_call_of_its_own() -> None:
    """A given run id is that of the first."""
    hub = FakeHub()
    runs = manager_on(hub).on_llm_start(None, ["a", "b"], UUID(int=5), name="m")
    assert [event.messages for event in hub.events] == [["a"], ["b"]]
    assert [event.is_chat for event in hub.events] == [False, False]
    assert runs[0].run_id == UUID(int=5) != runs[1].run_id
    assert "name" not in hub.events[0].params


def test_other_runnables_are_told_to_handlers_only() -> None:
    """They are no events of the run."""
    recorder, hub = Recorder(), FakeHub()
    manager = manager_on(hub, (recorder,))
    chain = manager.on_chain_start(None, {"in": 1}, name="step")
    chain.on_text("note")
    chain.on_chain_end("out")
    manager.on_chain_start(None, 1).on_chain_error(ValueError())

    assert recorder.names() == ["on_chain_start", "on_text", "on_chain_end", "on_chain_start", "on_chain_error"]
    start = recorder.of("on_chain_start")[0]
    assert (start["name"], start["parent_run_id"], start["tags"], start["metadata"]) == (
        "step",
        NODE,
        ["seq:step:1", "u"],
        {"m": 1},
    )
    assert chain.get_child().parent_run_id == chain.run_id == start["run_id"]
    assert hub.events == []


@pytest.mark.parametrize("method", ["on_chat_model_start", "on_chain_start"])
def test_raise_error_of_a_local_handler_reaches_the_caller_as_itself(method: str) -> None:
    """The node fails with the handler's own exception."""

    class Strict(BaseCallbackHandler):
        raise_error = True

    def fail(*args: Any, **kwargs: Any) -> None:
        raise KeyError("mine")

    handler = Strict()
    setattr(handler, method, fail)
    with pytest.raises(KeyError, match="mine"):
        getattr(CallbackManager([handler]), method)(None, [[]])


class Slow(AsyncCallbackHandler):
    def __init__(self, *, is_fatal: bool = False) -> None:
        self.seen: list[str] = []
        self.raise_error = is_fatal

    async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.seen.append("start")

    async def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.seen.append(token)
        if self.raise_error:
            raise KeyError(token)


def test_async_local_handlers_run_to_completion_in_sync_code() -> None:
    """On a private loop, before the model goes on."""
    slow = Slow()
    for piece in Model("x", "y").stream([], {"callbacks": CallbackManager([slow])}):
        assert slow.seen[-1] == piece
    assert slow.seen == ["start", "x", "y"]


async def test_async_local_handlers_run_in_order_in_async_code() -> None:
    """Beside the model; settled() waits for them."""
    slow = Slow()
    async for _ in Model("x", "y").astream([], {"callbacks": CallbackManager([slow])}):
        pass
    assert slow.seen == ["start", "x", "y"]


async def test_settled_raises_what_fails_the_call() -> None:
    """A strict async handler fails the code that waits for it."""
    with pytest.raises(KeyError, match="x"):
        async for _ in Model("x").astream([], {"callbacks": CallbackManager([Slow(is_fatal=True)])}):
            pass


# Custom events


def test_custom_event_is_published_below_the_node() -> None:
    """With the node's name and the tags of what is called in it."""
    hub = FakeHub()
    dispatch_custom_event("progress", {"pct": 5}, config={"callbacks": manager_on(hub)})
    (event,) = hub.events
    assert isinstance(event, CustomEmitted)
    assert (event.node, event.task_id, event.name, event.data) == ("a", "id-a", "progress", {"pct": 5})
    assert (event.tags, event.metadata) == (["seq:step:1", "u"], {"m": 1})


async def test_custom_event_finds_the_running_node_and_tells_a_handler_of_this_call() -> None:
    """The async form also waits for async handlers of its own."""

    class Custom(AsyncCallbackHandler):
        async def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0)
            seen.append((name, data, kwargs["run_id"]))

    seen: list[Any] = []
    manager = manager_on(FakeHub())
    manager.add_handler(Custom())
    token = CURRENT.set(type("Here", (), {"config": lambda self: {"callbacks": manager}})())
    try:
        await adispatch_custom_event("e", 1)
        await adispatch_custom_event("e", 2, config={"callbacks": None})
    finally:
        CURRENT.reset(token)
    assert seen == [("e", 1, NODE), ("e", 2, NODE)]


def test_custom_event_outside_a_run_is_an_error() -> None:
    """There is no run it could be about."""
    with pytest.raises(RuntimeError, match="outside a run"):
        dispatch_custom_event("e", 1)
    with pytest.raises(RuntimeError, match="outside a run"):
        dispatch_custom_event("e", 1, config={"callbacks": CallbackManager()})
    token = CURRENT.set(type("Here", (), {"config": lambda self: {}})())
    try:
        with pytest.raises(RuntimeError, match="no callback manager"):
            dispatch_custom_event("e", 1)
    finally:
        CURRENT.reset(token)


# Being a manager like LangChain's


def test_handlers_tags_and_metadata_can_be_changed_like_langchains() -> None:
    """Inheritable and own parts are kept apart."""
    one, two, three = object(), object(), object()
    manager = CallbackManager([one])
    manager.add_handler(two, inherit=False)
    manager.add_handler(two)
    manager.add_handler(one, inherit=False)
    assert (manager.handlers, manager.inheritable_handlers) == ([one, two], [two])
    manager.remove_handler(two)
    manager.set_handler(three)
    assert (manager.handlers, manager.inheritable_handlers) == ([three], [three])
    manager.set_handlers([one, two], inherit=False)
    assert (manager.handlers, manager.inheritable_handlers) == ([one, two], [])

    manager.add_tags(["a", "b"])
    manager.add_tags(["a", "c"], inherit=False)
    manager.remove_tags(["c"])
    assert (manager.tags, manager.inheritable_tags) == (["b", "a"], ["a", "b"])
    manager.add_metadata({"x": 1})
    manager.add_metadata({"y": 2}, inherit=False)
    manager.remove_metadata(["x", "z"])
    assert (manager.metadata, manager.inheritable_metadata) == ({"y": 2}, {})
    assert manager.is_async is False


def test_copies_are_independent_and_stand_at_the_same_place() -> None:
    """A call that adds a handler does not add it for its node."""
    manager = manager_on(FakeHub())
    copy = manager.copy()
    copy.add_handler(object())
    copy.add_tags(["x"])
    assert (manager.handlers, manager.tags, copy.place, copy.parent_run_id) == ([], ["seq:step:1", "u"], manager.place, NODE)


def test_langchain_makes_its_own_manager_of_ours() -> None:
    """A LangChain model in a node calls the run's handlers, below the node."""
    from langchain_core.callbacks import BaseCallbackHandler as Theirs
    from langchain_core.language_models import GenericFakeChatModel

    class Handler(Theirs):
        def on_chat_model_start(self, *args: Any, parent_run_id: Any = None, tags: Any = None, **kwargs: Any) -> None:
            seen.append((parent_run_id, tags))

        def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            seen.append(token)

    class Ours(BaseCallbackHandler):
        def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
            prompted.extend(prompts)

    seen: list[Any] = []
    prompted: list[str] = []
    manager = manager_on(FakeHub(), (Handler(), Ours()))
    list(GenericFakeChatModel(messages=iter(["hi you"])).stream("hello", {"callbacks": manager}))
    assert seen[0] == (NODE, ["seq:step:1", "u"])
    assert "hi" in seen
    assert prompted == ["Human: hello"]


def test_langchain_manager_is_read_for_its_handlers() -> None:
    """A graph called by a LangChain chain gets that chain's handlers, each once."""
    from langchain_core.callbacks import CallbackManager as Theirs

    one, two = Recorder(), Recorder()
    theirs = Theirs([one], [one, two], UUID(int=3), tags=["t"])  # type: ignore[list-item]
    assert handlers_of(theirs) == [one, two]
    assert handlers_of(theirs, known=[one]) == [two]
    assert handlers_of(None) == handlers_of([]) == []
    merged = manager_on(FakeHub()).merge(theirs)
    assert (merged.handlers, merged.parent_run_id, merged.tags) == ([one, two], NODE, ["seq:step:1", "u", "t"])
