"""Graphs inside a run have handles and lifecycle events, at the level where they are."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from run_faces import Face, MuxFace, play, with_run
from small_graphs import THREAD, State, chain, parallel, saving, says

from tracegraph.errors import GraphDrained, GraphInterrupt
from tracegraph.runtime import RunControl
from tracegraph.stream import LifecycleTransformer, SubgraphTransformer, UpdatesTransformer, ValuesTransformer
from tracegraph.types import Command, interrupt


def asks(state: State) -> State:
    return {"xs": [interrupt("who?")]}


def fails(state: State) -> State:
    raise LookupError("mine")


async def handles_of(run: Face) -> list[Face]:
    """Read the handles to the end."""
    return [run.face(handle) for handle in await run.rest(run.subgraphs)]


def test_a_handle_is_a_run_of_its_own(colour: Colour) -> None:
    """Its projections are those of its graph; its output is there when it ends, while the run goes on."""
    ran: list[str] = []

    def after(state: State) -> State:
        ran.append("after")
        return {"xs": ["after"]}

    async def body(run: Face) -> Any:
        handles = run.begin(run.subgraphs)
        handle = run.face(await run.one(handles))
        assert (handle.status, handle.graph_name, handle.error) == ("started", "sub", None)
        assert handle.path == (f"sub:{handle.trigger_call_id}",)
        values, updates = run.begin(handle.values), run.begin(handle.updates)
        output = await handle.output()
        assert (handle.status, ran) == ("completed", [])
        return output, await run.rest(values), await run.rest(updates), await run.rest(handles), await run.output()

    app = chain(before=says("before"), sub=chain(a=says("a"), b=says("b")), after=after)
    output, values, updates, more, whole = with_run(colour, app, {"xs": []}, body, transformers=[UpdatesTransformer])

    assert output == {"xs": ["before", "a", "b"]}
    assert [value["xs"][1:] for value in values] == [["a"], ["a", "b"]]
    assert updates == [{"a": {"xs": ["a"]}}, {"b": {"xs": ["b"]}}]
    assert more == []
    assert whole["xs"][-1] == "after"


def test_handles_have_handles(colour: Colour) -> None:
    """Lifecycle events of the run tell of all levels, those of a handle of what is below it."""

    async def body(run: Face) -> Any:
        lifecycle = run.begin(run.lifecycle)
        mid = run.face(await run.one(run.begin(run.subgraphs)))
        inner_lifecycle = run.begin(mid.lifecycle)
        leaf = run.face(await run.one(run.begin(mid.subgraphs)))
        output = await leaf.output()
        await run.output()
        return output, leaf.path, await run.rest(inner_lifecycle), await run.rest(lifecycle)

    app = chain(mid=chain(leaf=chain(a=says("a"))))
    output, path, inner, everything = with_run(colour, app, {"xs": ["x"]}, body)

    assert output == {"xs": ["x", "a"]}
    assert [segment.partition(":")[0] for segment in path] == ["mid", "leaf"]
    assert [(p["event"], len(p["namespace"])) for p in inner] == [("started", 2), ("completed", 2)]
    assert [(p["event"], len(p["namespace"])) for p in everything] == [
        ("started", 1),
        ("started", 2),
        ("completed", 2),
        ("completed", 1),
    ]


def test_a_failed_graph_has_its_error_and_so_have_its_readers(colour: Colour) -> None:
    """As text: the exception itself is the run's."""

    async def body(run: Face) -> Any:
        lifecycle, handles = run.begin(run.lifecycle), run.begin(run.subgraphs)
        handle = run.face(await run.one(handles))
        with pytest.raises(RuntimeError, match="mine"):
            await run.rest(handle.values)
        with pytest.raises(RuntimeError, match="mine"):
            await handle.output()
        with pytest.raises(LookupError, match="mine"):
            await run.rest(handles)
        last = [await run.one(lifecycle) for _ in range(2)][-1]
        return handle.status, handle.error, last["event"], last["error"]

    found = with_run(colour, chain(sub=chain(a=says("a"), fails=fails)), {"xs": []}, body)

    assert found == ("failed", "mine", "failed", "mine")


def test_a_failure_that_is_caught_leaves_the_run_alone(colour: Colour) -> None:
    """A node that calls a graph may go on without it."""
    inner = chain(fails=fails)

    def calls(state: State) -> State:
        with pytest.raises(LookupError):
            inner.invoke({"xs": []})
        return {"xs": ["fine"]}

    async def acalls(state: State) -> State:
        with pytest.raises(LookupError):
            await inner.ainvoke({"xs": []})
        return {"xs": ["fine"]}

    async def body(run: Face) -> Any:
        handle = (await handles_of(run))[0]
        return handle.graph_name, handle.status, await run.output()

    app = chain(calls=acalls if colour.name == "async" else calls)

    assert with_run(colour, app, {"xs": []}, body) == ("calls", "completed", {"xs": ["fine"]})


