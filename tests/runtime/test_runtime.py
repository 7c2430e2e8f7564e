"""Runtime, ExecutionInfo, RunControl and context coercion (spec 10.6; K7, K12)."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel, ValidationError

from tracegraph.current import CURRENT
from tracegraph.runtime import DEFAULT_RUNTIME, ExecutionInfo, RunControl, Runtime, ServerInfo, coerce_context, get_runtime


@dataclass
class Ctx:
    user: str
    n: int = 0


class Model(BaseModel):
    user: str


class Typed(TypedDict):
    user: str


def test_default_runtime_has_nothing_and_drops_what_is_written() -> None:
    """Node code may call writer and heartbeat without asking who listens."""
    runtime = DEFAULT_RUNTIME
    runtime.stream_writer({"x": 1})
    runtime.heartbeat()
    assert (runtime.context, runtime.store, runtime.previous, runtime.execution_info, runtime.server_info) == (None,) * 5
    assert (runtime.drain_requested, runtime.drain_reason) == (False, None)


def test_runtime_is_frozen_and_keyword_only() -> None:
    """It is shared, and its fields have no order."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT_RUNTIME.store = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        Runtime("ctx")  # type: ignore[misc]


def test_override_replaces_with_none_too() -> None:
    """A plain replacement, unlike merge."""
    runtime = Runtime(context="a", store="s")
    assert runtime.override(context=None) == Runtime(context=None, store="s")


def test_merge_takes_what_the_other_has_set() -> None:
    """None and the do-nothing functions count as not set."""
    base_writer, writer, beat = (lambda _: None), (lambda _: None), (lambda: None)
    control = RunControl()
    base: Runtime[Any] = Runtime(context="a", store="s", stream_writer=base_writer, previous=1, control=control)

    assert base.merge(Runtime()) == base
    merged = base.merge(Runtime(context="b", stream_writer=writer, heartbeat=beat, server_info=ServerInfo("as", "g")))
    assert (merged.context, merged.store, merged.stream_writer, merged.heartbeat) == ("b", "s", writer, beat)
    assert (merged.previous, merged.control, merged.server_info) == (1, control, ServerInfo("as", "g"))


def test_merge_lets_a_falsy_value_win() -> None:
    """Only None is unset: an empty store or a context of 0 was given."""
    assert Runtime(context=1, store=[1]).merge(Runtime(context=0, store=[])).override() == Runtime(context=0, store=[])


def test_execution_info_is_patched_by_copy() -> None:
    """The attempt number of a retry changes, the ids do not."""
    info = ExecutionInfo(None, "n:1", "t", thread_id="7")
    runtime = Runtime(execution_info=info)
    patched = runtime.patch_execution_info(node_attempt=2, node_first_attempt_time=1.5)
    assert patched.execution_info == ExecutionInfo(None, "n:1", "t", "7", None, 2, 1.5)
    assert info.node_attempt == 1
    assert info.patch(run_id="r").run_id == "r"


def test_patching_absent_execution_info_is_an_error() -> None:
    """There is no task whose attempt could be counted."""
    with pytest.raises(RuntimeError, match="no execution_info"):
        DEFAULT_RUNTIME.patch_execution_info(node_attempt=2)


def test_drain_is_visible_in_every_runtime_that_shares_the_control() -> None:
    """Subgraphs inherit the control, so their nodes see the request."""
    control = RunControl()
    runtime: Runtime[None] = Runtime(control=control)
    assert (runtime.drain_requested, runtime.drain_reason, repr(control)) == (False, None, "<RunControl drain_reason=None>")

    control.request_drain()

    assert (runtime.drain_requested, runtime.drain_reason) == (True, "shutdown")


def test_the_last_drain_reason_counts() -> None:
    """Asking twice changes the words only."""
    control = RunControl()
    control.request_drain("a")
    control.request_drain("b")
    assert control.drain_reason == "b"


def test_drain_listeners_are_told_once_and_may_leave() -> None:
    """A driver that sleeps until a timer must wake up for a drain."""
    control, told = RunControl(), []
    control.on_drain(told.append)
    leave = control.on_drain(lambda reason: told.append(f"never {reason}"))
    leave()
    leave()

    control.request_drain("a")
    control.request_drain("b")

    assert told == ["a"]


def test_late_drain_listener_is_told_at_once() -> None:
    """A run that starts after the request must not miss it."""
    control, told = RunControl(), []
    control.request_drain("early")
    control.on_drain(told.append)
    assert told == ["early"]


def test_drain_may_be_requested_from_many_threads() -> None:
    """Each listener is still told exactly once."""
    control, told = RunControl(), []
    control.on_drain(told.append)
    threads = [threading.Thread(target=control.request_drain, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 1
    assert control.drain_requested


def test_a_listener_may_read_and_leave_while_it_is_told() -> None:
    """Listeners are called without the lock."""
    control, told = RunControl(), []

    def listener(_: str) -> None:
        leave()
        told.append(control.drain_requested)

    leave = control.on_drain(listener)
    control.request_drain()
    assert told == [True]


@pytest.mark.parametrize(("schema", "value", "expected"), [
    (Ctx, None, None),
    (Ctx, {"user": "u"}, Ctx("u")),
    (Ctx, Ctx("u", 1), Ctx("u", 1)),
    (Model, {"user": "u"}, Model(user="u")),
    (Typed, {"user": "u"}, {"user": "u"}),
    (dict, {"a": 1}, {"a": 1}),
    (None, {"a": 1}, {"a": 1}),
])  # fmt: skip
def test_context_dict_becomes_an_instance_of_its_schema(schema: Any, value: Any, expected: Any) -> None:
    """None stays None, and what is no dict stays what it is."""
    assert coerce_context(schema, value) == expected
    assert type(coerce_context(schema, value)) is type(expected)


def test_errors_of_the_context_schema_reach_the_caller() -> None:
    """Unknown and missing fields are the caller's mistake."""
    with pytest.raises(TypeError):
        coerce_context(Ctx, {"user": "u", "unknown": 1})
    with pytest.raises(ValidationError):
        coerce_context(Model, {})


def test_get_runtime_returns_the_running_tasks_own() -> None:
    """Inside a run it is the injected object, outside an error."""
    with pytest.raises(RuntimeError, match="outside a run"):
        get_runtime()

    runtime: Runtime[Any] = Runtime(context=Ctx("u"))
    token = CURRENT.set(type("Here", (), {"runtime": runtime})())
    try:
        assert get_runtime(Ctx) is runtime
    finally:
        CURRENT.reset(token)
