"""Events become calls of handler methods: the run tree of spec 10.8 and the rules of 10.7 and 10.9, fed by hand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from recorded import (
    CHILD,
    ROOT,
    Recorder,
    attempt_ended,
    attempt_started,
    branch_ended,
    branch_started,
    run_ended,
    run_started,
    task_ended,
    task_started,
)

from tracegraph.callbacks.base import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    FatalObserverError,
    GraphCallbackHandler,
    GraphInterruptEvent,
    GraphResumeEvent,
)
from tracegraph.callbacks.dispatch import HandlerObserver
from tracegraph.callbacks.runs import branch_run_id, node_run_id
from tracegraph.current import CURRENT
from tracegraph.errors import GraphDrained, GraphInterrupt, GraphRecursionError, ParentCommand
from tracegraph.events import (
    CheckpointSaved,
    CustomEmitted,
    Event,
    Interrupted,
    MemoryEnded,
    MemoryStarted,
    ModelEnded,
    ModelStarted,
    ModelToken,
    Resumed,
    RetrievalEnded,
    RetrievalStarted,
    RunEnded,
    RunStarted,
    StateUpdated,
    SuperstepEnded,
    SuperstepStarted,
    TaskPlanned,
    TaskStarted,
    ToolEnded,
    ToolStarted,
    every_kind,
    get_args,
)
from tracegraph.types import Interrupt

NODE = node_run_id(ROOT, "id-a")
CALL = UUID(int=77)


def observe(observer: HandlerObserver, *events: Event) -> None:
    for event in events:
        pending = observer.observe(event)
        if pending is not None:
            asyncio.run(wait(pending))


async def wait(pending: Any) -> None:
    await pending


def told(*events: Event) -> Recorder:
    recorder = Recorder()
    observe(HandlerObserver([recorder]), *events)
    return recorder


# Graph and node runs


def test_graph_and_node_are_nested_runs_and_end_in_reverse() -> None:
    """Ids, parents, names, inputs and outputs of the plainest run."""
    recorder = told(run_started(), task_started(), task_ended(), run_ended())

    assert recorder.names() == ["on_chain_start", "on_chain_start", "on_chain_end", "on_chain_end"]
    graph, node = recorder.of("on_chain_start")
    assert (graph["run_id"], graph["parent_run_id"], graph["name"]) == (ROOT, None, "LangGraph")
    assert (node["run_id"], node["parent_run_id"], node["name"]) == (NODE, ROOT, "a")
    assert [args for _, args, _ in recorder.calls] == [(None, {"x": 0}), (None, {"x": 0}), ({"x": 1},), ({"x": 1},)]
    assert [end["run_id"] for end in recorder.of("on_chain_end")] == [NODE, ROOT]
    assert [end["parent_run_id"] for end in recorder.of("on_chain_end")] == [ROOT, None]


def test_tags_and_metadata_are_inherited_and_the_nodes_own_come_last() -> None:
    """A node's metadata wins over the run's, its step tag stands first."""
    recorder = told(
        run_started(tags=["u", "v"], metadata={"m": 1, "n": 1}),
        task_started(step=3, tags=("v", "own"), metadata={"n": 2}),
        task_ended(step=3),
    )

    graph, node = recorder.of("on_chain_start")
    assert (graph["tags"], graph["metadata"]) == (["u", "v"], {"m": 1, "n": 1, "ls_integration": "langgraph"})
    assert node["tags"] == ["graph:step:3", "u", "v", "own"]
    assert node["metadata"] == {
        "m": 1, "n": 2, "ls_integration": "langgraph", "langgraph_step": 3, "langgraph_node": "a",
        "langgraph_triggers": ("branch:to:a",), "langgraph_path": ("__pregel_pull", "a"), "langgraph_checkpoint_ns": "a:id-a",
    }  # fmt: skip
    assert recorder.of("on_chain_end")[0]["tags"] == node["tags"]


def test_path_function_is_a_run_inside_the_node_run() -> None:
    """Its tag counts the steps of the node: body, state write, then branches."""
    recorder = told(
        run_started(), task_started(), branch_started("route"), branch_ended("route"),
        branch_started("other", position=1), branch_ended("other", position=1, output="c"), task_ended(),
    )  # fmt: skip

    route, other = recorder.of("on_chain_start")[2:]
    assert (route["run_id"], route["parent_run_id"], route["name"]) == (branch_run_id(NODE, 0), NODE, "route")
    assert (route["tags"], other["tags"]) == (["seq:step:3", "u"], ["seq:step:4", "u"])
    assert route["metadata"]["langgraph_node"] == "a"
    assert recorder.first("on_chain_end") == ["b", "c", {"x": 1}]


def test_start_node_is_no_run_of_its_own() -> None:
    """It only copies the input."""
    recorder = told(run_started(), task_started("__start__", step=0, is_hidden=True), task_ended("__start__", is_hidden=True))
    assert recorder.names() == ["on_chain_start"]


def test_start_node_is_a_hidden_run_when_a_conditional_edge_leaves_it() -> None:
    """Its output is the raw input; the path function is hidden, too, and second in the sequence."""
    recorder = told(
        run_started(), task_started("__start__", step=0, is_hidden=True), branch_started(node="__start__"),
        branch_ended(node="__start__"), task_ended("__start__", step=0, is_hidden=True, result=None),
    )  # fmt: skip

    _, start, path = recorder.of("on_chain_start")
    assert (start["name"], start["tags"]) == ("__start__", ["graph:step:0", "u", "langsmith:hidden"])
    assert (path["name"], path["tags"]) == ("route", ["seq:step:2", "u", "langsmith:hidden"])
    assert path["parent_run_id"] == start["run_id"]
    assert recorder.first("on_chain_end") == ["b", {"x": 0}]


def test_nested_run_is_below_the_node_that_called_it() -> None:
    """Its inner nodes are below it, under the same user tags."""
    recorder = told(
        run_started(), task_started(), run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-a", name="SUB", ns="a:id-a"),
        task_started("leaf", CHILD, ns="a:id-a"), task_ended("leaf", CHILD), run_ended(CHILD), task_ended(), run_ended(),
    )  # fmt: skip

    child, leaf = recorder.of("on_chain_start")[2:]
    assert (child["name"], child["parent_run_id"], child["tags"]) == ("SUB", NODE, ["seq:step:1", "u"])
    assert (leaf["parent_run_id"], leaf["tags"]) == (CHILD, ["graph:step:1", "u"])
    assert leaf["metadata"]["langgraph_checkpoint_ns"] == "a:id-a|leaf:id-leaf"
    assert [end["run_id"] for end in recorder.of("on_chain_end")] == [node_run_id(CHILD, "id-leaf"), CHILD, NODE, ROOT]


def test_graph_called_in_a_path_function_is_below_that() -> None:
    """Not below the node as such."""
    recorder = told(
        run_started(), task_started(), branch_started(), run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-a")
    )

    child = recorder.of("on_chain_start")[-1]
    assert (child["parent_run_id"], child["tags"]) == (branch_run_id(NODE, 0), ["u"])


def test_errors_reach_node_and_graph_as_the_same_exception() -> None:
    """Path functions that raise fail their node."""
    error = ValueError("boom")
    recorder = told(
        run_started(), task_started(), branch_started(), branch_ended(error=error),
        task_ended(status="failed", error=error, result=None), run_ended(status="failed", error=error),
    )  # fmt: skip
    assert recorder.names()[3:] == ["on_chain_error"] * 3
    assert all(given is error for given in recorder.first("on_chain_error"))


def test_cached_task_is_no_run() -> None:
    """Nothing ran: only its end is announced."""
    assert told(run_started(), task_ended(status="cached")).names() == ["on_chain_start"]


@pytest.mark.parametrize(("status", "kind"), [("abandoned", GeneratorExit), ("cancelled", asyncio.CancelledError)])
def test_runs_nobody_waits_for_end_with_the_exception_python_uses(status: Any, kind: type[BaseException]) -> None:
    """A closed stream is GeneratorExit on node and root, with the reason in it."""
    recorder = told(
        run_started(),
        task_started(),
        task_ended(status=status, reason="left", result=None),
        run_ended(status=status, reason="left"),
    )
    assert [(type(error), error.args) for error in recorder.first("on_chain_error")] == [(kind, ("left",))] * 2
    assert [type(e) for e in told(run_started(), run_ended(status=status)).first("on_chain_error")] == [kind]


def test_step_limit_and_drain_are_errors_of_the_root() -> None:
    """Whoever drains a run may tell the drain apart by its type."""
    for status, error in (("step_limit", GraphRecursionError("x")), ("drained", GraphDrained("bye"))):
        assert told(run_started(), run_ended(status=status, error=error)).first("on_chain_error") == [error]


def test_an_end_without_an_error_still_says_why() -> None:
    """A failed run always has something to show."""
    assert "limit" in str(told(run_started(), run_ended(status="step_limit")).first("on_chain_error")[0])


# Retries


def test_each_attempt_is_a_node_run_of_its_own() -> None:
    """The failed one ends with its error after on_retry, the last one with the result."""
    error = ConnectionError("x")
    recorder = told(
        run_started(), task_started(has_attempts=True), attempt_started(1), attempt_ended(1, error, 0.5),
        attempt_started(2), attempt_ended(2, None), task_ended(),
    )  # fmt: skip

    assert recorder.names()[1:] == ["on_chain_start", "on_retry", "on_chain_error", "on_chain_start", "on_chain_end"]
    first, second = node_run_id(ROOT, "id-a", 1), node_run_id(ROOT, "id-a", 2)
    assert [kwargs["run_id"] for _, _, kwargs in recorder.calls[1:]] == [first, first, first, second, second]
    state = recorder.first("on_retry")[0]
    assert (state.attempt_number, state.upcoming_sleep, state.idle_for, state.error) == (1, 0.5, 0.5, error)
    assert (state.outcome.failed, state.outcome.exception()) == (True, error)


def test_last_failed_attempt_ends_once() -> None:
    """Its AttemptEnded ends the run, the TaskEnded that follows does not end it again."""
    error = ConnectionError("x")
    recorder = told(
        run_started(),
        task_started(has_attempts=True),
        attempt_started(1),
        attempt_ended(1, error),
        task_ended(status="failed", error=error),
    )
    assert recorder.names()[1:] == ["on_chain_start", "on_chain_error"]


def test_interrupted_attempt_is_no_failure() -> None:
    """A question asked under a retry policy is still a question."""
    recorder = told(
        run_started(), task_started(has_attempts=True), attempt_started(1), attempt_ended(1, GraphInterrupt()),
        task_ended(status="interrupted"),
    )  # fmt: skip
    assert recorder.names()[1:] == ["on_chain_start", "on_chain_end"]


# Pauses


def test_a_pause_is_never_an_error_and_is_told_once_before_the_root_ends() -> None:
    """Node and child end with None, the root with its output so far (D23)."""
    question = Interrupt("ok?", "i1")
    recorder = told(
        run_started(), task_started(), run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-a"), task_started("leaf", CHILD),
        task_ended("leaf", CHILD, status="interrupted", interrupts=(question,), result=None),
        Interrupted(CHILD, "a:id-a", 1, 0, "pending", (question,), "c2"),
        run_ended(CHILD, status="interrupted", output={"y": 1}), task_ended(status="interrupted", result=None),
        Interrupted(ROOT, "", 1, 0, "pending", (question,), "c1"), run_ended(status="interrupted", output={"x": 0}),
    )  # fmt: skip

    assert recorder.names()[4:] == ["on_chain_end", "on_chain_end", "on_chain_end", "on_interrupt", "on_chain_end"]
    assert recorder.first("on_chain_end") == [None, None, None, {"x": 0}]
    assert recorder.first("on_interrupt") == [GraphInterruptEvent(ROOT, "pending", "c1", (), (question,))]


def test_static_breakpoint_has_no_questions() -> None:
    """Its status says on which side of the node the run stopped."""
    recorder = told(run_started(), Interrupted(ROOT, "", 1, 0, "interrupt_before", (), "c"))
    assert recorder.first("on_interrupt") == [GraphInterruptEvent(ROOT, "interrupt_before", "c", (), ())]


def test_resume_is_told_at_every_level() -> None:
    """The namespace says which level goes on."""
    recorder = told(
        run_started(), Resumed(ROOT, "", 1, 0, "c1", (), ()), task_started(),
        run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-a"), Resumed(CHILD, "a:id-a|k:2", 1, 0, "c2", (), ()),
    )  # fmt: skip
    assert recorder.names() == ["on_chain_start", "on_resume", "on_chain_start", "on_chain_start", "on_resume"]
    assert recorder.first("on_resume") == [
        GraphResumeEvent(ROOT, "pending", "c1", ()),
        GraphResumeEvent(CHILD, "pending", "c2", ("a:id-a", "k:2")),
    ]


def test_command_for_the_parent_and_drain_of_a_child_are_no_errors() -> None:
    """They are on their way up."""
    for status in ("handed_over", "drained"):
        recorder = told(
            run_started(), task_started(), run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-a"),
            run_ended(CHILD, status=status, output=None), task_ended(status="failed", error=GraphDrained()),
        )  # fmt: skip
        assert recorder.names()[3:] == ["on_chain_end", "on_chain_end"]
    recorder = told(
        run_started(), task_started(), branch_started(), branch_ended(error=ParentCommand(None)), task_ended(status="handed_over")
    )  # type: ignore[arg-type]
    assert "on_chain_error" not in recorder.names()


# Models, tools, retrievers, custom events


def model_started(**facts: Any) -> ModelStarted:
    given: dict[str, Any] = {
        "parent_call_id": None, "name": "Fake", "serialized": {"k": 1}, "is_chat": True, "messages": [[("human", "hi")]],
        "params": {"temperature": 0}, "tags": ["t"], "metadata": {"m": 2},
    }  # fmt: skip
    return ModelStarted(ROOT, "", 1, 0, "id-a", CALL, **{**given, **facts})


def test_model_call_is_below_its_node() -> None:
    """Tokens and the end carry the ids and tags of the start."""
    recorder = told(
        run_started(), task_started(), model_started(), ModelToken(ROOT, "", 1, 0, "id-a", CALL, None, "Fake", "he", "chunk"),
        ModelEnded(ROOT, "", 1, 0, "id-a", CALL, None, "Fake", "answer", None),
    )  # fmt: skip

    start, token, end = recorder.calls[2:]
    assert (start[0], start[1]) == ("on_chat_model_start", ({"k": 1}, [[("human", "hi")]]))
    assert start[2] == {
        "run_id": CALL, "parent_run_id": NODE, "tags": ["t"], "metadata": {"m": 2}, "name": "Fake", "temperature": 0,
    }  # fmt: skip
    ids = {"run_id": CALL, "parent_run_id": NODE, "tags": ["t"]}
    assert token == ("on_llm_new_token", ("he",), {"chunk": "chunk", **ids})
    assert end == ("on_llm_end", ("answer",), ids)


def test_failed_model_call_keeps_what_had_arrived() -> None:
    """The partial response comes beside the error."""
    error = ValueError()
    recorder = told(model_started(), ModelEnded(ROOT, "", 1, 0, "id-a", CALL, None, "Fake", "part", error))
    assert recorder.calls[1][1:] == ((error,), {"response": "part", "run_id": CALL, "parent_run_id": None, "tags": ["t"]})
    recorder = told(model_started(), ModelEnded(ROOT, "", 1, 0, "id-a", CALL, None, "Fake", None, error))
    assert "response" not in recorder.of("on_llm_error")[0]


def test_prompt_model_goes_to_on_llm_start() -> None:
    """Prompts are handed on as they are."""
    recorder = told(model_started(is_chat=False, messages=["hi"]))
    assert recorder.calls[0][:2] == ("on_llm_start", ({"k": 1}, ["hi"]))


def test_handler_without_on_chat_model_start_gets_prompts() -> None:
    """Chat messages become one text each, whatever they are made of."""

    class Message:
        type, content = "ai", "hello"

    class OnlyPrompts(BaseCallbackHandler):
        def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
            seen.append(prompts)

    class SaysNo(OnlyPrompts):
        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            raise NotImplementedError

    class SaysNoLater(OnlyPrompts):
        async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            raise NotImplementedError

    class AllLater(SaysNoLater):
        async def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:  # type: ignore[override]
            seen.append(prompts)

    seen: list[list[str]] = []
    messages = [[{"role": "user", "content": "hi"}, Message(), "plain"]]
    observe(HandlerObserver([OnlyPrompts(), SaysNo(), SaysNoLater(), AllLater()]), model_started(messages=messages))
    assert seen == [["user: hi\nAI: hello\nplain"]] * 4


def test_tool_call_inside_which_a_model_is_called() -> None:
    """The inner call's parent is the tool call."""
    inner = UUID(int=78)
    tool = ToolStarted(ROOT, "", 1, 0, "id-a", CALL, None, "search", None, {"q": 1}, "call_1", ["t"], {})
    model = ModelStarted(ROOT, "", 1, 0, "id-a", inner, CALL, "Fake", None, True, [], {}, [], {})
    recorder = told(
        run_started(), task_started(), tool, model, ToolEnded(ROOT, "", 1, 0, "id-a", CALL, None, "search", "out", None)
    )

    start = recorder.of("on_tool_start")[0]
    assert (start["parent_run_id"], start["inputs"], start["tool_call_id"], start["name"]) == (NODE, {"q": 1}, "call_1", "search")
    assert recorder.calls[2][1] == (None, "{'q': 1}")
    assert recorder.of("on_chat_model_start")[0]["parent_run_id"] == CALL
    assert recorder.calls[-1][:2] == ("on_tool_end", ("out",))


