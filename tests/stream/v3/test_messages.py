"""What models say, as it is said: text, reasoning, tool calls, and the message they come to."""

from __future__ import annotations

import asyncio
import contextlib
import operator
from typing import Annotated, Any, TypedDict

import pytest
from colours import ASYNC, Colour
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainMessage
from run_faces import Face, MuxFace, play, with_run
from small_graphs import PATIENCE_S, chain
from spoken import Speaker, words

from tracegraph.config import RunnableConfig
from tracegraph.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from tracegraph.stream import ChatModelStream, MessagesTransformer

CALL = {"type": "tool_call", "id": "c1", "name": "add", "args": {"x": 1}}
PIECES = [
    AIMessageChunk("", id="m1", additional_kwargs={"reasoning_content": "Hm"}),
    AIMessageChunk([{"type": "reasoning", "reasoning": "m."}], id="m1"),
    AIMessageChunk("Hel", id="m1"),
    AIMessageChunk([{"type": "text", "text": "lo"}], id="m1"),
    AIMessageChunk("", id="m1", tool_call_chunks=[{"name": "add", "args": '{"x"', "id": "c1", "index": 0}]),
    AIMessageChunk("", id="m1", tool_call_chunks=[{"name": None, "args": ": 1}", "id": None, "index": 0}]),
    AIMessageChunk("", id="m1", tool_call_chunks=[{"name": "sub", "args": "{bad", "id": "c2", "index": 1}]),
    AIMessageChunk("", id="m1", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    AIMessageChunk("", id="m1", response_metadata={"finish_reason": "stop"}),
]


class State(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]


def speaking(colour: Colour, speaker: Speaker) -> Any:
    """Return a graph whose node lets a model speak."""

    def node(state: State, config: RunnableConfig) -> State:
        return {"xs": [speaker.speak(config)]}

    async def anode(state: State, config: RunnableConfig) -> State:
        return {"xs": [await speaker.aspeak(config)]}

    return chain(node=anode if colour.name == "async" else node)


async def only(run: Face) -> Any:
    """Read the run to its end and return its one message stream."""
    (found,) = await run.rest(run.messages)
    return found


def test_an_answer_is_read_in_parts_and_whole(colour: Colour) -> None:
    """Each part from the start, as often as somebody likes."""

    async def body(run: Face) -> Any:
        stream = await run.one(run.begin(run.messages))
        assert (stream.done, stream.output_message, stream.node, stream.namespace) == (False, None, "node", [])
        for _ in range(2):
            assert "".join(await run.rest(stream.text)) == "Hello"
            assert "".join(await run.rest(stream.reasoning)) == "Hmm."
        pieces = await run.rest(stream.tool_calls)
        whole = [await run.whole(part) for part in (stream.text, stream.reasoning, stream.tool_calls)]
        output = await stream if run.is_async else stream.output
        assert output is stream.output_message
        assert (await stream.output if run.is_async else stream.output) is output
        assert stream.done
        return pieces, whole, output, stream.message_id

    pieces, whole, output, message_id = with_run(colour, speaking(colour, Speaker(PIECES)), {"xs": []}, body)

    assert [(piece["id"], piece["name"], piece["args"], piece["index"]) for piece in pieces] == [
        ("c1", "add", '{"x"', 0),
        ("c1", "add", ": 1}", 0),
        ("c2", "sub", "{bad", 1),
    ]
    assert whole == ["Hello", "Hmm.", [CALL]]
    assert message_id == output.id == "m1"
    assert type(output) is AIMessage
    assert [block["type"] for block in output.content] == ["reasoning", "text", "tool_call", "invalid_tool_call"]
    assert output.tool_calls == [CALL]
    assert [call["args"] for call in output.invalid_tool_calls] == ["{bad"]
    assert output.usage_metadata["total_tokens"] == 3
    assert output.response_metadata == {"finish_reason": "stop", "output_version": "v1"}


def test_the_events_of_an_answer_say_which_call_they_are_of(colour: Colour) -> None:
    """In the main log with their metadata; the stream replays them alone."""

    async def body(run: Face) -> Any:
        log = run.begin(run.run)
        stream = await only(run)
        return [e["params"]["data"] for e in await run.rest(log) if e["method"] == "messages"], await run.rest(stream)

    logged, replayed = with_run(colour, speaking(colour, Speaker(words("He", "llo"))), {"xs": []}, body)

    assert [event for event, _ in logged] == replayed
    assert [event["event"] for event in replayed] == [
        "message-start",
        "content-block-start",
        *["content-block-delta"] * 2,
        "content-block-finish",
        "message-finish",
    ]
    assert len({metadata["run_id"] for _, metadata in logged}) == 1
    assert {metadata["langgraph_node"] for _, metadata in logged} == {"node"}


async def test_text_comes_while_the_model_speaks() -> None:
    """Each piece before the next one is spoken, also with other readers at work."""
    go = [asyncio.Event() for _ in range(3)]
    speaker = Speaker(words("a", "b", "c"), lambda at: go[at].wait())
    run = await speaking(ASYNC, speaker).astream_events({"xs": []}, version="v3")
    seen: list[str] = []

    async def read_messages() -> None:
        async for stream in run.messages:
            async for text in stream.text:
                seen.append(text)
                if text != "c":
                    go["abc".index(text) + 1].set()

    async def read_values() -> None:
        async for value in run.values:
            seen.append(f"values {len(value['xs'])}")
            go[0].set()

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(read_messages(), read_values())

    assert seen[0] == "values 0"
    assert sorted(seen[1:]) == ["a", "b", "c", "values 1"]


def test_a_model_that_fails_fails_its_stream(colour: Colour) -> None:
    """With its text, once for each reader; a node that goes on without it leaves the run alone."""
    speaker = Speaker([*words("half"), LookupError("mine")])

    async def body(run: Face) -> None:
        stream = await run.one(run.begin(run.messages))
        texts = run.begin(stream.text)
        assert await run.one(texts) == "half"
        with pytest.raises(RuntimeError, match="mine"):
            await run.one(texts)
        with pytest.raises(RuntimeError, match="mine"):
            await run.whole(stream.output) if run.is_async else stream.output
        assert (stream.done, stream.output_message) == (True, None)
        with pytest.raises(LookupError, match="mine"):
            await run.output()

    with_run(colour, speaking(colour, speaker), {"xs": []}, body)


def test_answers_of_graphs_inside_are_theirs(colour: Colour) -> None:
    """The run's own messages are what its own nodes say."""
    app = chain(sub=speaking(colour, Speaker(words("inside", message_id="in"))), node=lambda state: {})

    async def body(run: Face) -> Any:
        messages = run.begin(run.messages)
        handle = run.face(await run.one(run.begin(run.subgraphs)))
        (inside,) = await run.rest(handle.messages)
        return await run.whole(inside.text), await run.rest(messages)

    assert with_run(colour, app, {"xs": []}, body) == ("inside", [])


def test_a_message_that_a_node_returns_is_a_complete_stream(colour: Colour) -> None:
    """If it is an answer: what people and tools say is in the main log only."""
    said = [
        HumanMessage("hi", id="h"),
        ToolMessage("done", tool_call_id="c1", id="t"),
        AIMessage("whole", id="a", tool_calls=[{"name": "add", "args": {"x": 1}, "id": "c1"}]),
    ]

    async def body(run: Face) -> Any:
        log = run.begin(run.run)
        stream = await only(run)
        assert stream.done
        return (
            await run.rest(stream.text),
            await run.whole(stream.tool_calls),
            stream.output_message.id,
            [e["params"]["data"][0].id for e in await run.rest(log) if e["method"] == "messages"],
        )

    found = with_run(colour, chain(node=lambda state: {"xs": said}), {"xs": []}, body)

    assert found == (["whole"], [CALL], "a", ["h", "t", "a"])


def test_a_langchain_model_streams_and_answers_in_its_own_family(colour: Colour) -> None:
    """Although the node asks for the whole answer."""

    def node(state: State) -> State:
        return {"xs": [GenericFakeChatModel(messages=iter([LangChainMessage("hello world")])).invoke("hi")]}

    async def anode(state: State) -> State:
        return {"xs": [await GenericFakeChatModel(messages=iter([LangChainMessage("hello world")])).ainvoke("hi")]}

    async def body(run: Face) -> Any:
        stream = await only(run)
        return await run.rest(stream.text), stream.output_message, (await run.output())["xs"][0].id

    texts, message, state_id = with_run(colour, chain(node=anode if colour.name == "async" else node), {"xs": []}, body)

    assert texts == ["hello", " ", "world"]
    assert type(message) is LangChainMessage
    assert message.text == "hello world"
    assert message.id == state_id


# --- by hand -------------------------------------------------------------------------------------------------------


async def scripted(colour: Colour, *events: dict[str, Any], error: BaseException | None = None) -> tuple[Face, list[Any]]:
    """Return the streams that message events of one call come to."""
    face = MuxFace(colour, MessagesTransformer)
    streams = face.face.begin(face.mux.extensions["messages"])
    for event in events:
        await face.push("messages", (event, {"run_id": "r", "langgraph_node": "n"}))
    await (face.close() if error is None else face.fail(error))
    found: list[Any] = []
    with contextlib.suppress(LookupError):
        while (stream := await (anext(streams, None) if face.is_async else _next(streams))) is not None:
            found.append(stream)
    return face.face, found


async def _next(streams: Any) -> Any:
    return next(streams, None)


START: dict[str, Any] = {"event": "message-start", "role": "ai", "id": "m"}
TEXT = {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": "He"}}


def test_the_finished_block_has_the_last_word(colour: Colour) -> None:
    """Readers of deltas come to the same text: what was missing is one more delta."""

    async def body() -> Any:
        face, (stream,) = await scripted(
            colour,
            START,
            TEXT,
            {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "l"}},
            {"event": "content-block-finish", "index": 0, "content": {"type": "text", "text": "Hello"}},
            {"event": "message-finish"},
        )
        return await face.rest(stream.text), await face.whole(stream.text), stream.output_message.content

    assert play(colour, body()) == (["He", "l", "lo"], "Hello", [{"type": "text", "text": "Hello", "index": 0}])


def test_blocks_of_other_kinds_grow_by_data_and_by_fields(colour: Colour) -> None:
    """Blocks are listed by their index, not in the order in which they began."""

    async def body() -> Any:
        face, (stream,) = await scripted(
            colour,
            START,
            {"event": "content-block-start", "index": 2, "content": {"type": "image", "data": "aa"}},
            {"event": "content-block-delta", "index": 2, "delta": {"type": "data-delta", "data": "bb"}},
            {"event": "content-block-start", "index": 1, "content": {"type": "citation", "page": 1}},
            {"event": "content-block-delta", "index": 1, "delta": {"type": "block-delta", "fields": {"page": 2}}},
            {"event": "content-block-delta", "index": 0, "delta": {"type": "reasoning-delta", "reasoning": "so"}},
            {"event": "of a later version"},
            {"event": "message-finish", "metadata": {"model": "m"}},
            {"event": "message-finish"},
        )
        return stream.output_message.content, stream.output_message.response_metadata, await face.whole(stream.reasoning)

    assert play(colour, body()) == (
        [
            {"type": "reasoning", "reasoning": "so", "index": 0},
            {"type": "citation", "page": 2},
            {"type": "image", "data": "aabb"},
        ],
        {"model": "m", "output_version": "v1"},
        "so",
    )


def test_an_answer_that_is_open_when_the_run_ends_is_what_there_is_of_it(colour: Colour) -> None:
    """When the run fails, its error is the answer's."""

    async def ends() -> Any:
        face, (stream,) = await scripted(colour, START, TEXT)
        return await face.whole(stream.text), stream.output_message.text

    async def fails() -> None:
        face, (stream,) = await scripted(colour, START, TEXT, error=LookupError("mine"))
        for part in (stream.text, stream.reasoning, stream.tool_calls):
            with pytest.raises(LookupError, match="mine"):
                await face.whole(part)
        assert isinstance(stream.error, LookupError)

    assert play(colour, ends()) == ("He", "He")
    play(colour, fails())


def test_what_a_tool_says_is_no_answer(colour: Colour) -> None:
    """Nor are pieces of an answer whose start nobody saw, nor chunks."""

    async def body() -> Any:
        _, tools = await scripted(colour, {**START, "role": "tool"}, TEXT)
        _, pieces = await scripted(colour, TEXT, {"event": "message-finish"})
        face = MuxFace(colour, MessagesTransformer)
        streams = face.face.begin(face.mux.extensions["messages"])
        await face.push("messages", (AIMessageChunk("piece"), {}))
        await face.close()
        return [*tools, *pieces, *await face.face.rest(streams)]

    assert play(colour, body()) == []


def test_text_of_a_sync_run_is_text() -> None:
    """``str`` reads it to the end, ``repr`` reads nothing."""
    stream = ChatModelStream()
    stream.dispatch(START)
    stream.dispatch(TEXT)
    assert repr(stream.text) == "<unfinished text 'He'>"
    assert str(stream.text) == "He"
    assert stream.output is None
    stream.dispatch({"event": "message-finish"})
    assert repr(stream.text) == "<text 'He'>"
    assert stream.output.text == "He"


async def test_an_answer_that_is_closed_takes_no_more() -> None:
    """What there is by then is the message."""
    _, (stream,) = await scripted(ASYNC, START, TEXT)
    await stream.aclose()
    stream.dispatch({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "more"}})

    assert (await stream).text == "He"


def test_fields_that_replace_a_text_come_after_what_it_grew_to() -> None:
    """Deltas count in the order in which they come."""
    stream = ChatModelStream()
    deltas: list[dict[str, Any]] = [
        {"type": "text-delta", "text": "wrong"},
        {"type": "block-delta", "fields": {"text": "ri"}},
        {"type": "text-delta", "text": "gh"},
        {"type": "text-delta", "text": "t"},
    ]
    for delta in deltas:
        stream.dispatch({"event": "content-block-delta", "index": 0, "delta": delta})
    stream.finish()

    assert str(stream.text) == "right"
    assert stream.output.content == [{"type": "text", "text": "right", "index": 0}]
