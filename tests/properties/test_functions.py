"""Any function of task calls, whatever fails or asks on the way: the same result, and each finished call made once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from functions import Way
from hypothesis import given
from hypothesis import strategies as st

from tracegraph import Command, InMemorySaver, interrupt, task
from tracegraph.func import EntrypointGraph
from tracegraph.types import RetryPolicy

THREAD = {"configurable": {"thread_id": "t"}}
AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2)


@dataclass(frozen=True)
class Call:
    """A task call: how often it fails first, how often it asks, whether it calls another before, whether it is retried."""

    failures: int
    questions: int
    calls_another: bool
    is_retried: bool


calls = st.builds(Call, st.integers(0, 3), st.integers(0, 2), st.booleans(), st.booleans())
programs = st.lists(st.lists(calls, min_size=1, max_size=3), min_size=1, max_size=3)
"""Groups of calls; those of a group are made side by side."""
ways = st.sampled_from(["sync function", "sync function, async run", "async function"]).map(Way)


@dataclass
class Outside:
    """What the run does to the world, which is not undone when it fails."""

    tries: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)

    def work(self, name: str, call: Call) -> list[Any]:
        """Fail as often as the call is to fail, ask, then finish."""
        answers = [interrupt(f"{name}.{at}") for at in range(call.questions)]
        self.tries[name] += 1
        if self.tries[name] <= call.failures:
            raise ConnectionError(name)
        self.finished[name] += 1
        return [name, *answers]


def built(way: Way, program: list[list[Call]], outside: Outside, body_failures: int) -> EntrypointGraph:
    """Return the function of a program; its body fails *body_failures* times after its last group."""
    policies = {True: AT_ONCE, False: RetryPolicy(max_attempts=1)}

    def before(name: str) -> str:
        outside.finished[name] += 1
        return name

    helper = task(name="helper")(before)

    def body(name: str, call: Call) -> Generator[Any, Any, Any]:
        helped = [(yield helper(f"{name}.helper"))] if call.calls_another else []
        return helped + outside.work(name, call)

    tasks = {kept: task(name=f"work {kept}", retry_policy=policies[kept])(way.function(body)) for kept in (True, False)}

    @way.entrypoint(checkpointer=InMemorySaver(), retry_policy=AT_ONCE)
    def flow(start: str) -> Generator[Any, Any, Any]:
        found = [start]
        for at, group in enumerate(program):
            futures = [tasks[call.is_retried](f"{at}.{place}", call) for place, call in enumerate(group)]
            for future in futures:
                found += yield future
        outside.tries["body"] += 1
        if outside.tries["body"] <= body_failures:
            raise ConnectionError("body")
        return found

    return flow


def carried_through(way: Way, app: EntrypointGraph) -> Any:
    """Run, answer and go on after failures until there is a result."""
    given: Any = "start"
    for _ in range(200):
        try:
            found = way.invoke(app, given, THREAD)
        except ConnectionError:
            given = None
            continue
        if not (isinstance(found, dict) and "__interrupt__" in found):
            return found
        given = Command(resume={question.id: f"re {question.value}" for question in found["__interrupt__"]})
    raise AssertionError("the run never ended")


def expected(program: list[list[Call]]) -> list[Any]:
    """Return the result of a program that nothing goes wrong with."""
    found: list[Any] = ["start"]
    for at, group in enumerate(program):
        for place, call in enumerate(group):
            name = f"{at}.{place}"
            found += [f"{name}.helper"] if call.calls_another else []
            found += [name, *(f"re {name}.{number}" for number in range(call.questions))]
    return found


@given(ways, programs, st.integers(0, 3))
def test_a_function_ends_with_the_same_result_and_each_call_finished_once(
    way: Way, program: list[list[Call]], body_failures: int
) -> None:
    outside = Outside()
    app = built(way, program, outside, body_failures)

    assert carried_through(way, app) == expected(program)
    assert set(outside.finished.values()) <= {1}
    assert app.get_state(THREAD).next == ()
