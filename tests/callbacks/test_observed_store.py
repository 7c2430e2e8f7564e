"""What stands for a store tells of calls, and is the store in everything else."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import threading
import weakref
from collections.abc import Iterable, Sized
from typing import Any, Self
from uuid import UUID

import pytest
from colours import ASYNC, SYNC, Colour
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from notes_store import ListNamespacesOp, Note, NotesStore
from notes_store import PutOp as NotePut
from small_graphs import PATIENCE_S, State, chain

from tracegraph.callbacks import AsyncCallbackHandler, BaseCallbackHandler, observed_store
from tracegraph.config import get_config, get_store
from tracegraph.errors import NodeTimeoutError
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import Runtime
from tracegraph.types import TimeoutPolicy

ANN = ("users", "ann")


class Memories(BaseCallbackHandler):
    """Writes down memory calls."""

    def __init__(self) -> None:
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.ended: list[tuple[Any, int | None]] = []
        self.errors: list[BaseException] = []

    def on_memory_start(self, operation: str, **facts: Any) -> None:  # type: ignore[override]
        self.started.append((operation, facts))

    def on_memory_end(self, records: Any, *, count: int | None = None, **_: Any) -> None:
        self.ended.append((records, count))

    def on_memory_error(self, error: BaseException, **_: Any) -> None:
        self.errors.append(error)

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.started]


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    chosen: Colour = request.param
    return chosen


def run(body: Any, store: Any, *handlers: Any, colour: Colour = SYNC) -> Any:
    """Run a graph of one node that is *body*."""
    return colour.invoke(chain_with(store, node=body), {}, {"callbacks": [*handlers]})


def chain_with(store: Any, **nodes: Any) -> Any:
    graph = StateGraph(State)
    before = START
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(before, name)
        before = name
    return graph.compile(store=store)


# --- calls --------------------------------------------------------------------------------------------------------


def uses_all(colour: Colour) -> Any:
    """Return a node that puts, gets, misses, searches, lists and deletes."""

    def sync(_: State, runtime: Runtime[Any]) -> None:
        store = runtime.store
        store.put(ANN, "tea", {"likes": "green"})
        assert store.get(ANN, "tea").value == {"likes": "green"}
        assert store.get(namespace=ANN, key="no") is None
        assert [item.key for item in store.search(("users",), query="drinks?")] == ["tea"]
        assert store.list_namespaces() == [ANN]
        store.delete(ANN, "tea")
        store.put(ANN, UUID(int=3), None)

    async def async_(_: State, runtime: Runtime[Any]) -> None:
        store = runtime.store
        await store.aput(ANN, "tea", {"likes": "green"})
        assert (await store.aget(ANN, "tea")).value == {"likes": "green"}
        assert await store.aget(namespace=ANN, key="no") is None
        assert [item.key for item in await store.asearch(("users",), query="drinks?")] == ["tea"]
        assert await store.alist_namespaces() == [ANN]
        await store.adelete(ANN, "tea")
        await store.aput(ANN, UUID(int=3), None)

    return sync if colour is SYNC else async_


@pytest.mark.parametrize("store", [NotesStore("notes"), InMemoryStore()], ids=["ours", "langgraph"])
def test_each_call_of_the_store_is_one_memory_call(store: Any, colour: Colour) -> None:
    """Put is upsert, get and search are search, delete and put of None are delete; a list of namespaces is none."""
    seen = Memories()

    run(uses_all(colour), store, seen, colour=colour)

    assert seen.operations == ["upsert_memory", *["search_memory"] * 3, *["delete_memory"] * 2]
    facts = [facts for _, facts in seen.started]
    assert [fact["record_id"] for fact in facts] == ["tea", "tea", "no", None, "tea", str(UUID(int=3))]
    assert [fact["namespace"] for fact in facts] == [ANN, ANN, ANN, ("users",), ANN, ANN]
    assert [fact["query"] for fact in facts] == [None, None, None, "drinks?", None, None]
    assert facts[0]["records"] == [{"namespace": ANN, "key": "tea", "value": {"likes": "green"}}]
    assert {fact["name"] for fact in facts} == {type(store).__name__}
    assert {fact["store_id"] for fact in facts} == {getattr(store, "store_id", None)}
    assert [count for _, count in seen.ended] == [1, 1, 0, 1, 1, 1]
    assert [None if records is None else [r.key for r in records] for records, _ in seen.ended] == [
        None, ["tea"], [], ["tea"], None, None,
    ]  # fmt: skip
    assert len({fact["parent_run_id"] for fact in facts}) == 1
    assert seen.errors == []


def test_a_batch_is_a_call_of_each_kind_that_is_in_it(colour: Colour) -> None:
    """With the number of records; of one record there is the id. An iterator of operations is read once."""
    store, seen = InMemoryStore(), Memories()
    store.put(ANN, "old", {"n": 1})
    ops = (
        PutOp(ANN, "a", {"n": 1}), GetOp(ANN, "old"), SearchOp(ANN, query="n"), PutOp(("users", "bob"), "b", {"n": 2}),
        PutOp(ANN, "old", None), GetOp(ANN, "none"),
    )  # fmt: skip

    def sync(_: State) -> None:
        assert len(get_store().batch(iter(ops))) == 6

    async def async_(_: State) -> None:
        assert len(await get_store().abatch(ops=iter(ops))) == 6

    run(sync if colour is SYNC else async_, store, seen, colour=colour)

    facts = [facts for _, facts in seen.started]
    assert seen.operations == ["upsert_memory", "search_memory", "delete_memory"]
    assert [(fact["record_id"], fact["namespace"], fact["query"]) for fact in facts] == [
        (None, None, None), (None, ANN, "n"), ("old", ANN, None),
    ]  # fmt: skip
    assert [record["key"] for record in facts[0]["records"]] == ["a", "b"]
    assert [count for _, count in seen.ended] == [2, 2, 1]
    assert [item.key for item in seen.ended[1][0]] == ["old", "old"]
    assert [item.key for item in store.search(("users",))] == ["a", "b"]


def test_what_a_batch_answers_need_not_make_sense() -> None:
    """Nor what it is asked: a store that speaks a dialect is called as it would be."""

    class Odd(NotesStore):
        def batch(self, ops: Any = None) -> Any:
            return ops

    seen, store = Memories(), Odd()

    def node(_: State) -> None:
        assert get_store().batch() is None
        assert get_store().batch("text") == "text"
        assert get_store().batch([ListNamespacesOp()]) == [ListNamespacesOp()]
        assert get_store().batch((GetOp(ANN, "a"),)) == (GetOp(ANN, "a"),)
        get_store().batch([NotePut(7, object(), 1)])  # type: ignore[arg-type]

    run(node, store, seen)

    assert [(operation, fact["namespace"], fact["record_id"]) for operation, fact in seen.started] == [
        ("search_memory", ANN, "a"), ("upsert_memory", None, None),
    ]  # fmt: skip


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt("stop")], ids=lambda error: type(error).__name__)
def test_what_the_store_raises_is_told_and_passes(error: BaseException, colour: Colour) -> None:
    """The very exception."""
    store, seen = NotesStore(), Memories()
    store.broken = error
    caught: list[BaseException] = []

    def sync(_: State) -> None:
        try:
            get_store().put(ANN, "a", {})
        except BaseException as raised:
            caught.append(raised)

    async def async_(_: State) -> None:
        try:
            await get_store().aput(ANN, "a", {})
        except BaseException as raised:
            caught.append(raised)

    run(sync if colour is SYNC else async_, store, seen, colour=colour)

    assert caught == seen.errors == [error]
    assert seen.ended == []


def test_async_handlers_have_heard_of_a_call_when_it_returns() -> None:
    """They belong to the run, which awaits them in order."""
    heard: list[str] = []

    class Slow(AsyncCallbackHandler):
        async def on_memory_start(self, operation: str, **_: Any) -> None:  # type: ignore[override]
            await asyncio.sleep(0)
            heard.append(operation)

        async def on_memory_end(self, records: Any, **_: Any) -> None:
            await asyncio.sleep(0)
            heard.append("end")

    run(uses_all(ASYNC), NotesStore(), Slow(), colour=ASYNC)

    assert heard == [
        word for operation in ["upsert", *["search"] * 3, *["delete"] * 2] for word in (f"{operation}_memory", "end")
    ]


def test_a_method_that_returns_an_awaitable_ends_when_that_does() -> None:
    """Not every async method is a coroutine function."""

    class Lazy(NotesStore):
        def aput(self, *args: Any) -> Any:  # type: ignore[override]
            return NotesStore.aput(self, *args)

    seen = Memories()

    async def node(_: State) -> None:
        waiting = get_store().aput(ANN, "a", {})
        assert (seen.operations, seen.ended) == (["upsert_memory"], [])
        await waiting

    run(node, Lazy(), seen, colour=ASYNC)
    assert seen.ended == [(None, 1)]


def test_calls_in_threads_of_the_nodes_own_are_told(colour: Colour) -> None:
    """Without the node's context they find their way by the store that the node gave them."""
    store, seen = NotesStore(), Memories()

    def node(_: State) -> None:
        thread = threading.Thread(target=get_store().put, args=(ANN, "a", {}))
        thread.start()
        thread.join(PATIENCE_S)

    run(node, store, seen, colour=colour)

    assert (seen.operations, len(store)) == (["upsert_memory"], 1)