def test_tool_with_plain_text_input_and_failing_tool() -> None:
    """Text input has no dict form; an interrupt inside a tool is no failure."""
    start = ToolStarted(ROOT, "", 1, 0, "id-a", CALL, None, "search", None, "q", None, [], {})
    failed = told(start, ToolEnded(ROOT, "", 1, 0, "id-a", CALL, None, "search", None, error := ValueError()))
    assert (failed.calls[0][1], failed.of("on_tool_start")[0]["inputs"], failed.first("on_tool_error")) == (
        (None, "q"),
        None,
        [error],
    )
    paused = told(start, ToolEnded(ROOT, "", 1, 0, "id-a", CALL, None, "search", None, GraphInterrupt()))
    assert paused.names() == ["on_tool_start", "on_tool_end"]


def test_retriever_call() -> None:
    """Query, documents, failure."""
    start = RetrievalStarted(ROOT, "", 1, 0, "id-a", CALL, None, "r", None, "q", [], {})
    ended = told(start, RetrievalEnded(ROOT, "", 1, 0, "id-a", CALL, None, "r", ["d"], None))
    assert [(name, args) for name, args, _ in ended.calls] == [
        ("on_retriever_start", (None, "q")),
        ("on_retriever_end", (["d"],)),
    ]
    failed = told(start, RetrievalEnded(ROOT, "", 1, 0, "id-a", CALL, None, "r", None, ValueError()))
    assert failed.names() == ["on_retriever_start", "on_retriever_error"]


