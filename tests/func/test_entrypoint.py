"""What an entrypoint returns, remembers and repeats (spec 11)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest
from functions import Way
from pydantic import BaseModel
from small_graphs import PATIENCE_S, THREAD, bounded, wait_for

from tracegraph import Command, InMemorySaver, Runtime, StateGraph, entrypoint, get_config, get_stream_writer, interrupt, task
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.config import RunnableConfig
from tracegraph.constants import START
from tracegraph.errors import EmptyInputError, GraphDefinitionError, InvalidAnswerError
from tracegraph.types import CachePolicy, RetryPolicy

Steps = Generator[Any, Any, Any]


@task
def double(x: int) -> int:
    return x * 2


# --- the result, and what the next run gets of it ----------------------------------------------------------------


def test_previous_is_what_the_last_run_returned(way: Way) -> None:
    @way.entrypoint(checkpointer=InMemorySaver())
    def count(by: int, *, previous: int | None = None) -> Steps:
        yield double(0)
        return (previous or 0) + by

    assert [way.invoke(count, by, THREAD) for by in (1, 10, 100)] == [1, 11, 111]


def test_final_returns_one_thing_and_saves_another(way: Way) -> None:
    @way.entrypoint(checkpointer=InMemorySaver())
    def swap(given: int, *, previous: Any, runtime: Runtime[Any]) -> Steps:
        yield double(0)
        assert runtime.previous is previous
        return entrypoint.final(value=previous, save=given)

    assert [way.invoke(swap, given, THREAD) for given in (1, 2, 3)] == [None, 1, 2]


def test_without_a_saver_nothing_is_previous(way: Way) -> None:
    @way.entrypoint()
    def first(given: int, *, previous: Any) -> Steps:
        return previous, (yield double(given))

    assert [way.invoke(first, 2) for _ in range(2)] == [(None, 4)] * 2


def test_none_is_a_result(way: Way) -> None:
    @way.entrypoint(checkpointer=InMemorySaver())
    def nothing(given: int) -> Steps:
        yield double(given)

    assert way.invoke(nothing, 1, THREAD) is None
    assert way.stream(nothing, 1, THREAD) == [{"double": 2}, {"nothing": None}]
    assert way.stream(nothing, 1, THREAD, stream_mode="values") == [None]
    assert way.invoke(nothing, None, THREAD) is None
    with pytest.raises(EmptyInputError):
        way.invoke(nothing, None, {"configurable": {"thread_id": "fresh"}})


def test_any_object_is_an_input(way: Way) -> None:
    marker = object()

    @way.entrypoint()
    def echo(given: object) -> Steps:
        yield double(1)
        return [given is marker]

    assert way.invoke(echo, marker) == [True]


def test_the_thread_shows_the_last_result_until_a_run_completes(way: Way) -> None:
    @way.entrypoint(checkpointer=InMemorySaver())
    def ask(given: int, *, previous: Any) -> Steps:
        yield double(given)
        return [given, previous, interrupt("?")]

    way.invoke(ask, 1, THREAD)
    assert (ask.get_state(THREAD).values, ask.get_state(THREAD).next) == (None, ("ask",))
    way.invoke(ask, Command(resume="a"), THREAD)
    way.invoke(ask, 2, THREAD)
    assert (ask.get_state(THREAD).values, ask.get_state(THREAD).next) == ([1, None, "a"], ("ask",))
    assert way.invoke(ask, Command(resume="b"), THREAD) == [2, [1, None, "a"], "b"]
    steps = [(found.metadata["source"], found.metadata["step"]) for found in ask.get_state_history(THREAD)]
    assert steps == [("loop", 2), ("input", 1), ("loop", 0), ("input", -1)]
    assert ask.get_state(THREAD).tasks == ()


def test_an_update_counts_as_a_return(way: Way) -> None:
    @way.entrypoint(checkpointer=InMemorySaver())
    def last(given: int, *, previous: Any) -> Steps:
        yield double(given)
        return previous

    way.invoke(last, 1, THREAD)
    last.update_state(THREAD, 7)
    assert last.get_state(THREAD).values == 7
    assert way.invoke(last, 1, THREAD) == 7
    last.update_state(THREAD, entrypoint.final(value="shown", save="kept"))
    assert last.get_state(THREAD).values == "shown"
    assert way.invoke(last, 1, THREAD) == "kept"


# --- tasks: run once, whatever happens ---------------------------------------------------------------------------


class Counted:
    """Tasks that count how often they were made."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def of(self, name: str, body: Any = None, **options: Any) -> Any:
        def run(x: Any) -> Any:
            self.made.append(name)
            return x if body is None else body(x)

        return task(name=name, **options)(run)