def test_a_store_that_a_node_keeps_tells_whichever_run_calls_it() -> None:
    """It is not bound to the run it came from, nor does it keep that alive."""
    kept: list[Any] = []
    first, second = Memories(), Memories()
    store = NotesStore()

    def keep(_: State, runtime: Runtime[Any]) -> None:
        kept.append(runtime.store)
        kept.append(weakref.ref(runtime.heartbeat.__self__))  # type: ignore[attr-defined]

    run(keep, store, first)
    run(lambda _: kept[0].put(ANN, "a", {}), store, second)
    kept[0].put(ANN, "b", {})
    gc.collect()

    assert (first.operations, second.operations, len(store)) == ([], ["upsert_memory"], 2)
    assert kept[1]() is None


def test_a_store_that_nodes_get_elsewhere_can_be_observed() -> None:
    """By hand; in a run that nobody watches, and outside of runs, it is called and no more."""
    store, seen = observed_store(NotesStore()), Memories()

    def node(_: State) -> None:
        store.put(ANN, "a", {})

    run(node, None, seen)
    run(node, None)
    store.put(ANN, "a", {})

    assert seen.operations == ["upsert_memory"]


def test_an_observed_store_is_not_observed_twice() -> None:
    """Given to a graph, it is one call all the same."""
    seen = Memories()
    run(lambda _: get_store().put(ANN, "a", {}), observed_store(NotesStore()), seen)
    assert seen.operations == ["upsert_memory"]