def test_memory_call() -> None:
    """What is asked, what was found, failure; a pause on its way through the store is none."""
    asked = ("search_memory", "prefs", None, ("ann",), "tea?", None, True, ["t"], {"m": 2})
    start = MemoryStarted(ROOT, "", 1, 0, "id-a", CALL, None, "Store", *asked)
    ended = told(run_started(), task_started(), start, MemoryEnded(ROOT, "", 1, 0, "id-a", CALL, None, "Store", ["r"], 1, None))
    begun, done = ended.calls[2:]
    assert begun[:2] == ("on_memory_start", ("search_memory",))
    assert begun[2] == {
        "store_id": "prefs", "record_id": None, "namespace": ("ann",), "query": "tea?", "records": None, "name": "Store",
        "run_id": CALL, "parent_run_id": NODE, "tags": ["t"], "metadata": {"m": 2},
    }  # fmt: skip
    assert done == ("on_memory_end", (["r"],), {"count": 1, "run_id": CALL, "parent_run_id": NODE, "tags": ["t"]})

    failed = told(start, MemoryEnded(ROOT, "", 1, 0, "id-a", CALL, None, "Store", None, None, ValueError()))
    assert failed.names() == ["on_memory_start", "on_memory_error"]
    paused = told(start, MemoryEnded(ROOT, "", 1, 0, "id-a", CALL, None, "Store", None, None, GraphInterrupt()))
    assert paused.names() == ["on_memory_start", "on_memory_end"]


