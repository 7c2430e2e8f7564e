"""A call of a tool is a handle: what the tool emits while it works, and what it returns."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from langchain_core.tools import tool
from run_faces import Face, MuxFace, play, with_run
from small_graphs import chain

from tracegraph.messages import ToolMessage
from tracegraph.stream import ToolCallTransformer


def event(kind: str, call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"event": kind, "tool_call_id": call_id, **more}


async def begun(colour: Colour) -> tuple[MuxFace, Any]:
    """Return a mux with one call under way, and the handle of the call."""
    face = MuxFace(colour, ToolCallTransformer)
    handles = face.face.begin(face.mux.extensions["tool_calls"])
    await face.push("tools", event("tool-started", tool_name="add", input={"x": 1}))
    await face.push("tools", event("tool-started", "elsewhere", tool_name="add"), "sub:1")
    return face, await face.face.one(handles)


def test_a_handle_grows_with_its_call(colour: Colour) -> None:
    """Of a tool message the content is the output."""

    async def body() -> Any:
        face, call = await begun(colour)
        deltas = face.face.begin(call)
        assert (call.tool_call_id, call.tool_name, call.input, call.completed) == ("c1", "add", {"x": 1}, False)
        await face.push("tools", event("tool-output-delta", delta="a"))
        await face.push("tools", event("tool-output-delta", "unknown", delta="b"))
        await face.push("tools", event("tool-finished", output=ToolMessage("two", tool_call_id="c1")))
        await face.push("tools", event("tool-finished", output="again"))
        return await face.face.rest(deltas), call.output, call.error, call.completed

    assert play(colour, body()) == (["a"], "two", None, True)


def test_a_tool_that_fails_has_an_error_and_no_output(colour: Colour) -> None:
    """Its deltas end like any others."""

    async def body() -> Any:
        face, call = await begun(colour)
        deltas = face.face.begin(call)
        await face.push("tools", event("tool-error", message="bad"))
        return await face.face.rest(deltas), call.output, call.error, call.completed

    assert play(colour, body()) == ([], None, "bad", True)


@pytest.mark.parametrize(("error", "text"), [(None, None), (LookupError("mine"), "mine")])
def test_calls_that_are_open_at_the_end_end_with_the_run(colour: Colour, error: BaseException | None, text: str | None) -> None:
    """A tool that paused has no end of its own."""

    async def body() -> Any:
        face, call = await begun(colour)
        await (face.close() if error is None else face.fail(error))
        return await face.face.rest(call), call.output, call.error, call.completed

    assert play(colour, body()) == ([], None, text, True)


def test_tools_called_in_a_node_have_handles(colour: Colour) -> None:
    """The input is without what was injected, the output is what came back."""

    @tool
    def double(x: int) -> int:
        """Return twice as much."""
        return 2 * x

    @tool
    async def adouble(x: int) -> int:
        """Return twice as much."""
        return 2 * x

    def node(state: Any) -> Any:
        return {"n": double.invoke({"x": 2})}

    async def anode(state: Any) -> Any:
        return {"n": await adouble.ainvoke({"x": 2})}

    async def body(run: Face) -> Any:
        (call,) = await run.rest(run.tool_calls)
        return call.tool_name.removeprefix("a"), call.input, call.output, await run.output()

    app = chain(node=anode if colour.name == "async" else node)
    found = with_run(colour, app, {"xs": []}, body, transformers=[ToolCallTransformer])

    assert found == ("double", {"x": 2}, 4, {"xs": [], "n": 4})
