"""The server of events: over real HTTP, to a client of our own and to a real browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sse_server
from browser import browsing
from held_model import HeldModel
from serving import serving
from small_graphs import PATIENCE_S, State, chain
from spans import Trace

TEXT = "Owls hunt at night. Mice hide by day, and at night owls listen: the night is theirs."


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model speak as fast as it can, and talk to the server itself, whatever the machine's settings are."""
    monkeypatch.setenv("PACE_S", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with serving(sse_server.app) as address:
        yield address


def sent(body: str) -> list[dict[str, Any]]:
    """Return events as a browser reads them, their data parsed."""
    found = [dict(line.split(": ", 1) for line in event.splitlines()) for event in body.split("\n\n") if event]
    return [event | {"data": json.loads(event["data"])} for event in found]


async def test_a_client_gets_the_tokens_of_all_nodes_and_an_end(url: str, trace: Trace) -> None:
    """Numbered without a gap, each with the trace that the run left."""
    async with httpx.AsyncClient() as client:
        response = await client.get(f"{url}/run", params={"text": TEXT})

    *parts, end = sent(response.text)
    texts: dict[str, str] = {}
    for part in parts:
        if part["event"] == "messages":
            message, about = part["data"]["data"]
            texts[about["langgraph_node"]] = texts.get(about["langgraph_node"], "") + message["content"]
    assert texts == {
        "summarize": TEXT,
        "find_key_words": "night, listen, theirs",
        "choose": "Mice hide by day, and at night owls listen: the night is theirs.",
        "shorten": "Mice hide by day",
    }
    assert [int(part["id"]) for part in parts] == list(range(1, len(parts) + 1))
    (trace_id,) = trace.trace_ids
    assert {part["data"]["meta"]["trace_id"] for part in parts} == {f"{trace_id:032x}"}
    assert end == {"event": "end", "data": {}}


async def test_the_error_of_a_run_is_sent_before_the_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The response is whole, for its head was sent long before."""

    def fail(state: State) -> State:
        raise ValueError("boom")

    monkeypatch.setattr(sse_server, "graph", chain(fail=fail))

    async with httpx.AsyncClient() as client:
        *_, error, end = sent((await client.get(f"{url}/run")).text)

    assert error["data"]["data"] == {"type": "ValueError", "message": "boom"}
    assert (error["event"], end["event"]) == ("error", "end")


async def test_a_client_that_hangs_up_stops_the_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes that wait for their models are cancelled."""
    model = HeldModel(monkeypatch)

    async with asyncio.timeout(PATIENCE_S):
        async with httpx.AsyncClient() as client, client.stream("GET", f"{url}/run", params={"text": TEXT}) as response:
            async for line in response.aiter_lines():
                if "AIMessageChunk" in line:
                    break
        await model.stopped.wait()

    assert not model.go_on.is_set()


async def test_a_lost_connection_does_not_start_another_run(url: str, trace: Trace) -> None:
    """What an EventSource sends when it tries again is answered by what makes it give up."""
    async with httpx.AsyncClient() as client:
        response = await client.get(f"{url}/run", params={"text": TEXT}, headers={"Last-Event-ID": "3"})

    assert (response.status_code, response.content, trace.roots) == (204, b"", [])


async def test_a_browser_shows_tokens_while_they_are_said(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trace: Trace
) -> None:
    """The first words of two parallel nodes stand there while both models hold their breath; after the end no run begins."""
    model = HeldModel(monkeypatch)

    async with browsing(tmp_path) as tab:
        await tab.open(url)
        await tab.evaluate(f"document.querySelector('textarea').value = {json.dumps(TEXT)}; start.click()")
        early = await tab.when("answers.children.length == 4 && answers.innerText", PATIENCE_S)
        model.go_on.set()
        await tab.when("status.textContent == 'Done.'", PATIENCE_S)
        shown = dict(await tab.evaluate("[...answers.querySelectorAll('h2')].map((h) => [h.innerText, h.nextSibling.innerText])"))
        link = await tab.evaluate("trace.textContent")
        is_closed = await tab.evaluate("source.readyState == EventSource.CLOSED && !start.disabled && stop.disabled")

    assert early.split() == ["find_key_words", "night,", "summarize", "Owls"]
    assert list(shown) == ["find_key_words", "summarize", "choose", "shorten"]
    assert (shown["summarize"], shown["shorten"]) == (TEXT, "Mice hide by day")
    (trace_id,) = trace.trace_ids
    assert link == f"tracegraph trace {trace_id:032x}"
    assert is_closed


async def test_a_browser_s_stop_button_stops_the_run(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It closes the connection, which the server sees."""
    model = HeldModel(monkeypatch)

    async with browsing(tmp_path) as tab:
        await tab.open(url)
        await tab.evaluate("start.click()")
        await tab.when("answers.children.length == 4", PATIENCE_S)
        await tab.evaluate("stop.click()")
        async with asyncio.timeout(PATIENCE_S):
            await model.stopped.wait()
        status = await tab.evaluate("status.textContent")

    assert status == "Stopped."


async def test_a_browser_shows_why_a_run_failed(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error's words, and the end that comes after it does not wipe them."""

    def fail(state: State) -> State:
        raise ValueError("boom")

    monkeypatch.setattr(sse_server, "graph", chain(fail=fail))

    async with browsing(tmp_path) as tab:
        await tab.open(url)
        await tab.evaluate("start.click()")
        await tab.when("!start.disabled", PATIENCE_S)
        status = await tab.evaluate("status.textContent")

    assert status == "boom"