def test_a_failed_run_goes_on_where_it_failed(way: Way) -> None:
    counted = Counted()
    is_broken = [True]

    def fragile(x: int) -> int:
        if is_broken[0]:
            raise ValueError("broken")
        return x + 1

    first, second = counted.of("first"), counted.of("second", fragile)

    @way.entrypoint(checkpointer=InMemorySaver())
    def two(given: int) -> Steps:
        counted.made.append("body")
        return (yield second((yield first(given))))

    with pytest.raises(ValueError, match="broken") as caught:
        way.invoke(two, 1, THREAD)
    assert "while running node 'second'" in caught.value.__notes__[0]
    assert "while running node 'two'" in caught.value.__notes__[1]
    is_broken[0] = False
    assert way.invoke(two, None, THREAD) == 2
    assert counted.made == ["body", "first", "second", "body", "second"]


def test_a_task_before_a_question_is_not_made_again(way: Way) -> None:
    counted = Counted()
    first, asking = counted.of("first"), counted.of("asking", interrupt)

    @way.entrypoint(checkpointer=InMemorySaver())
    def ask(given: int) -> Steps:
        one = yield first(given)
        mine = interrupt("mine?")
        return [one, mine, (yield asking("its?"))]

    assert way.invoke(ask, 1, THREAD)["__interrupt__"][0].value == "mine?"
    assert way.invoke(ask, Command(resume="a"), THREAD)["__interrupt__"][0].value == "its?"
    assert way.invoke(ask, Command(resume="b"), THREAD) == [1, "a", "b"]
    assert counted.made == ["first", "asking", "asking"]


def test_a_resumed_call_gives_the_saved_result_whatever_its_arguments(way: Way) -> None:
    """Ids say where a call is, not what it is given; a call of another name in its place is a new one."""
    counted = Counted()
    one, other = counted.of("one"), counted.of("other")
    is_renamed = [False]

    @way.entrypoint(checkpointer=InMemorySaver())
    def ask(given: Any) -> Steps:
        called = other if is_renamed[0] else one
        found = yield called(len(counted.made))
        interrupt("?")
        interrupt("??")
        return found

    way.invoke(ask, 0, THREAD)
    assert counted.made == ["one"]
    way.invoke(ask, Command(resume=1), THREAD)
    assert counted.made == ["one"]
    is_renamed[0] = True
    assert way.invoke(ask, Command(resume=2), THREAD) == 1
    assert counted.made == ["one", "other"]


def test_two_questions_at_once_are_answered_by_id(way: Way) -> None:
    @task
    def ask(what: str) -> Any:
        return interrupt(what)

    @way.entrypoint(checkpointer=InMemorySaver())
    def both(given: int) -> Steps:
        futures = [ask("a"), ask("b")]
        return [(yield futures[0]), (yield futures[1])]

    way.invoke(both, 1, THREAD)
    asked = {question.value: question.id for question in both.get_state(THREAD).interrupts}
    assert asked.keys() <= {"a", "b"}
    answers = {"a": 1, "b": 2}
    found = way.invoke(both, Command(resume={key: answers[value] for value, key in asked.items()}), THREAD)
    while "__interrupt__" in found:
        found = way.invoke(both, Command(resume={q.id: answers[q.value] for q in found["__interrupt__"]}), THREAD)
    assert found == [1, 2]


def test_a_retried_entrypoint_makes_only_what_is_missing(way: Way) -> None:
    """LangGraph makes all of it again (spec 7.3); a finished task is made once here."""
    counted = Counted()
    first = counted.of("first")

    @way.entrypoint(retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    def flaky(given: int) -> Steps:
        found = yield first(given)
        counted.made.append("body")
        if counted.made.count("body") < 3:
            raise ConnectionError
        return found

    assert way.invoke(flaky, 5) == 5
    assert counted.made == ["first", "body", "body", "body"]


def test_tasks_without_retries_of_their_own_get_the_entrypoints(way: Way) -> None:
    tries: dict[str, int] = {"own": 0, "inherited": 0}

    def failing(name: str) -> int:
        tries[name] += 1
        raise ConnectionError

    own = task(name="own", retry_policy=RetryPolicy(max_attempts=1))(failing)
    inherited = task(name="inherited")(failing)

    @way.entrypoint(retry_policy=RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2, retry_on=ConnectionError))
    def flow(given: int) -> Steps:
        for called in (own, inherited):
            with contextlib.suppress(ConnectionError):
                yield called(called.name)
        return dict(tries)

    assert way.invoke(flow, 1) == {"own": 1, "inherited": 2}


