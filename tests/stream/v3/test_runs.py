"""A run as an object: its readers move it on, and each sees what concerns it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from colours import Colour
from run_faces import Face, opened, play, with_run
from small_graphs import THREAD, State, bounded, chain, saving, says

from tracegraph.graph import START, StateGraph
from tracegraph.stream import (
    AsyncGraphRunStream,
    CustomTransformer,
    StreamChannel,
    StreamMux,
    StreamTransformer,
    UpdatesTransformer,
    ValuesTransformer,
)
from tracegraph.types import Command, interrupt


def nested() -> Any:
    """Return a graph with a graph inside."""
    return chain(before=says("before"), sub=chain(inner=says("inner")), after=says("after"))


class Words(StreamTransformer):
    """Projects what nodes wrote, with a name of its own in the main log."""

    required_stream_modes = ("updates",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[Any] = StreamChannel("words")

    def init(self) -> dict[str, Any]:
        return {"words": self.channel, "scope": self.scope}

    def process(self, event: Any) -> bool:
        if event["method"] != "updates" or tuple(event["params"]["namespace"]) != self.scope:
            return True
        for update in event["params"]["data"].values():
            for word in update["xs"]:
                self.channel.push(word)
        return False


def test_the_main_log_is_one_sequence_without_tasks(colour: Colour) -> None:
    """Payloads of graphs inside carry their namespace; starts and ends of these are events of the run's own."""

    async def body(run: Face) -> list[Any]:
        return await run.rest(run.run)

    events = with_run(colour, nested(), {"xs": []}, body)
    shown = [(e["method"], len(e["params"]["namespace"]), e["params"]["data"]) for e in events]

    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert [(method, depth) for method, depth, _ in shown] == [
        *[("values", 0)] * 2,
        ("values", 1),
        ("lifecycle", 0),
        ("values", 1),
        ("lifecycle", 0),
        *[("values", 0)] * 2,
    ]
    assert [data["event"] for method, _, data in shown if method == "lifecycle"] == ["started", "completed"]


def test_nothing_runs_before_something_is_asked_for(colour: Colour) -> None:
    """Neither opening the run nor subscribing does."""
    ran: list[str] = []

    def node(state: State) -> State:
        ran.append("node")
        return {"n": 1}

    async def body(run: Face) -> Any:
        run.begin(run.values)
        assert ran == []
        return await run.output()

    assert with_run(colour, chain(node=node), {"xs": []}, body) == {"xs": [], "n": 1}
    assert ran == ["node"]


def test_projections_fill_while_another_is_read(colour: Colour) -> None:
    """What nobody subscribed to in time is gone."""

    async def body(run: Face) -> tuple[list[Any], list[Any], list[Any]]:
        values = run.begin(run.values)
        updates = run.begin(run.updates)
        return await run.rest(values), await run.rest(updates), await run.rest(run.run)

    app = chain(a=says("a"), b=says("b"))
    values, updates, late = with_run(colour, app, {"xs": []}, body, transformers=[UpdatesTransformer])

    assert [value["xs"] for value in values] == [[], ["a"], ["a", "b"]]
    assert updates == [{"a": {"xs": ["a"]}}, {"b": {"xs": ["b"]}}]
    assert late == []


def test_transformers_of_the_graph_come_before_those_of_the_call(colour: Colour) -> None:
    """Both see graphs inside with a transformer of that graph's own."""
    app = chain({"transformers": [Words]}, a=says("a"), sub=chain(b=says("b")))

    async def body(run: Face) -> Any:
        words = run.begin(run.extensions["words"])
        subgraphs = run.begin(run.subgraphs)
        handle = run.face(await run.one(subgraphs))
        inner, log = run.begin(handle.extensions["words"]), run.begin(handle.run)
        return await run.rest(inner), handle.extensions["scope"], await run.rest(words), list(run.extensions), await run.rest(log)

    inner, scope, words, names, log = with_run(colour, app, {"xs": []}, body, transformers=[CustomTransformer])

    assert inner == ["b"]
    # What the inner transformer forwards is in the inner log alone, so it has no number.
    assert [(event["method"], "seq" in event) for event in log] == [("custom:words", False), ("values", True)]
    assert words == ["a", "a", "b"]
    assert scope[0].startswith("sub:")
    assert names == ["values", "messages", "lifecycle", "subgraphs", "words", "scope", "custom"]


