"""Questions of a run are kept: beside what else goes wrong, beside other questions, and while the caller adds to the state."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from colours import Colour
from small_graphs import THREAD, State, bounded, chain, parallel, saving, values_of

from tracegraph.errors import InvalidUpdateError
from tracegraph.types import Command, interrupt


def test_updates_of_a_paused_thread_add_up(colour: Colour) -> None:
    """Each command with an update joins the ones before it; the answer comes after all of them."""
    app = chain(saving(), ask=lambda state: {"xs": [interrupt("q")]})
    colour.invoke(app, {"xs": [0]}, THREAD)

    colour.invoke(app, Command(update={"xs": ["first"]}), THREAD)
    colour.invoke(app, Command(update={"xs": ["second"]}), THREAD)

    assert colour.invoke(app, Command(resume="A"), THREAD) == {"xs": [0, "first", "second", "A"]}


def test_a_question_outlives_writes_that_clash_beside_it(colour: Colour) -> None:
    """It is shown and stored; that its siblings' writes clash comes out when it has been answered."""
    others_wrote = threading.Barrier(3)

    def write(value: int) -> Any:
        def body(state: State) -> State:
            others_wrote.wait(10)
            return {"n": value}

        return body

    def ask(state: State) -> State:
        if len(answers) == 0:
            others_wrote.wait(10)
        return {"xs": [interrupt("q")]}

    answers: list[str] = []
    app = parallel(saving(), a=write(1), b=write(2), c=ask)

    found = bounded(lambda: colour.invoke(app, {"xs": []}, THREAD))
    kept = {one.name: values_of(one.interrupts) for one in app.get_state(THREAD).tasks}
    answers.append("A")

    assert values_of(found["__interrupt__"]) == ["q"]
    assert kept["c"] == ["q"]
    with pytest.raises(InvalidUpdateError, match="'n'"):
        bounded(lambda: colour.invoke(app, Command(resume="A"), THREAD))


def test_all_questions_of_the_child_runs_of_one_node_are_shown() -> None:
    """Each of two child runs has paused: both ask."""

    async def ask(state: State) -> State:
        return {"xs": [interrupt(f"q{state['n']}")]}

    child = chain(ask=ask)

    async def node(state: State) -> State:
        runs = [child.ainvoke({"n": number}) for number in (1, 2)]
        found = await asyncio.gather(*runs, return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return {"xs": [one["xs"] for one in found if not isinstance(one, BaseException)]}

    app = chain(saving(), node=node)

    found = bounded(lambda: asyncio.run(app.ainvoke({"xs": []}, THREAD)))
    assert values_of(found["__interrupt__"]) == ["q1", "q2"]