# --- calls -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 1, 2])
def test_a_waiting_caller_takes_no_place_of_max_concurrency(way: Way, limit: int | None) -> None:
    """Case D11: LangGraph hangs where the limit is no greater than the depth of the calls."""

    @task
    def inner(x: int) -> int:
        return x + 1

    middle = task(name="middle")(way.function(lambda x: _then(inner(x), lambda found: found * 10)))

    @way.entrypoint(checkpointer=InMemorySaver())
    def outer(given: int) -> Steps:
        futures = [middle(given), middle(given + 1)]
        return [(yield futures[0]), (yield futures[1])]

    config = {**THREAD, **({} if limit is None else {"max_concurrency": limit})}
    assert bounded(lambda: way.invoke(outer, 1, config)) == [20, 30]
    assert bounded(lambda: way.stream(outer, 1, config))[-1] == {"outer": [20, 30]}


def _then(future: Any, change: Any) -> Steps:
    return change((yield future))


def test_calls_run_side_by_side(way: Way) -> None:
    meeting = threading.Barrier(2)

    @task
    def meet(x: int) -> int:
        meeting.wait(PATIENCE_S)
        return x

    @way.entrypoint()
    def both(given: int) -> Steps:
        futures = [meet(1), meet(2)]
        return [(yield futures[1]), (yield futures[0])]

    assert way.invoke(both, 0) == [2, 1]


def test_what_nobody_waits_for_ends_with_the_run(way: Way) -> None:
    ended: list[str] = []
    may_end = threading.Event()

    @task
    def slow(x: int) -> None:
        wait_for(may_end)
        ended.append("slow")

    @task
    def failing(x: int) -> None:
        ended.append("failing")
        raise ValueError("nobody asked")

    @way.entrypoint()
    def leave(given: int) -> Steps:
        slow(1)
        failing(2)
        found = yield double(given)
        may_end.set()
        return found

    assert way.invoke(leave, 2) == 4
    assert sorted(ended) == ["failing", "slow"]


def test_an_async_task_needs_an_async_run() -> None:
    @task
    async def aio(x: int) -> int:
        return x

    @entrypoint()
    def flow(given: int) -> Any:
        return aio(given).result()

    with pytest.raises(RuntimeError, match="task 'aio' is async.*ainvoke"):
        flow.invoke(1)


def test_a_task_does_not_block_the_loop() -> None:
    is_blocked, loop_lives = threading.Event(), threading.Event()

    @task
    def blocking(x: int) -> int:
        is_blocked.set()
        wait_for(loop_lives)
        return x

    @entrypoint()
    async def flow(given: int) -> Any:
        future = blocking(given)
        await asyncio.to_thread(wait_for, is_blocked)
        loop_lives.set()
        return await future

    assert bounded(lambda: asyncio.run(flow.ainvoke(1))) == 1


def test_methods_classes_and_names() -> None:
    class Scale:
        def __init__(self, by: int) -> None:
            self.by = by

        def of(self, x: int) -> int:
            return x * self.by

        def __call__(self, x: int) -> int:
            return -x

    method, instance = task(Scale(3).of), task(Scale(0))

    @entrypoint()
    def flow(given: int) -> Any:
        return [method(given).result(), instance(given).result()]

    assert (method.name, instance.name) == ("of", "Scale")
    assert flow.stream(2).__class__.__name__ == "PartReader"
    assert list(flow.stream(2)) == [{"of": 6}, {"Scale": -2}, {"flow": [6, -2]}]


def test_parts_come_while_the_function_runs() -> None:
    has_read = threading.Event()

    @entrypoint()
    def flow(given: int) -> str:
        writer = get_stream_writer()
        writer("begun")
        double(given).result()
        wait_for(has_read)
        return "done"

    found: list[Any] = []
    for part in flow.stream(1, stream_mode=["custom", "updates"]):
        found.append(part)
        if part == ("updates", {"double": 2}):
            has_read.set()
    assert found == [("custom", "begun"), ("updates", {"double": 2}), ("updates", {"flow": "done"})]


