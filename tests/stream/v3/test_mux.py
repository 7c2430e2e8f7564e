"""Events go through every transformer, in order; channels with names go to the main log; the end reaches all."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from colours import ASYNC, Colour
from run_faces import MuxFace, play

from tracegraph.stream import StreamChannel, StreamMux, StreamTransformer, UpdatesTransformer, ValuesTransformer


class Named(StreamTransformer):
    """Forwards the data of ``custom`` events, and hides those that say so."""

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[Any] = StreamChannel("named")
        self.ends: list[Any] = []

    def init(self) -> dict[str, Any]:
        return {"named": self.channel, "ends": self.ends}

    def process(self, event: Any) -> bool:
        if event["method"] == "custom":
            self.channel.push(event["params"]["data"])
        return event["params"]["data"] != "hidden"

    def finalize(self) -> None:
        self.ends.append("finalized")
        self.channel.push("last words")

    def fail(self, err: BaseException) -> None:
        self.ends.append(err)


class NamedNatively(Named):
    _native = True


class Flagging(StreamTransformer):
    """Marks the events that it sees."""

    def process(self, event: Any) -> bool:
        event["params"]["data"].append(type(self).__name__)
        return True


class First(Flagging):
    before_builtins = True


def test_events_are_numbered_as_they_enter_the_main_log(colour: Colour) -> None:
    """What a transformer makes of an event comes before it; what is hidden takes no number."""

    async def body() -> list[tuple[Any, ...]]:
        face = MuxFace(colour, Named)
        log = face.face.begin(face.mux.events)
        await face.push("custom", 1, "sub:1")
        await face.push("custom", "hidden")
        await face.push("values", 2)
        await face.close()
        events = await face.face.rest(log)
        assert all(event["type"] == "event" and isinstance(event["params"]["timestamp"], int) for event in events)
        return [(e["seq"], e["method"], e["params"]["namespace"], e["params"]["data"]) for e in events]

    assert play(colour, body()) == [
        (1, "custom:named", [], 1),
        (2, "custom", ["sub:1"], 1),
        (3, "custom:named", [], "hidden"),
        (4, "values", [], 2),
        (5, "custom:named", [], "last words"),
    ]


def test_native_channels_are_forwarded_under_their_own_name(colour: Colour) -> None:
    """They are the attributes of a run, too."""

    async def body() -> tuple[list[str], set[str]]:
        face = MuxFace(colour, NamedNatively)
        log = face.face.begin(face.mux.events)
        await face.push("custom", 1)
        await face.fail(ValueError())
        return [(await face.face.one(log))["method"]], face.mux.native_keys

    assert play(colour, body()) == (["named"], {"named", "ends"})


def test_every_transformer_sees_an_event_that_one_of_them_hides(colour: Colour) -> None:
    """Hiding is about the main log."""

    class Hiding(StreamTransformer):
        def process(self, event: Any) -> bool:
            return False

    async def body() -> list[Any]:
        face = MuxFace(colour, Hiding, ValuesTransformer)
        values = face.face.begin(face.mux.extensions["values"])
        log = face.face.begin(face.mux.events)
        await face.push("values", {"n": 1})
        await face.close()
        assert await face.face.rest(log) == []
        return await face.face.rest(values)

    assert play(colour, body()) == [{"n": 1}]


def test_projections_know_their_own_graph_only(colour: Colour) -> None:
    """Neither what is above nor what is below."""

    async def body() -> tuple[list[Any], Any]:
        face = MuxFace(colour, ValuesTransformer, UpdatesTransformer, scope=("a:1",))
        values = face.face.begin(face.mux.extensions["values"])
        for ns in ((), ("a:1",), ("a:1", "b:2"), ("b:2",)):
            await face.push("values", ns, *ns, interrupts=(ns,))
        await face.close()
        return await face.face.rest(values), face.mux.transformer_by_key("values").interrupts

    assert play(colour, body()) == ([("a:1",)], [("a:1",)])


def test_the_end_reaches_every_channel_after_the_transformers(colour: Colour) -> None:
    """An error of one transformer's end is the first that readers get, and the others still end."""

    class Breaking(Named):
        def init(self) -> dict[str, Any]:
            return {"breaking": self.channel}

        def finalize(self) -> None:
            raise LookupError("first")

    class Later(Breaking):
        def init(self) -> dict[str, Any]:
            return {"later": self.channel}

        def finalize(self) -> None:
            raise KeyError("second")

    async def body() -> list[Any]:
        face = MuxFace(colour, Breaking, Later, Named)
        items = face.face.begin(face.mux.extensions["named"])
        with pytest.raises(LookupError, match="first"):
            await face.close()
        assert await face.face.one(items) == "last words"
        with pytest.raises(LookupError, match="first"):
            await face.face.one(items)
        return face.mux.extensions["ends"]

    assert play(colour, body()) == ["finalized"]


def test_an_error_of_a_transformer_told_of_the_failure_is_passed_over(colour: Colour) -> None:
    """The run's own error is what everybody is told, once."""

    class Breaking(Named):
        def init(self) -> dict[str, Any]:
            return {"breaking": self.channel}

        def fail(self, err: BaseException) -> None:
            raise KeyError("mine")

    error = LookupError("the run's")

    async def body() -> list[Any]:
        face = MuxFace(colour, Breaking, Named)
        items = face.face.begin(face.mux.extensions["breaking"])
        await face.fail(error)
        await face.fail(KeyError("too late"))
        await face.close()
        with pytest.raises(LookupError, match="the run's"):
            await face.face.one(items)
        return face.mux.extensions["ends"]

    assert play(colour, body()) == [error]


