"""What looks as if it only grew, and did not: what is stored must be what the run has."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from tracegraph.channels import DeltaChannel
from tracegraph.channels.delta import DeltaLog, DeltaSnapshot
from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.encrypted import EncryptedSerializer
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.errors import ConcurrentRunError, InvalidUpdateError
from tracegraph.graph import START, StateGraph, add_messages
from tracegraph.messages import HumanMessage, add_message_batches

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}

SAVERS: dict[str, Callable[[], Any]] = {
    "memory": InMemorySaver,
    "memory_as_bytes": lambda: InMemorySaver(serde=JsonPlusSerializer()),
    "sqlite": lambda: SqliteSaver(connect(":memory:")),
}


@pytest.fixture(params=SAVERS)
def saver(request: pytest.FixtureRequest) -> Any:
    return SAVERS[request.param]()


def app_on(saver: Any, annotation: Any, node: Callable[[Any], Any]) -> Any:
    schema: Any = TypedDict("schema", {"log": annotation, "n": int}, total=False)  # type: ignore[misc]  # made for the test
    graph = StateGraph(schema).add_node("node", lambda state: {"log": node(state.get("log")), "n": state.get("n", 0) + 1})
    graph.add_edge(START, "node").add_conditional_edges("node", lambda state: "node" if state["n"] % 3 else "__end__")
    return graph.compile(checkpointer=saver)


def extends(left: list[Any], right: list[Any]) -> list[Any]:
    left.extend(right)
    return left


def upserts(left: list[Any], right: list[Any]) -> list[Any]:
    made = list(left)
    for item in right:
        for old in made:
            if old["id"] == item["id"]:
                old.update(item)
                break
        else:
            made.append(item)
    return made


def marks_old(left: list[Any], right: list[Any]) -> list[Any]:
    for item in left:
        item["is_old"] = True
    return [*left, *right]


def edited(log: Any) -> Any:
    last = log[-1]
    last.content += "!"
    return [last, HumanMessage("more")]


CASES: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "a message is edited and written again": (Annotated[list[Any], add_messages], [HumanMessage("draft", id="1")], edited),
    "and in a delta channel": (
        Annotated[list[Any], DeltaChannel(add_message_batches, list)],
        [HumanMessage("draft", id="1")],
        edited,
    ),
    "the reducer extends in place": (Annotated[list[Any], extends], ["i"], lambda log: [len(log)]),
    "iadd": (Annotated[list[Any], operator.iadd], ["i"], lambda log: [len(log)]),
    "items are updated in place": (
        Annotated[list[Any], upserts],
        [{"id": 0, "v": 0}],
        lambda log: [{"id": 0, "v": log[0]["v"] + 1}, {"id": len(log), "v": 0}],
    ),
    "old items are marked": (Annotated[list[Any], marks_old], [{"n": 0}], lambda log: [{"n": len(log)}]),
    "an item is changed and added again": (
        Annotated[list[Any], operator.add],
        [{"n": 0}],
        lambda log: [log[0].update(n=len(log)) or log[0]],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_stored_is_what_the_run_has(saver: Any, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the next turns, which begin with what was stored."""
    monkeypatch.delenv("TRACEGRAPH_CHECK", raising=False)  # which warns of changes in place
    annotation, given, node = CASES[case]
    app = app_on(saver, annotation, node)
    for turn in range(3):
        result = app.invoke({"log": given if turn == 0 else []}, THREAD, durability="sync")

        assert app.get_state(THREAD).values["log"] == result["log"]
    assert result["n"] == 9


@pytest.mark.parametrize("stored", [DeltaSnapshot([1, 2]), DeltaLog([1], [[2]]), DeltaLog(DeltaSnapshot([1]), [[2]])])
@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[list[Any], operator.add],
        Annotated[list[Any], DeltaChannel(lambda log, batch: [*log, *(x for each in batch for x in each)], list)],
    ],
    ids=["reducer", "delta"],
)
def test_a_list_kept_as_a_log_or_snapshot_can_be_added_to(saver: Any, stored: Any, annotation: Any) -> None:
    """As a thread copied by hand, or imported, may have it."""
    versions = dict.fromkeys(("log", "n"), saver.get_next_version(None, None))
    checkpoint = empty_checkpoint() | {"channel_values": {"log": stored, "n": 0}, "channel_versions": versions}
    saver.put(THREAD, checkpoint, {"source": "loop", "step": 0, "parents": {}}, versions)
    app = app_on(saver, annotation, lambda log: [len(log)])

    for _ in range(3):
        result = app.invoke({"log": ["turn"]}, THREAD)
        assert app.get_state(THREAD).values["log"] == result["log"]
    assert result["log"][:3] == [1, 2, "turn"]