def test_a_transformer_may_go_before_the_built_in_ones(colour: Colour) -> None:
    """Then it can change what they see."""

    class Shouting(StreamTransformer):
        before_builtins = True

        def process(self, event: Any) -> bool:
            if event["method"] == "values":
                event["params"]["data"]["xs"] = [word.upper() for word in event["params"]["data"]["xs"]]
            return True

    async def body(run: Face) -> Any:
        return await run.output()

    assert with_run(colour, chain(a=says("a")), {"xs": []}, body, transformers=[Shouting]) == {"xs": ["A"]}


def test_projections_of_the_user_s_are_no_attributes(colour: Colour) -> None:
    """The error lists what is there."""

    async def body(run: Face) -> None:
        with pytest.raises(AttributeError, match="'words'; projections are lifecycle, messages, subgraphs, values"):
            _ = run.run.words
        with pytest.raises(TypeError):
            run.run.extensions["more"] = 1

    with_run(colour, chain(a=says("a")), {"xs": []}, body, transformers=[Words])


def test_an_error_reaches_every_reader_once(colour: Colour) -> None:
    """After what came before it: events, projections, output and interrupts."""

    def fails(state: State) -> State:
        raise LookupError("mine")

    async def body(run: Face) -> list[Any]:
        log, values = run.begin(run.run), run.begin(run.values)
        with pytest.raises(LookupError, match="mine"):
            while True:
                await run.one(log)
        assert [(await run.one(values))["xs"] for _ in range(2)] == [[], ["a"]]
        with pytest.raises(LookupError, match="mine"):
            await run.one(values)
        for ask in (run.output, run.interrupted, run.interrupts):
            with pytest.raises(LookupError, match="mine"):
                await ask()
        late = run.begin(run.messages)
        with pytest.raises(LookupError, match="mine"):
            await run.one(late)
        return await run.rest(log) + await run.rest(values) + await run.rest(late)

    assert with_run(colour, chain(a=says("a"), b=fails), {"xs": []}, body) == []


def test_an_error_of_a_transformer_fails_the_run_and_stops_its_nodes(colour: Colour) -> None:
    """There is nobody left to run for."""
    ran: list[str] = []

    class Failing(StreamTransformer):
        def process(self, event: Any) -> bool:
            raise LookupError("mine")

    def later(state: State) -> State:
        ran.append("later")
        return {}

    async def body(run: Face) -> None:
        with pytest.raises(LookupError, match="mine"):
            await run.rest(run.run)
        with pytest.raises(LookupError, match="mine"):
            await run.output()

    with_run(colour, chain(a=says("a"), b=says("b"), later=later), {"xs": []}, body, transformers=[Failing])
    assert ran == []


def test_questions_are_the_run_s_and_no_values(colour: Colour) -> None:
    """A run that is resumed has its own."""

    def asks(state: State) -> State:
        return {"xs": [interrupt("who?")]}

    app = chain(saving(), sub=chain(asks=asks))

    async def body(run: Face) -> Any:
        lifecycle = await run.rest(run.lifecycle)
        return [p["event"] for p in lifecycle], await run.output(), await run.interrupted(), await run.interrupts()

    paused = with_run(colour, app, {"xs": ["x"]}, body, THREAD)
    resumed = with_run(colour, app, Command(resume="me"), body, THREAD)

    assert paused[:3] == (["started", "interrupted"], {"xs": ["x"]}, True)
    assert [question.value for question in paused[3]] == ["who?"]
    assert resumed == (["started", "completed"], {"xs": ["x", "x", "me"]}, False, [])


@pytest.mark.parametrize("taken", [{"stream_mode": "values"}, {"subgraphs": True}])
def test_what_the_run_decides_itself_is_refused(colour: Colour, taken: dict[str, Any]) -> None:
    """The transformers say which modes there are."""

    async def body() -> None:
        with pytest.raises(TypeError, match=f"takes no {next(iter(taken))}"):
            await opened(colour, chain(a=says("a")), {}, **taken)

    play(colour, body())


def test_a_transformer_that_is_made_already_is_refused() -> None:
    """Each graph of the run needs one of its own."""
    for wrong in (Words(), "words"):
        with pytest.raises(TypeError, match=f"not {type(wrong).__name__} objects"):
            chain(a=says("a")).stream_events({}, version="v3", transformers=[wrong])
        with pytest.raises(TypeError, match=f"not {type(wrong).__name__} objects"):
            chain({"transformers": [wrong]}, a=says("a"))


