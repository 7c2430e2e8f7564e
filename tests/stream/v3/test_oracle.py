"""The events of a run are LangGraph's, one for one."""

from __future__ import annotations

import operator
import re
import warnings
from importlib import import_module
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from run_faces import Face, with_run

MODES = ("updates", "custom", "checkpoints", "debug", "tasks")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class State(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]
    n: int


def graph_of(library: str) -> Any:
    """Return three levels of graphs: a writer of custom parts at the bottom, a question in the middle, a fan at the top."""
    graphs, types = import_module(f"{library}.graph"), import_module(f"{library}.types")
    writer = import_module(f"{library}.config").get_stream_writer

    def says(word: str) -> Any:
        return lambda state: {"xs": [word]}

    def writes(state: State) -> Any:
        writer()({"custom": state.get("n")})
        return {"n": 1}

    def asks(state: State) -> Any:
        return {"xs": [types.interrupt("who?")]}

    def chain(**bodies: Any) -> Any:
        made = graphs.StateGraph(State)
        made.add_sequence(list(bodies.items()))
        made.add_edge(graphs.START, next(iter(bodies)))
        return made

    inner = chain(leaf=says("leaf"), writes=writes).compile()
    mid = chain(inner=inner, asks=asks).compile()
    saver = import_module(f"{library}.checkpoint.memory").InMemorySaver()
    return chain(first=says("first"), mid=mid, last=says("last")).compile(checkpointer=saver)


def shown(value: Any, names: dict[str, str]) -> Any:
    """Return a payload without what differs from run to run: ids are numbered as they come."""
    if isinstance(value, dict):
        skipped = {"timestamp", "ts", "response_schema"}
        # In one order, for ids are numbered on the way.
        return {shown(key, names): shown(value[key], names) for key in sorted(value, key=str) if key not in skipped}
    if isinstance(value, (list, tuple)):
        return [shown(item, names) for item in value]
    if isinstance(value, str):
        return _UUID.sub(lambda found: names.setdefault(found.group(), f"#{len(names)}"), value)
    if type(value).__name__ == "Interrupt":
        return ("Interrupt", value.value)
    return value


def events_of(colour: Colour, library: str) -> list[list[Any]]:
    """Return the main logs of a run that pauses and of the one that goes on, and the opt-in projections."""
    app, config = graph_of(library), {"configurable": {"thread_id": "t"}}
    streams, types = import_module(f"{library}.stream"), import_module(f"{library}.types")
    extra = [getattr(streams, f"{mode.capitalize()}Transformer") for mode in MODES]
    names: dict[str, str] = {}

    async def body(run: Face) -> list[Any]:
        projections = {mode: run.begin(getattr(run, mode)) for mode in (*MODES, "values", "lifecycle")}
        events = [dict(event, params=dict(event["params"])) for event in await run.rest(run.run)]
        found = [{mode: await run.rest(items)} for mode, items in projections.items()]
        return [*events, *found, await run.output(), await run.interrupted(), await run.interrupts()]

    logs = []
    for given in ({"xs": ["x"]}, types.Command(resume="me")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LangGraph's says that this is experimental
            logs.append(shown(with_run(colour, app, given, body, config, transformers=extra), names))
    return logs


def without_question_ids(value: Any) -> Any:
    """Return a payload with the ids of questions, which are hashes, replaced."""
    if isinstance(value, dict):
        is_question = "value" in value and "id" in value
        return {k: "?" if is_question and k == "id" else without_question_ids(item) for k, item in value.items()}
    return [without_question_ids(item) for item in value] if isinstance(value, (list, tuple)) else value


def test_events_and_projections_are_the_oracle_s(colour: Colour) -> None:
    """Their order, numbers, namespaces and payloads, over a pause and a resume, with every mode switched on."""
    ours, theirs = (without_question_ids(events_of(colour, library)) for library in ("tracegraph", "langgraph"))

    for mine, its in zip(ours, theirs, strict=True):
        assert mine == its
    assert len(ours[0]) > 50


@pytest.mark.parametrize("library", ["tracegraph", "langgraph"])
def test_errors_are_the_oracle_s(colour: Colour, library: str) -> None:
    """The kinds of errors of wrong calls are the same."""
    app = graph_of(library)
    config: Any = {"configurable": {"thread_id": "t"}}
    streams = import_module(f"{library}.stream")

    class Wrong(streams.StreamTransformer):  # type: ignore[misc, name-defined]
        def init(self) -> Any:
            return {"values": 1}

    async def body(run: Face) -> None:
        run.begin(run.values)
        with pytest.raises(RuntimeError):
            run.begin(run.values)
        with pytest.raises(TypeError):
            (iter if run.is_async else aiter)(run.messages)
        with pytest.raises(AttributeError):
            _ = run.run.nope

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for error, options in ((TypeError, {"stream_mode": "values"}), (TypeError, {"transformers": [1]})):
            with pytest.raises(error):
                with_run(colour, app, {}, body, config, **options)
        with pytest.raises(ValueError):
            with_run(colour, app, {}, body, config, transformers=[Wrong])
        with_run(colour, app, {"xs": []}, body, config)