def test_named_custom_events_are_told_under_the_node_and_stream_chunks_are_not() -> None:
    """The custom stream mode is no callback."""
    chunk = CustomEmitted(ROOT, "", 1, 0, "id-a", "a", None, 1)
    named = CustomEmitted(ROOT, "", 1, 0, "id-a", "a", "progress", {"pct": 5}, ["t"], {"m": 1})
    recorder = told(run_started(), task_started(), chunk, named)
    assert recorder.calls[2:] == [
        ("on_custom_event", ("progress", {"pct": 5}), {"run_id": NODE, "tags": ["t"], "metadata": {"m": 1}})
    ]


# Supersteps and checkpoints


def test_supersteps_and_checkpoints() -> None:
    """Ours: what a step runs, what it changed, what was stored."""
    planned = TaskPlanned("id-a", "a", (), (), None, False, None, ())
    recorder = told(
        run_started(), SuperstepStarted(ROOT, "n", 1, 0, (planned,), False, "c0"),
        SuperstepEnded(ROOT, "n", 1, 0, "completed", 1, ("x",), "c1"),
        CheckpointSaved(ROOT, "n", 1, 0, "c1", "c0", "loop", ("x",), None),
    )  # fmt: skip
    place = {"run_id": ROOT, "checkpoint_ns": "n"}
    assert recorder.calls[1:] == [
        ("on_superstep_start", (1,), {"nodes": ("a",), "checkpoint_id": "c0", **place}),
        ("on_superstep_end", (1,), {"status": "completed", "updated": ("x",), "checkpoint_id": "c1", **place}),
        ("on_checkpoint", ("c1",), {"step": 1, "parent_id": "c0", "source": "loop", "error": None, **place}),
    ]