def test_a_graph_that_pauses_is_interrupted(colour: Colour) -> None:
    """Its handle has the question; the next run has a handle of its own."""
    app = chain(saving(), sub=chain(a=says("a"), asks=asks))

    async def body(run: Face) -> Any:
        handle = (await handles_of(run))[0]
        questions = [question.value for question in await handle.interrupts()]
        return handle.status, questions, await handle.output()

    paused = with_run(colour, app, {"xs": []}, body, THREAD)
    resumed = with_run(colour, app, Command(resume="me"), body, THREAD)

    assert paused == ("interrupted", ["who?"], {"xs": ["a"]})
    assert resumed == ("completed", [], {"xs": ["a", "me"]})


def test_a_graph_that_is_asked_to_stop_is_drained(colour: Colour) -> None:
    """The run says so to all its readers."""
    control = RunControl()

    def stops(state: State) -> State:
        control.request_drain("bye")
        return {"xs": ["stops"]}

    async def body(run: Face) -> Any:
        handle = run.face(await run.one(run.begin(run.subgraphs)))
        lifecycle = run.begin(run.lifecycle)
        output = await handle.output()
        with pytest.raises(GraphDrained, match="bye"):
            await run.output()
        return handle.status, output, (await run.one(lifecycle))["event"]

    app = chain(saving(), sub=chain(stops=stops, later=says("later")))

    assert with_run(colour, app, {"xs": []}, body, THREAD, control=control) == ("drained", {"xs": ["stops"]}, "drained")


def test_graphs_side_by_side_have_a_handle_each(colour: Colour) -> None:
    """Each sees its own, whatever the order of their parts."""

    async def body(run: Face) -> Any:
        values = {}
        handles = run.begin(run.subgraphs)
        for _ in range(2):
            handle = run.face(await run.one(handles))
            values[handle.graph_name] = (handle, run.begin(handle.run))
        await run.output()
        events = {name: await run.rest(log) for name, (_, log) in values.items()}
        assert all(tuple(e["params"]["namespace"]) == values[name][0].path for name, es in events.items() for e in es)
        return {name: (await handle.output())["xs"] for name, (handle, _) in values.items()}

    app = parallel(one=chain(a=says("a"), b=says("b")), two=chain(c=says("c"), d=says("d")))

    assert with_run(colour, app, {"xs": []}, body) == {"one": ["a", "b"], "two": ["c", "d"]}


# --- by hand: what small graphs do not bring about -----------------------------------------------------------------


def started(node: str, task_id: str, given: Any = None, **more: Any) -> dict[str, Any]:
    return {"id": task_id, "name": node, "input": given, "triggers": (), **more}


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [(None, "completed", None), (GraphDrained(), "drained", None), (GraphInterrupt(), "interrupted", None)]
    + [(LookupError("mine"), "failed", "mine")],
)
def test_graphs_that_are_open_at_the_end_share_the_run_s(
    colour: Colour, error: BaseException | None, status: str, text: str | None
) -> None:
    """The innermost end first."""

    async def body() -> Any:
        face = MuxFace(colour, LifecycleTransformer, SubgraphTransformer, ValuesTransformer)
        lifecycle = face.face.begin(face.mux.extensions["lifecycle"])
        handles = face.face.begin(face.mux.extensions["subgraphs"])
        await face.push("tasks", started("in", "2"), "a:1")
        await face.push("tasks", started("leaf", "3"), "a:1", "in:2")
        handle = await face.face.one(handles)
        await (face.close() if error is None else face.fail(error))
        ends = [await face.face.one(lifecycle) for _ in range(4)][2:]
        return [(e["event"], len(e["namespace"]), e.get("error")) for e in ends], handle.status, handle.error

    assert play(colour, body()) == ([(status, 2, text), (status, 1, text)], status, text)


def test_an_agent_behind_a_tool_call_is_named_and_says_so(colour: Colour) -> None:
    """Whether the call came alone or with the state around it."""
    call = {"name": "ask", "args": {}, "id": "call-1", "type": "tool_call"}

    async def body(given: Any) -> Any:
        face = MuxFace(colour, LifecycleTransformer)
        lifecycle = face.face.begin(face.mux.extensions["lifecycle"])
        await face.push("tasks", started("tools", "1", given))
        await face.push("tasks", started("model", "2", metadata={"lc_agent_name": "helper"}), "tools:1")
        return await face.face.one(lifecycle)

    for given in (call, {"__type": "tool_call_with_context", "tool_call": call, "state": {}}):
        assert play(colour, body(given)) == {
            "event": "started",
            "namespace": ["tools:1"],
            "graph_name": "helper",
            "trigger_call_id": "1",
            "cause": {"type": "toolCall", "tool_call_id": "call-1"},
        }
    for given in ({"id": "no call"}, {"tool_call": "none"}, "text", None):
        assert "cause" not in play(colour, body(given))


def test_a_graph_without_an_id_is_not_followed(colour: Colour) -> None:
    """Nothing would tell when it ends."""

    async def body() -> Any:
        face = MuxFace(colour, LifecycleTransformer, SubgraphTransformer)
        lifecycle = face.face.begin(face.mux.extensions["lifecycle"])
        await face.push("tasks", started("leaf", "2"), "memory")
        await face.close()
        return await face.face.rest(lifecycle)

    assert play(colour, body()) == []