def test_child_runs_tell_of_the_same_store(colour: Colour) -> None:
    """Once, below their own node."""
    seen = Memories()
    child = chain(inner=lambda _: get_store().put(ANN, "a", {}))

    run(child, NotesStore(), seen, colour=colour)

    assert seen.operations == ["upsert_memory"]


@pytest.mark.parametrize("flag", ["ignore_memory", None])
def test_a_handler_can_ignore_memory_or_know_nothing_of_it(flag: str | None) -> None:
    """Then nobody listens, and the node has the store itself."""

    class Old:
        ignore_memory = flag is not None

        def on_chain_start(self, *_: Any, **__: Any) -> None:
            """Be told of nodes."""

    handler = Old()
    if flag is not None:
        handler.on_memory_start = print  # type: ignore[attr-defined]
    store, found = NotesStore(), []
    run(lambda _: found.append(get_store()), store, handler)
    assert found == [store]
    assert found[0] is store


def test_a_silent_node_is_silent_whether_its_store_is_observed_or_not() -> None:
    """A call of the store is no sign of progress, else a handler would change how a run ends."""
    puts = []

    async def node(_: State) -> None:
        while True:
            await get_store().aput(ANN, str(len(puts)), {})
            puts.append(1)
            await asyncio.sleep(0.001)

    graph = StateGraph(State).add_node("node", node, timeout=TimeoutPolicy(idle_timeout=0.05)).add_edge(START, "node")
    with pytest.raises(NodeTimeoutError):
        ASYNC.invoke(graph.compile(store=NotesStore()), {}, {"callbacks": [Memories()]})
    assert puts


# --- likeness -----------------------------------------------------------------------------------------------------