def test_transformers_are_checked_when_they_are_registered() -> None:
    """Each error names the transformer and the way out."""

    class Listing(Named):
        def init(self) -> Any:
            return [self.channel]

    class Taking(Named):
        def init(self) -> dict[str, Any]:
            return {"values": 1}

    with pytest.raises(TypeError, match=r"Listing.init\(\) must return a dict.*not list"):
        StreamMux(factories=[Listing])
    with pytest.raises(ValueError, match="Taking.*'values'.*ValuesTransformer"):
        StreamMux(factories=[ValuesTransformer, Taking])


@pytest.mark.parametrize("hook", ["aprocess", "afinalize", "afail"])
def test_a_transformer_with_async_hooks_is_refused_by_a_sync_run(hook: str) -> None:
    """Unless its sync hooks do as well."""

    async def done(self: Any, *args: Any) -> bool:
        return True

    made: Any = type("Made", (Named,), {hook: done})
    with pytest.raises(RuntimeError, match="Made requires an async run"):
        StreamMux(factories=[made])
    with pytest.raises(RuntimeError, match="requires an async run"):
        StreamMux(factories=[type("Asking", (Named,), {"requires_async": True})])

    made.supports_sync = True
    assert "named" in StreamMux(factories=[made]).extensions


def test_a_transformer_without_process_fails_at_the_first_event(colour: Colour) -> None:
    """The text names it."""

    async def body() -> None:
        with pytest.raises(NotImplementedError, match="StreamTransformer must override process"):
            await MuxFace(colour, StreamTransformer).push("values", 1)

    play(colour, body())


class Lane(StreamTransformer):
    """Works beside the stream."""

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.gate = asyncio.Event()
        self.notes: list[str] = []

    def init(self) -> dict[str, Any]:
        return {"notes": self.notes, "gate": self.gate}

    async def aprocess(self, event: Any) -> bool:
        await asyncio.sleep(0)
        self.schedule(self.work(event["params"]["data"]), on_error=event["method"])
        self.notes.append("taken")
        return True

    async def work(self, error: BaseException | None) -> None:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.notes.append("cancelled")
            raise
        self.notes.append("worked")
        if error is not None:
            raise error

    async def afinalize(self) -> None:
        self.notes.append("finalized")

    async def afail(self, err: BaseException) -> None:
        self.notes.append("failed")


async def test_what_is_scheduled_is_awaited_before_the_end() -> None:
    """Then the transformer finishes, then the channels close."""
    face = MuxFace(ASYNC, Lane)
    await face.push("log", None)
    closing = asyncio.create_task(face.close())
    await asyncio.sleep(0)
    assert not face.mux.is_over

    face.mux.extensions["gate"].set()
    await closing

    assert face.mux.extensions["notes"] == ["taken", "worked", "finalized"]


async def test_an_error_beside_the_stream_fails_the_run_if_it_should() -> None:
    """The other kind is logged, once, and the run ends well."""
    face = MuxFace(ASYNC, Lane)
    await face.push("log", None)
    await face.push("raise", LookupError("beside"))
    face.mux.extensions["gate"].set()

    with pytest.raises(LookupError, match="beside"):
        await face.close()

    assert isinstance(face.mux.error, LookupError)


async def test_an_error_beside_the_stream_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """That is the default."""
    face = MuxFace(ASYNC, Lane)
    await face.push("log", LookupError("beside"))
    face.mux.extensions["gate"].set()
    with caplog.at_level(logging.ERROR, "tracegraph.stream"):
        await face.close()

    assert [record.getMessage() for record in caplog.records] == ["a coroutine scheduled by Lane failed; the run goes on"]


async def test_what_is_scheduled_is_cancelled_when_the_run_fails() -> None:
    """Nobody would wait for it."""
    face = MuxFace(ASYNC, Lane)
    await face.push("log", None)
    await asyncio.sleep(0)
    await face.fail(LookupError())
    await asyncio.sleep(0)

    assert face.mux.extensions["notes"] == ["taken", "failed", "cancelled"]


def test_nothing_can_be_scheduled_without_an_event_loop() -> None:
    """The coroutine is closed, not left behind."""
    lane = Lane()
    with pytest.raises(RuntimeError, match="Lane.schedule.*async run"):
        lane.schedule(lane.work(None))


def test_a_transformer_made_of_a_ready_one_sees_what_its_own_hook_is_for(colour: Colour) -> None:
    """The ready ones are given what they read alone; whoever overrides process() or aprocess() is given everything."""
    seen: list[str] = []

    class Seeing(UpdatesTransformer):
        def process(self, event: Any) -> bool:
            seen.append(event["method"])
            return super().process(event)

    class Awaiting(UpdatesTransformer):
        async def aprocess(self, event: Any) -> bool:
            return self.process(event)

        def take(self, event: Any) -> None:
            seen.append("taken")

    async def body() -> None:
        face = MuxFace(colour, Seeing)
        for method in ("values", "updates", "custom"):
            await face.push(method, {})
        if face.is_async:
            await MuxFace(colour, Awaiting).push("updates", {})

    play(colour, body())
    assert seen == ["values", "updates", "custom", *(["taken"] if colour == ASYNC else [])]