# Which handlers, which methods


def test_methods_nobody_overrode_make_no_event_wanted() -> None:
    """A run without listeners builds no events."""
    assert HandlerObserver([BaseCallbackHandler(), AsyncCallbackHandler(), GraphCallbackHandler(), object()]).wants == 0
    assert HandlerObserver([]).wants == 0


def test_wanted_kinds_follow_the_methods() -> None:
    """A handler of supersteps costs no task events, one of models needs them for its parents."""

    class Steps(BaseCallbackHandler):
        def on_superstep_end(self, step: int, **kwargs: Any) -> None: ...

    class Tokens:
        def on_llm_new_token(self, token: Any, **kwargs: Any) -> None: ...

    steps, tokens = HandlerObserver([Steps()]).wants, HandlerObserver([Tokens()]).wants
    assert steps == SuperstepEnded.bit | RunStarted.bit | RunEnded.bit
    assert tokens & ModelToken.bit
    assert tokens & TaskStarted.bit
    assert not tokens & StateUpdated.bit
    assert not HandlerObserver([Recorder()]).wants & StateUpdated.bit


def test_every_kind_of_event_can_be_observed() -> None:
    """Kinds that are no callback are passed over, even if somebody hands them in."""
    observer = HandlerObserver([Recorder()])
    ignored = 0
    for kind in get_args(Event):
        if not observer.wants & kind.bit:
            event = kind.__new__(kind)
            assert observer.observe(event) is None
            ignored += 1
    assert ignored == every_kind().bit_count() - observer.wants.bit_count() > 0