def test_versions_that_are_not_spoken_are_refused_by_name() -> None:
    """Flat events exist async only."""
    app = chain(a=says("a"))
    with pytest.raises(NotImplementedError, match="version='v2'.*astream_events"):
        app.stream_events({}, version="v2")
    with pytest.raises(NotImplementedError, match="version='v1'.*'v2' and 'v3'"):
        app.astream_events({}, version="v1")


def test_other_options_are_those_of_stream(colour: Colour) -> None:
    """One that does not exist is refused when the run begins."""

    async def body(run: Face) -> Any:
        return await run.output()

    app = chain(saving(), a=says("a"), b=says("b"))
    options: dict[str, Any] = {"interrupt_before": ["b"], "durability": "exit", "output_keys": "xs"}

    assert with_run(colour, app, {"xs": []}, body, THREAD, **options) == ["a"]
    with pytest.raises(TypeError, match="colour"):
        with_run(colour, app, {"xs": []}, body, THREAD, colour="red")


def test_a_run_opened_by_a_node_has_the_node_s_namespace(colour: Colour) -> None:
    """Its own values are its own, and those of graphs inside are below."""
    seen: list[Any] = []
    inner = chain(deep=chain(leaf=says("leaf")))

    async def body(run: Face) -> None:
        seen.extend((len(e["params"]["namespace"]), e["method"]) for e in await run.rest(run.run))
        seen.append(await run.output())

    def node(state: State) -> State:
        run = inner.stream_events({"xs": []}, version="v3")
        seen.extend((len(e["params"]["namespace"]), e["method"]) for e in run)
        seen.append(run.output)
        return {}

    async def anode(state: State) -> State:
        run = await inner.astream_events({"xs": []}, version="v3")
        seen.extend([(len(e["params"]["namespace"]), e["method"]) async for e in run])
        seen.append(await run.output())
        return {}

    colour.invoke(chain(node=anode if colour.name == "async" else node), {"xs": []})

    assert seen == [
        (1, "values"),
        (2, "values"),
        (0, "lifecycle"),
        (2, "values"),
        (0, "lifecycle"),
        (1, "values"),
        {"xs": ["leaf"]},
    ]


# --- interleaving, which is sync -----------------------------------------------------------------------------------


def test_interleaved_projections_come_in_the_order_of_their_items() -> None:
    """Each with its name."""
    run = nested().stream_events({"xs": []}, version="v3", transformers=[UpdatesTransformer])
    found = [(name, item.get("event", name)) for name, item in run.interleave("updates", "values", "lifecycle")]

    assert found == [
        ("values", "values"),
        ("updates", "updates"),
        ("values", "values"),
        ("lifecycle", "started"),
        ("updates", "updates"),
        ("lifecycle", "completed"),
        ("values", "values"),
        ("updates", "updates"),
        ("values", "values"),
    ]


def test_items_of_one_part_are_interleaved_as_they_were_pushed() -> None:
    """Not by the order in which the projections are named."""
    run = nested().stream_events({"xs": []}, version="v3")

    assert [name for name, _ in run.interleave("subgraphs", "lifecycle")] == ["lifecycle", "subgraphs", "lifecycle"]


def test_channels_are_free_again_after_interleaving() -> None:
    """Break or not: the next reader goes on where it stopped."""
    run = chain(a=says("a"), b=says("b")).stream_events({"xs": []}, version="v3")
    both = run.interleave("values", "lifecycle")
    assert next(both)[1] == {"xs": []}
    with pytest.raises(RuntimeError, match="consumer already"):
        iter(run.values)
    both.close()  # type: ignore[attr-defined]  # a generator

    assert [value["xs"] for value in run.values] == [["a"], ["a", "b"]]


def test_interleaving_is_refused_where_it_cannot_work() -> None:
    """An unknown name, something that is no channel, one that is read already."""
    run = chain(a=says("a")).stream_events({"xs": []}, version="v3", transformers=[Words])
    with pytest.raises(KeyError, match="nope"):
        run.interleave("nope")
    with pytest.raises(TypeError, match="'scope' is a tuple"):
        run.interleave("values", "scope")
    iter(run.values)
    with pytest.raises(RuntimeError, match="consumer already"):
        next(run.interleave("lifecycle", "values"))

    assert [event["event"] for event in run.lifecycle] == []


def test_interleaving_raises_what_fails_the_run() -> None:
    """After the items."""

    def fails(state: State) -> State:
        raise LookupError("mine")

    both = chain(fails=fails).stream_events({"xs": []}, version="v3").interleave("values", "lifecycle")
    assert next(both) == ("values", {"xs": []})
    with pytest.raises(LookupError, match="mine"):
        next(both)