def test_what_the_runtime_supplies_to_functions_and_tasks(way: Way) -> None:
    @dataclass
    class Context:
        factor: int

    @task
    def scaled(x: int, *, runtime: Runtime[Context], config: RunnableConfig, store, writer) -> Any:  # type: ignore[no-untyped-def]
        writer(("task", x))
        return [x * runtime.context.factor, config["metadata"]["langgraph_node"], store]

    @way.entrypoint(store={"s": 1}, context_schema=Context)
    def flow(given: int, config: RunnableConfig, *, runtime: Runtime[Context], writer) -> Steps:  # type: ignore[no-untyped-def]
        assert config["metadata"]["langgraph_node"] == "flow"
        assert runtime.context == Context(3)
        writer("flow")
        return (yield scaled(given))

    assert way.invoke(flow, 2, context={"factor": 3}) == [6, "scaled", {"s": 1}]
    assert way.stream(flow, 2, context={"factor": 3}, stream_mode="custom") == ["flow", ("task", 2)]


def test_a_task_knows_where_it_was_called() -> None:
    """Its namespace lies below its caller's, and a graph that it calls lies below its own."""
    seen: list[str] = []

    @entrypoint()
    def inner(x: int) -> int:
        seen.append(get_config()["configurable"]["checkpoint_ns"])
        return x

    @task
    def call(x: int) -> Any:
        seen.append(get_config()["configurable"]["checkpoint_ns"])
        return [inner.invoke(x), inner.invoke(x)]

    @entrypoint(checkpointer=InMemorySaver())
    def outer(x: int) -> Any:
        return call(x).result()

    assert outer.invoke(1, THREAD) == [1, 1]
    names = [["|".join(part.partition(":")[0] for part in ns.split("|"))] for ns in seen]
    assert names == [["outer|call"], ["outer|call|inner"], ["outer|call|1|inner"]]


# --- nesting -----------------------------------------------------------------------------------------------------


def test_a_question_in_an_entrypoint_inside_a_graph(way: Way) -> None:
    class State(BaseModel):
        n: int = 0

    counted = Counted()
    first = counted.of("first")

    @way.entrypoint()
    def inner(given: int) -> Steps:
        return (yield first(given)) + interrupt("how much?")

    def node(state: State) -> Any:
        return {"n": inner.invoke(state.n)}

    async def anode(state: State) -> Any:
        return {"n": await inner.ainvoke(state.n)}

    graph = StateGraph(State)
    graph.add_node("node", anode if way.name == "async function" else node)
    app = graph.add_edge(START, "node").compile(checkpointer=InMemorySaver())

    assert way.invoke(app, {"n": 1}, THREAD)["__interrupt__"][0].value == "how much?"
    assert way.invoke(app, Command(resume=5), THREAD) == {"n": 6}
    assert counted.made == ["first"]


def test_an_entrypoint_in_an_entrypoint(way: Way) -> None:
    @way.entrypoint()
    def inner(given: int) -> Steps:
        return (yield double(given)) + 1

    def outer(given: int) -> Any:
        return inner.invoke(given) + inner.invoke(given + 1)

    async def aouter(given: int) -> Any:
        return await inner.ainvoke(given) + await inner.ainvoke(given + 1)

    app = entrypoint(checkpointer=InMemorySaver())(outer if way.colour.name == "sync" else aouter)
    assert way.invoke(app, 1, THREAD) == 8


# --- definitions that cannot work --------------------------------------------------------------------------------


def test_an_entrypoint_needs_a_parameter() -> None:
    with pytest.raises(ValueError, match="'<lambda>' has no parameter for its input"):
        entrypoint()(lambda: 1)


def test_generators_are_refused() -> None:
    def gen(x: int) -> Any:
        yield x

    async def agen(x: int) -> Any:
        yield x

    for function in (gen, agen):
        with pytest.raises(NotImplementedError, match="generator"):
            entrypoint()(function)


def test_final_takes_two_types() -> None:
    def flow(x: int) -> entrypoint.final[int]:  # type: ignore[type-arg]
        return entrypoint.final(value=x, save=x)

    with pytest.raises(TypeError, match="arguments"):
        entrypoint()(flow)