def test_ignore_flags_switch_methods_off() -> None:
    """Tools follow ignore_agent as well, because that is LangChain's name for it."""
    for flag, method in {
        "ignore_chain": "on_chain_start", "ignore_llm": "on_llm_end", "ignore_chat_model": "on_chat_model_start",
        "ignore_tool": "on_tool_start", "ignore_agent": "on_tool_end", "ignore_retriever": "on_retriever_end",
        "ignore_memory": "on_memory_start",
        "ignore_retry": "on_retry", "ignore_custom_event": "on_custom_event",
    }.items():  # fmt: skip
        recorder = Recorder()
        setattr(recorder, flag, True)
        assert not HandlerObserver([recorder])._calls.has_any(method), flag


def test_a_method_gets_only_the_keywords_it_takes() -> None:
    """A duck-typed handler may declare just what it needs."""
    seen: list[Any] = []

    class Duck:
        def on_chain_start(self, serialized: Any, inputs: Any, run_id: UUID, name: str | None = None) -> None:
            seen.append((inputs, run_id, name))

        def on_chain_end(self, outputs: Any) -> None:
            seen.append(outputs)

        on_chain_error = None

    observe(HandlerObserver([Duck()]), run_started(), run_ended())
    assert seen == [({"x": 0}, ROOT, "LangGraph"), {"x": 1}]


def test_langchain_handler_is_told_exactly_what_its_signature_says() -> None:
    """Handlers of langchain-core work by duck type; what they did not override is not called."""
    from langchain_core.callbacks import BaseCallbackHandler as Theirs

    seen: list[Any] = []

    class Handler(Theirs):
        def on_chain_start(
            self,
            serialized: Any,
            inputs: Any,
            *,
            run_id: UUID,
            parent_run_id: Any = None,
            tags: Any = None,
            metadata: Any = None,
            **kwargs: Any,
        ) -> None:
            seen.append(("start", serialized, inputs, parent_run_id, tags, metadata["m"], kwargs))

        def on_chain_end(self, outputs: Any, *, run_id: UUID, parent_run_id: Any = None, **kwargs: Any) -> None:
            seen.append(("end", outputs, kwargs))

        def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
            seen.append(("llm", prompts))

    observer = HandlerObserver([Handler()])
    observe(observer, run_started(), model_started(messages=[[]]), run_ended())

    assert not observer._calls.has_any("on_tool_start", "on_custom_event", "on_retry")
    assert seen == [
        ("start", None, {"x": 0}, None, ["u"], 1, {"name": "LangGraph"}),
        ("llm", [""]),
        ("end", {"x": 1}, {"tags": ["u"]}),
    ]