def test_a_field_that_lost_its_delta_channel_says_so(saver: Any) -> None:
    """Its nodes must not get the channel's bookkeeping for a list."""
    delta = Annotated[list[Any], DeltaChannel(lambda log, batch: [*log, *(x for each in batch for x in each)], list)]
    app_on(saver, delta, lambda log: [len(log)]).invoke({"log": [*"abcdefgh"]}, THREAD)

    with pytest.raises(InvalidUpdateError, match="the thread holds 'log' as writes that only its DeltaChannel can fold"):
        app_on(saver, list, lambda log: log).invoke({"n": 0}, THREAD)


@pytest.mark.parametrize("forget", ["prune", "delete_thread"])
def test_a_branch_of_what_is_deleted_meanwhile_is_refused(saver: Any, forget: str) -> None:
    """It would be the newest state, and lack the values that did not change."""
    app = app_on(saver, Annotated[list[Any], operator.add], lambda log: [len(log)])
    app.invoke({"log": ["x" * 100]}, THREAD)
    old = [*app.get_state_history(THREAD)][2].config
    real = saver.put_group

    def put_group(*args: Any) -> Any:
        saver.put_group = real
        getattr(saver, forget)(["t"] if forget == "prune" else "t")
        return real(*args)

    saver.put_group = put_group
    with pytest.raises(ConcurrentRunError):
        app.update_state(old, {"n": 5}, "node")

    values = app.get_state(THREAD).values
    assert values.get("log", ["x" * 100])[0] == "x" * 100
    assert "n" not in values or values["n"] == 3


def test_plain_values_in_a_record_are_not_accepted_by_a_saver_that_accepts_none() -> None:
    """Somebody who can write to the database, but has no key, must not decide what the state is."""
    connection = connect(":memory:")
    app_on(SqliteSaver(connection), Annotated[list[Any], operator.add], lambda log: []).invoke({"n": 0}, THREAD)
    picky = EncryptedSerializer.from_aes(b"k" * 16, accept_plain=False)

    with pytest.raises(UnreadableBytesError, match="not encrypted"):
        SqliteSaver(connection, serde=picky).get_tuple(THREAD)
    assert SqliteSaver(connection, serde=EncryptedSerializer.from_aes(b"k" * 16)).get_tuple(THREAD) is not None
    connection.close()


def test_a_group_whose_answer_got_lost_counts_as_stored(saver: Any) -> None:
    """It was committed, and then the connection failed: no other run is to blame, and none is needed."""
    app = app_on(saver, Annotated[list[Any], operator.add], lambda log: [len(log)])
    real, failed = saver.put_group, []

    def put_group(config: Any, saves: Any) -> None:
        real(config, saves)
        if len(saves) > 1 and not failed:
            failed.append(True)
            raise ConnectionError("lost")

    saver.put_group = put_group
    result = app.invoke({"log": ["a"]}, THREAD, durability="sync")

    assert failed
    assert app.get_state(THREAD).values == result


@pytest.mark.parametrize("where", ["instance", "class"])
def test_whoever_patches_put_sees_every_checkpoint(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instrumentation and tests do that."""
    saver, seen = InMemorySaver(), []
    app = app_on(saver, Annotated[list[Any], operator.add], lambda log: [len(log)])
    app.invoke({"log": ["a"]}, {"configurable": {"thread_id": "before"}})
    if where == "instance":
        put = saver.put
        monkeypatch.setattr(saver, "put", lambda *args, **kwargs: seen.append(1) or put(*args, **kwargs))
    else:
        unbound = InMemorySaver.put
        monkeypatch.setattr(InMemorySaver, "put", lambda *args, **kwargs: seen.append(1) or unbound(*args, **kwargs))

    app.invoke({"log": ["a"]}, THREAD)

    assert len(seen) == len(list(saver.list(THREAD))) > 3


def test_adding_nothing_for_ever_makes_no_chain() -> None:
    """Reading a list of one item takes no longer after two thousand empty writes."""
    saver = InMemorySaver()
    graph = StateGraph(Log).add_node("node", lambda state: {"log": [], "n": state["n"] + 1}).add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: "node" if state["n"] < 2000 else "__end__")
    graph.compile(checkpointer=saver).invoke({"log": ["a"], "n": 0}, {**THREAD, "recursion_limit": 3000})

    key = max((key for key in saver.blobs if key[2] == "log"), key=lambda key: str(key[3]))
    length = 0
    while hasattr(saver.blobs[key], "base"):
        key, length = saver.blobs[key].base, length + 1
    assert length <= 2


class Log(TypedDict):
    """A list that is written at every step."""

    log: Annotated[list[Any], operator.add]
    n: int