def test_it_passes_for_the_store() -> None:
    """Class, attributes, operators, special methods, signatures and copies."""
    store = NotesStore("n")
    seen = observed_store(store)
    store.put(ANN, "a", {})

    assert isinstance(seen, NotesStore)
    assert isinstance(seen, Sized)
    assert not isinstance(seen, Iterable)
    assert not callable(seen)
    assert (len(seen), bool(observed_store(NotesStore())), repr(seen)) == (1, False, repr(store))
    assert seen == store
    assert store == seen
    assert observed_store(seen) == seen
    assert hash(seen) == hash(store)
    assert seen != NotesStore()
    assert vars(seen) is vars(store)
    assert dir(seen) == dir(store)
    assert inspect.signature(seen.put) == inspect.signature(store.put)
    assert inspect.iscoroutinefunction(seen.aput)
    assert seen.notes is store.notes
    with pytest.raises(AttributeError, match="'NotesStore' object has no attribute 'nothing'"):
        _ = seen.nothing
    seen.extra = 1
    assert vars(store)["extra"] == 1
    del seen.extra
    assert not hasattr(store, "extra")
    assert type(copy.copy(seen)) is NotesStore
    assert type(copy.deepcopy(seen)) is NotesStore
    assert isinstance(observed_store(InMemoryStore()), BaseStore)


def test_a_store_may_be_more_than_a_store() -> None:
    """A context manager gives what it was asked as, so calls inside are told as well; an unhashable one stays so."""

    class Shelf(dict[Any, Any]):
        put = search = delete = dict.get

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self["closed"] = True

    shelf = Shelf(a=1)
    seen = observed_store(shelf)
    with seen as entered:
        assert entered is seen
    seen["b"] = 2
    del seen["a"]
    assert shelf == {"closed": True, "b": 2} == seen
    assert "b" in seen
    assert [*seen] == ["closed", "b"]
    assert seen | {"c": 3} == {**shelf, "c": 3}
    with pytest.raises(TypeError, match="unhashable"):
        hash(seen)


@pytest.mark.parametrize("store", [{"n": 7}, "a store", 0, object(), None])
def test_what_is_no_store_is_handed_on_as_it_is(store: Any, colour: Colour) -> None:
    """Any object may be given."""
    found = []
    run(lambda _: found.append(get_store()), store, Memories(), colour=colour)
    assert found[0] is store


def test_a_node_finds_one_store_however_it_asks() -> None:
    """As a parameter, in its runtime, by function: the same object; and another that is equal, in the next node."""
    found: list[Any] = []

    def by_name(_: State, store: NotesStore, runtime: Runtime[Any]) -> None:
        found.extend([store, runtime.store, get_store()])

    graph = chain_with(NotesStore(), first=by_name, second=by_name)
    graph.invoke({}, {"callbacks": [Memories()]})

    assert found[0] is found[1] is found[2]
    assert found[3] is found[4] is found[5]
    assert found[0] == found[3]


def test_node_code_can_tell_of_a_memory_of_its_own(colour: Colour) -> None:
    """Through its config, as it tells of models and tools."""
    seen = Memories()

    def node(_: State) -> None:
        call = get_config()["callbacks"].on_memory_start("create_memory_store", store_id="faq")
        call.on_memory_end()

    run(node, None, seen, colour=colour)

    assert (seen.operations, seen.ended) == (["create_memory_store"], [(None, None)])
    assert seen.started[0][1]["store_id"] == "faq"


def test_notes_are_found_with_their_fields() -> None:
    """The tests' own store does what it says."""
    store = NotesStore()
    store.put(ANN, "a", {"n": 1})
    assert store.search(("users",)) == [Note(ANN, "a", {"n": 1})]


async def test_a_store_that_gathers_calls_in_the_background_is_observed() -> None:
    """LangGraph's on SQLite, which refers to itself and refuses sync calls on its own loop."""
    seen = Memories()

    async def node(_: State) -> None:
        store = get_store()
        await asyncio.gather(*(store.aput(ANN, str(n), {"n": n}) for n in range(3)))
        assert len(await store.asearch(ANN)) == 3
        with pytest.raises(asyncio.InvalidStateError):
            store.get(ANN, "1")

    async with AsyncSqliteStore.from_conn_string(":memory:") as store:
        await store.setup()
        await chain_with(store, node=node).ainvoke({}, {"callbacks": [seen]})

    assert seen.operations == [*["upsert_memory"] * 3, "search_memory", "search_memory"]
    assert [count for _, count in seen.ended] == [1, 1, 1, 3]
    assert [type(error) for error in seen.errors] == [asyncio.InvalidStateError]