def test_langchain_tracer_builds_its_run_tree() -> None:
    """A tracer raises on unknown ids, so this also checks that every end has its start."""
    from langchain_core.tracers.base import BaseTracer

    class Tracer(BaseTracer):
        def _persist_run(self, run: Any) -> None:
            trees.append(run)

    trees: list[Any] = []
    observer = HandlerObserver([Tracer()])
    observe(
        observer, run_started(), task_started(has_attempts=True), attempt_started(1), attempt_ended(1, ValueError("x"), 0.5),
        attempt_started(2), branch_started(), branch_ended(), attempt_ended(2, None), task_ended(), run_ended(),
    )  # fmt: skip

    assert observer.failure_count == 0
    assert [(child.name, bool(child.error), [c.name for c in child.child_runs]) for child in trees[0].child_runs] == [
        ("a", True, []),
        ("a", False, ["route"]),
    ]


def test_not_implemented_is_a_failure_like_any_other_where_nothing_can_be_called_instead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only on_chat_model_start has a substitute, and only in a handler of prompts."""

    class SaysNo:
        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            raise NotImplementedError

        async def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            raise NotImplementedError

        ignore_llm = True

        def on_llm_start(self, *args: Any, **kwargs: Any) -> None:
            raise AssertionError

    observer = HandlerObserver([SaysNo()])
    observe(observer, run_started(), model_started())
    assert observer.failure_count == len(caplog.records) == 2


def test_handler_without_a_readable_signature_gets_everything() -> None:
    """A callable made in C has no parameters to look at."""

    class Built:
        on_chain_start = dict

    observer = HandlerObserver([Built()])
    observe(observer, run_started())
    assert (observer.failure_count, len(observer.handlers)) == (1, 1)


def test_ends_without_a_start_are_passed_over() -> None:
    """An observer that came late must not invent runs."""
    assert told(run_ended(), task_ended(), branch_ended(), task_started(), branch_ended()).names() == ["on_chain_start"]


# Which runs


def test_handlers_of_a_nested_call_hear_only_of_that_run_and_what_is_inside() -> None:
    """They are given to the call, not to the run around it."""
    grandchild, sibling, node = UUID(int=3), UUID(int=4), uuid4()
    recorder = Recorder()
    observe(
        HandlerObserver([recorder], run_id=CHILD, parent_run_id=node),
        run_started(), task_started(), run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-a", name="SUB"),
        task_started("leaf", CHILD), run_started(grandchild, parent_run_id=CHILD, parent_task_id="id-leaf", name="SUBSUB"),
        run_ended(grandchild), task_ended("leaf", CHILD), run_ended(CHILD), task_ended(),
        run_started(sibling, parent_run_id=ROOT, parent_task_id="id-a"), run_ended(),
    )  # fmt: skip

    assert [start["name"] for start in recorder.of("on_chain_start")] == ["SUB", "leaf", "SUBSUB"]
    assert recorder.of("on_chain_start")[0]["parent_run_id"] == node
    assert [end["run_id"] for end in recorder.of("on_chain_end")] == [grandchild, node_run_id(CHILD, "id-leaf"), CHILD]


def test_parent_of_the_root_is_the_enclosing_run_of_others() -> None:
    """A graph called by a LangChain chain is below that chain."""
    outer = uuid4()
    recorder = Recorder()
    observe(HandlerObserver([recorder], parent_run_id=outer), run_started())
    assert recorder.of("on_chain_start")[0]["parent_run_id"] == outer


# Failures of handlers, and async ones


class Boom(Exception):
    pass


def failing(*, is_fatal: bool = False, is_async: bool = False) -> BaseCallbackHandler:
    class Failing(BaseCallbackHandler):
        raise_error = is_fatal

        def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            raise Boom

    class FailingLater(BaseCallbackHandler):
        raise_error = is_fatal

        async def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            raise Boom

    return FailingLater() if is_async else Failing()


@pytest.mark.parametrize("is_async", [False, True])
def test_failing_handler_is_logged_once_counted_and_stays(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The run and the other handlers go on."""
    recorder, reported = Recorder(), []
    observer = HandlerObserver(
        [failing(is_async=is_async), recorder], on_failure=lambda who, error: reported.append((who, type(error)))
    )
    with caplog.at_level(logging.WARNING, "tracegraph.callbacks"):
        observe(observer, run_started(), task_started(), run_ended())

    assert len(caplog.records) == len(reported) == 1
    assert reported[0][0].endswith("on_chain_start")
    assert reported[0][1] is Boom
    assert observer.failure_count == 2
    assert recorder.names() == ["on_chain_start", "on_chain_start", "on_chain_end"]


