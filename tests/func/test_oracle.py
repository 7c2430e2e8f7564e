"""The same functions on LangGraph and here: parts, states, history."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")

THREAD = {"configurable": {"thread_id": "t"}}


class Names:
    """What these programs need of a library."""

    def __init__(self, library: str) -> None:
        func, types = import_module(f"{library}.func"), import_module(f"{library}.types")
        self.entrypoint, self.task, self.Command, self.interrupt = func.entrypoint, func.task, types.Command, types.interrupt
        self.saver = import_module(f"{library}.checkpoint.memory").InMemorySaver()


def _asks(names: Names) -> Any:
    @names.task
    def add(x: int) -> int:
        return x + 1

    @names.task
    def ask(x: int) -> Any:
        return names.interrupt({"for": x})

    @names.entrypoint(checkpointer=names.saver)
    def flow(x: int, *, previous: Any = None) -> Any:
        one = add(x).result()
        two = ask(one).result()
        return names.entrypoint.final(value=[one, two, previous], save=one)

    return flow, [1, names.Command(resume="yes"), 5, names.Command(resume="no")]


def _calls(names: Names) -> Any:
    @names.task
    def inner(x: int) -> int:
        return x * 2

    @names.task(name="middle")
    def calls(x: int) -> int:
        return inner(x).result() + 1

    @names.entrypoint(checkpointer=names.saver)
    def flow(xs: list[int]) -> Any:
        return {"found": [calls(x).result() for x in xs]}

    return flow, [[1, 2], [], [3]]


def _fails(names: Names) -> Any:
    tries: list[int] = []

    @names.task
    def one(x: int) -> int:
        return x

    @names.task
    def fragile(x: int) -> int:
        tries.append(x)
        if len(tries) == 1:
            raise ValueError("broken")
        return -x

    @names.entrypoint(checkpointer=names.saver)
    def flow(x: int) -> Any:
        return [one(x).result(), fragile(x).result()]

    return flow, [7, None]


def _seen(names: Names, program: Any, mode: str) -> list[Any]:
    app, calls = program(names)
    found: list[Any] = []
    for given in calls:
        try:
            found += [_plain(part) for part in app.stream(given, THREAD, stream_mode=mode)]
        except ValueError as error:
            found.append(str(error))
        now = app.get_state(THREAD)
        found.append((now.values, now.next, [(task.name, task.path, task.result, _plain(task.interrupts)) for task in now.tasks]))
    for past in app.get_state_history(THREAD):
        tasks = [(task.name, task.result, _plain(task.interrupts)) for task in past.tasks]
        found.append((past.values, past.next, past.metadata["source"], past.metadata["step"], tasks))
    app.update_state(THREAD, "updated")
    found.append((app.get_state(THREAD).values, app.get_state(THREAD).next))
    return found


def _plain(part: Any) -> str:
    return re.sub(r", id='\w+'(, response_schema=None)?", "", repr(part))


@pytest.mark.parametrize("mode", ["updates", "values"])
@pytest.mark.parametrize("program", [_asks, _calls, _fails])
def test_the_same_as_langgraph(program: Any, mode: str) -> None:
    assert _seen(Names("tracegraph"), program, mode) == _seen(Names("langgraph"), program, mode)


def test_the_same_drawing() -> None:
    nodes = []
    for library in ("tracegraph", "langgraph"):
        app, _ = _calls(Names(library))
        drawn = app.get_graph()
        nodes.append((list(drawn.nodes), [(edge.source, edge.target) for edge in drawn.edges]))
    assert nodes[0] == nodes[1]