# --- several readers -----------------------------------------------------------------------------------------------


async def test_readers_at_once_see_everything_each() -> None:
    """Whoever has nothing left to read pulls; the others are woken after each part."""
    order: list[str] = []

    async def read(name: str, items: Any) -> list[Any]:
        found = []
        async for item in items:
            order.append(name)
            found.append(item)
        return found

    steps = 20
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([(f"n{i}", says(i)) for i in range(steps)])
    graph.add_edge(START, "n0")
    run = await graph.compile().astream_events({"xs": []}, version="v3", transformers=[UpdatesTransformer])
    values, updates, log = await asyncio.gather(read("v", run.values), read("u", run.updates), read("l", run))

    assert [len(value["xs"]) for value in values] == list(range(steps + 1))
    assert len(updates) == steps
    assert [event["seq"] for event in log] == list(range(1, 2 * steps + 2))
    # Nobody is left behind until the others are through.
    assert len(set(order[: len(order) // 3])) == 3


async def test_readers_of_a_run_that_never_waits_get_their_turns() -> None:
    """Its parts are all there, and still nobody reads them all before the others have read one."""
    order: list[str] = []

    async def parts() -> Any:
        for n in range(5):
            yield {"type": "values", "ns": (), "data": {"n": n}, "interrupts": ()}
            yield {"type": "updates", "ns": (), "data": {"node": {"n": n}}}

    async def read(name: str, items: Any) -> None:
        async for _ in items:
            order.append(name)

    run = AsyncGraphRunStream(parts(), StreamMux(factories=[ValuesTransformer, UpdatesTransformer], is_async=True))
    await asyncio.gather(read("v", run.values), read("u", run.updates))

    assert order.count("v") == order.count("u") == 5
    assert "u" in order[:4]
    assert "v" in order[-4:]


async def test_readers_that_start_together_miss_nothing_of_a_resumed_run() -> None:
    """Its first part is there at once."""

    async def collect(items: Any) -> list[Any]:
        return [item async for item in items]

    app = chain(saving(), a=says("a"), b=says("b"))
    await app.ainvoke({"xs": []}, THREAD, interrupt_before=["b"])
    run = await app.astream_events(None, THREAD, version="v3")
    values, log = await asyncio.gather(collect(run.values), collect(run))

    assert [value["xs"] for value in values] == [["a"], ["a", "b"]]
    assert [event["seq"] for event in log] == [1, 2]


async def test_a_run_that_is_left_before_its_first_part_never_begins() -> None:
    """Although a reader is about to pull it."""
    ran: list[int] = []

    async def node(state: State) -> State:
        ran.append(1)
        return {}

    run = await chain(node=node).astream_events({"xs": []}, version="v3")
    reader = asyncio.create_task(anext(aiter(run.values), None))
    await asyncio.sleep(0)
    await run.abort()

    assert await reader is None
    assert ran == []


def test_readers_in_several_threads_take_turns() -> None:
    """The run is moved on by one of them at a time."""
    run = chain(a=says("a"), b=says("b"), c=says("c")).stream_events({"xs": []}, version="v3", transformers=[UpdatesTransformer])
    values, updates = iter(run.values), iter(run.updates)
    ready, found = threading.Barrier(2), {}

    def read(name: str, items: Any) -> None:
        ready.wait()
        found[name] = len(list(items))

    threads = [threading.Thread(target=read, args=pair) for pair in (("values", values), ("updates", updates))]
    for thread in threads:
        thread.start()
    for thread in threads:
        bounded(thread.join)

    assert found == {"values": 4, "updates": 3}


def test_a_transformer_may_read_the_run_that_it_is_part_of() -> None:
    """Pulling while a part goes through the mux is taken like any other pull."""

    class Peeking(StreamTransformer):
        def __init__(self, scope: tuple[str, ...] = ()) -> None:
            super().__init__(scope)
            self.run: Any = None
            self.peeked: Any = None

        def init(self) -> dict[str, Any]:
            return {"peeking": self}

        def process(self, event: Any) -> bool:
            if self.run is not None:
                run, self.run = self.run, None
                self.peeked = run.output
            return True

    run = chain(a=says("a"), b=says("b")).stream_events({"xs": []}, version="v3", transformers=[Peeking])
    run.extensions["peeking"].run = run

    assert run.output == run.extensions["peeking"].peeked == {"xs": ["a", "b"]}