@pytest.mark.parametrize("is_async", [False, True])
def test_raise_error_fails_the_run_after_the_others_were_told(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The original exception is what the run raises."""
    recorder, later = Recorder(), AsyncRecorder()
    with pytest.raises(FatalObserverError) as raised:
        observe(HandlerObserver([failing(is_fatal=True, is_async=is_async), recorder, later]), run_started())
    assert type(raised.value.original) is Boom
    assert recorder.names() == ["on_chain_start"]
    assert later.seen == ["start"]
    assert caplog.records == []


def test_fatal_second_call_does_not_lose_the_work_of_the_first() -> None:
    """A retry makes two calls, of which the second may raise while the first is still to be awaited."""

    class Fatal(BaseCallbackHandler):
        raise_error = True

        def on_chain_error(self, *args: Any, **kwargs: Any) -> None:
            raise Boom

    class OnlyRetries(BaseCallbackHandler):
        async def on_retry(self, *args: Any, **kwargs: Any) -> None:
            seen.append("retry")

    seen: list[str] = []
    observer = HandlerObserver([OnlyRetries(), Fatal()])
    observe(observer, run_started(), task_started(has_attempts=True), attempt_started(1))
    with pytest.raises(FatalObserverError):
        observe(observer, attempt_ended(1, ValueError(), 0.1))
    assert seen == ["retry"]


class AsyncRecorder(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []
        self.current: Any = None

    async def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        self.current = CURRENT.get()
        self.seen.append("start")

    async def on_retry(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("retry")

    async def on_chain_error(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("error")

    async def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("end")


async def test_async_handlers_do_nothing_until_awaited_and_then_in_order() -> None:
    """One awaitable per event, even where an event makes two calls."""
    later = AsyncRecorder()
    observer = HandlerObserver([later, later])
    pending = observer.observe(run_started())
    assert later.seen == []
    await wait(pending)
    assert later.seen == ["start", "start"]

    for event in (task_started(has_attempts=True), attempt_started(1)):
        if (pending := observer.observe(event)) is not None:
            await wait(pending)
    later.seen.clear()
    await wait(observer.observe(attempt_ended(1, ValueError(), 0.1)))
    assert later.seen == ["retry", "retry", "error", "error"]


@pytest.mark.parametrize("make", [Recorder, AsyncRecorder])
def test_handlers_run_with_current_unset_and_leave_it_as_it_was(make: Callable[[], Any]) -> None:
    """A graph called in a handler is a root run of its own (design 6.12)."""
    seen: list[Any] = []

    class Handler(AsyncRecorder):
        def on_chain_end(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
            seen.append(CURRENT.get())

    handler = Handler()
    handler.current = "untouched"
    token = CURRENT.set("a task")
    try:
        observe(HandlerObserver([handler]), run_started(), run_ended())
        assert CURRENT.get() == "a task"
    finally:
        CURRENT.reset(token)
    assert (seen, handler.current) == ([None], None)


def test_handlers_may_change_what_they_are_given() -> None:
    """Tags and metadata are copies; the next run does not see the change."""

    class Vandal(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, *, tags: Any = None, metadata: Any = None, **kwargs: Any) -> None:
            tags.clear()
            metadata.clear()

    observer, recorder = HandlerObserver([Vandal()]), Recorder()
    observe(observer, started := run_started())
    assert (started.tags, started.metadata) == (["u"], {"m": 1})

    observe(HandlerObserver([recorder, Vandal()]), started, task_started(), task_ended())
    assert recorder.of("on_chain_end")[0]["tags"] == ["graph:step:1", "u"]