def test_a_task_returns_one_value() -> None:
    def gen(x: int) -> Any:
        yield x

    with pytest.raises(TypeError, match="'gen' is a generator"):
        task(gen)


def test_final_needs_no_types() -> None:
    def flow(x: int) -> entrypoint.final:  # type: ignore[type-arg]
        return entrypoint.final(value=x, save=-x)

    app = entrypoint()(flow)
    assert (app.invoke(1), app.get_output_jsonschema()) == (1, {"title": "LangGraphOutput"})


def test_a_task_in_a_class_is_a_method() -> None:
    class Scale:
        by = 3

        @task
        def of(self, x: int) -> int:
            return x * self.by

    @entrypoint()
    def flow(x: int) -> Any:
        return Scale().of(x).result()

    assert (flow.invoke(2), Scale.of.name) == (6, "of")


def test_a_sync_function_has_no_time_limit() -> None:
    def flow(x: int) -> int:
        return x

    with pytest.raises(GraphDefinitionError, match="timeout") as caught:
        entrypoint(timeout=1)(flow)
    assert isinstance(caught.value, ValueError)


def test_unknown_options_are_named() -> None:
    with pytest.raises(TypeError, match="colour"):
        entrypoint(colour="red")
    with pytest.raises(TypeError, match="colour"):
        task(colour="red")(abs)
    with pytest.warns(DeprecationWarning, match="context_schema"):
        entrypoint(config_schema=dict)
    with pytest.warns(DeprecationWarning, match="retry_policy"):
        entrypoint(retry=RetryPolicy())
    with pytest.warns(DeprecationWarning, match="retry_policy"):
        task(retry=RetryPolicy(), cache_policy=CachePolicy())


# --- schemas -----------------------------------------------------------------------------------------------------


class Point(BaseModel):
    """A type that a strict serialiser does not know."""

    x: int


def test_schemas_are_the_annotations() -> None:
    @entrypoint()
    def plain(given: int, *, previous: Any = None) -> list[str]:
        return []

    @entrypoint()
    def split(given: Point) -> entrypoint.final[str, int]:
        return entrypoint.final(value="", save=1)

    @entrypoint()
    def bare(given):  # type: ignore[no-untyped-def]
        return entrypoint.final(value="", save=1)

    assert plain.get_input_jsonschema() == {"title": "LangGraphInput", "type": "integer"}
    assert plain.get_output_jsonschema()["items"] == {"type": "string"}
    assert split.get_input_jsonschema()["properties"] == {"x": {"title": "X", "type": "integer"}}
    assert split.get_output_jsonschema() == {"title": "LangGraphOutput", "type": "string"}
    assert split.channels["__previous__"].UpdateType is int
    assert bare.get_input_jsonschema() == {"title": "LangGraphInput"}
    assert split.get_input_schema() is Point
    assert split.get_output_schema().model_validate("a").root == "a"  # type: ignore[attr-defined]
    assert plain.get_context_jsonschema() is None


def test_annotations_that_cannot_be_resolved_are_any_type() -> None:
    def flow(given: Nowhere) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        return given

    class Flow:
        def __call__(self, given: int) -> str:
            return str(given)

    assert entrypoint()(flow).get_input_jsonschema() == {"title": "LangGraphInput"}
    app = entrypoint()(Flow())
    assert (app.invoke(1), list(app.nodes), app.get_output_jsonschema()["type"]) == ("1", ["Flow"], "string")


def test_a_strict_saver_knows_the_classes_of_the_annotations(way: Way) -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))

    def move(given: Point, *, previous: Point | None = None) -> Point:
        return Point(x=given.x + (previous.x if previous else 0))

    app = entrypoint(checkpointer=saver)(move)
    assert [way.invoke(app, Point(x=1), THREAD) for _ in range(2)] == [Point(x=1), Point(x=2)]


def test_an_answer_is_checked_before_it_is_stored(way: Way) -> None:
    @way.entrypoint(checkpointer=InMemorySaver())
    def ask(given: int) -> Steps:
        yield double(given)
        return interrupt("?", response_schema=int)

    way.invoke(ask, 1, THREAD)
    with pytest.raises(InvalidAnswerError):
        way.invoke(ask, Command(resume="no number"), THREAD)
    assert way.invoke(ask, Command(resume=4), THREAD) == 4
