"""Golden vectors of the ids: a byte hashed differently orphans the stored writes of every paused thread.

The formula, recomputed here with xxhash alone::

    id = uuid_text(xxh3_128(bytes of the checkpoint's UUID + ns + str(step) + name + kind + tail))

    ns      checkpoint namespace of the graph + "|" + node name; the name alone at the root
    kind    "__pregel_pull" for a triggered node, "__pregel_push" for a Send, a task() call or an error handler
    tail    the sorted triggers; the Send's index; the caller's path and the call's index;
            "node_error_handler" and the failed task's id

The constants were recorded from a run of langgraph 1.2.24 (stream modes tasks and checkpoints), not computed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest
from xxhash import xxh3_128_hexdigest

from tracegraph.engine import identity

PULL, PUSH = "__pregel_pull", "__pregel_push"

# One run: fan -> two Sends to work -> join -> last, a subgraph whose node asks two questions.
FAN_AT = "1f1ecbe0-2676-65c2-8000-0226701d4376"
FAN = "aa93f4b2-5c42-eb83-a512-55e5a13a5eeb"
WORK_AT = "1f1ecbe0-2679-69bf-8001-d16162c336ae"
WORK = ("9e007540-8c64-1d47-c7f6-a3974abf2f4d", "7bfd9bd0-46e4-113b-2eca-d8d79707f42d")
LAST_AT = "1f1ecbe0-267d-63cf-8002-e0c27b6cb084"
LAST = "7a687ced-18e4-d7b0-55a2-73ae28180b44"
DEEP_AT = "1f1ecbe0-2680-6a36-8000-e9a776bb616e"
DEEP = "63bdb521-a393-37f0-baa5-11684cdff3bf"
QUESTIONS = ("3ead92be7cc30af369d1991e00b700b3", "c7baf97f37724e03c17f8ae69fefc62f")
# Another: an entrypoint calls one and two, and two calls one.
FLOW_AT = "1f1ecbe0-268b-695a-bfff-b40912df2e27"
FLOW = "7d9f3ce9-4360-5a4c-b3d8-aefdac01aee2"
ONE = "7db845a1-8c14-2fdf-72f6-b740181a05a4"
TWO = "82d9f3b1-d1ab-a47b-d994-06b217fda081"
ONE_OF_TWO = "1d3ec57d-27ea-7faf-aefe-dff6161fe6fd"


def by_formula(checkpoint_id: str, *parts: str) -> str:
    """Return the id that the formula above gives."""
    digest = xxh3_128_hexdigest(UUID(checkpoint_id).bytes + "".join(parts).encode())
    return str(UUID(digest))


def pulled(checkpoint_id: str, ns: str, step: int, name: str, triggers: Iterable[str]) -> str:
    return identity.task_id(UUID(checkpoint_id).bytes, ns, step, name, identity.pull_suffix(name, sorted(triggers)))


def sent(checkpoint_id: str, ns: str, step: int, name: str, index: int) -> str:
    return identity.task_id(UUID(checkpoint_id).bytes, ns, step, name, identity.send_suffix(name, index))


def called(checkpoint_id: str, ns: str, name: str, caller_path: Any, index: int) -> str:
    return identity.task_id(UUID(checkpoint_id).bytes, ns, 0, name, identity.call_suffix(name, caller_path, index))


def test_triggered_node_has_the_recorded_id() -> None:
    """At the root the namespace is the node's name."""
    assert pulled(FAN_AT, "", 1, "fan", ["branch:to:fan"]) == FAN
    assert by_formula(FAN_AT, "fan", "1", "fan", PULL, "branch:to:fan") == FAN


def test_node_with_several_triggers_hashes_all_of_them_sorted() -> None:
    """A join adds its channel to the triggers, whichever of them fired."""
    assert pulled(LAST_AT, "", 3, "last", ["join:fan+work:last", "branch:to:last"]) == LAST
    assert by_formula(LAST_AT, "last", "3", "last", PULL, "branch:to:last", "join:fan+work:last") == LAST


def test_each_send_has_an_id_by_its_index() -> None:
    """Two packets with equal arguments are two tasks."""
    assert tuple(sent(WORK_AT, "", 2, "work", i) for i in (0, 1)) == WORK
    assert tuple(by_formula(WORK_AT, "work", "2", "work", PUSH, str(i)) for i in (0, 1)) == WORK


def test_node_of_a_subgraph_hashes_the_namespace_of_its_graph() -> None:
    """The enclosing task's id is part of the namespace, so the same subgraph in two tasks has different ids."""
    ns = identity.task_namespace("", "last", LAST)

    assert ns == f"last:{LAST}"
    assert pulled(DEEP_AT, ns, 1, "deep", ["branch:to:deep"]) == DEEP
    assert by_formula(DEEP_AT, f"{ns}|deep", "1", "deep", PULL, "branch:to:deep") == DEEP


def test_questions_of_a_task_are_numbered_after_the_first() -> None:
    """The first id is the hash of the task's full namespace; later ones add how many answers there are."""
    ns = identity.task_namespace(identity.task_namespace("", "last", LAST), "deep", DEEP)

    assert ns == f"last:{LAST}|deep:{DEEP}"
    assert tuple(identity.interrupt_id(ns, answered) for answered in (0, 1)) == QUESTIONS
    assert (xxh3_128_hexdigest(ns.encode()), xxh3_128_hexdigest(f"{ns}|1".encode())) == QUESTIONS


def test_called_function_hashes_its_callers_path_and_the_index_of_the_call() -> None:
    """A call made by a called function carries the whole chain of paths."""
    flow_ns = f"flow:{FLOW}"
    flow_path = (PULL, "flow")
    two_path = (PUSH, flow_path, 1, True)

    assert pulled(FLOW_AT, "", 0, "flow", ["__start__"]) == FLOW
    assert called(FLOW_AT, flow_ns, "one", flow_path, 0) == ONE
    assert called(FLOW_AT, flow_ns, "two", flow_path, 1) == TWO
    assert called(FLOW_AT, f"{flow_ns}|two:{TWO}", "one", two_path, 0) == ONE_OF_TWO
    assert by_formula(FLOW_AT, f"{flow_ns}|one", "0", "one", PUSH, f"~{PULL}, flow", "0") == ONE


def test_error_handler_hashes_the_id_of_the_task_that_failed() -> None:
    """Two tasks that fail in one step have a handler task each."""
    suffix = identity.handler_suffix("rescue", FAN)

    found = identity.task_id(UUID(FAN_AT).bytes, "", 1, "rescue", suffix)

    assert found == by_formula(FAN_AT, "rescue", "1", "rescue", PUSH, "node_error_handler", FAN)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "~"),
        ((PULL, "fan"), "~__pregel_pull, fan"),
        ([PULL, "fan"], "~__pregel_pull, fan"),
        ((PUSH, 12, False), "~__pregel_push, 0000000012, 0000000000"),
        ((PUSH, (PULL, "flow"), 1, True), "~__pregel_push, ~__pregel_pull, flow, 0000000001, 0000000001"),
    ],
)
def test_path_text_is_the_documented_one(path: Any, text: str) -> None:
    """Numbers are padded, so the tenth Send sorts after the second."""
    assert identity.path_text(path) == text


def test_paths_sort_input_first_then_nodes_by_name_then_sends_by_index_then_calls() -> None:
    """This order is the order in which writes are merged."""
    ordered = [(), ("__interrupt__", 0), (PULL, "a"), (PULL, "b"), (PUSH, (PULL, "a"), 0, True)]
    sends = [(PUSH, i, False) for i in (0, 2, 10)]

    assert sorted([*reversed(ordered[:4]), *reversed(sends)], key=identity.path_text) == [*ordered[:4], *sends]
    assert identity.path_text(sends[-1]) < identity.path_text(ordered[-1])


def test_every_fact_of_a_task_changes_its_id() -> None:
    """Checkpoint, namespace, step, node, kind, triggers and index each make another task."""
    ids = [
        pulled(FAN_AT, "", 1, "fan", ["branch:to:fan"]),
        pulled(WORK_AT, "", 1, "fan", ["branch:to:fan"]),
        pulled(FAN_AT, "outer:1", 1, "fan", ["branch:to:fan"]),
        pulled(FAN_AT, "", 2, "fan", ["branch:to:fan"]),
        pulled(FAN_AT, "", 1, "nab", ["branch:to:fan"]),
        pulled(FAN_AT, "", 1, "fan", ["branch:to:fan", "join:a+b:fan"]),
        sent(FAN_AT, "", 1, "fan", 0),
        sent(FAN_AT, "", 1, "fan", 1),
        called(FAN_AT, "", "fan", (PULL, "a"), 0),
    ]

    assert all(a != b for a, b in combinations(ids, 2))


def test_ids_are_uuid_texts() -> None:
    """Savers and backends may take them for UUIDs; run ids inside a run are made the same way."""
    for text in (FAN, identity.derived_uuid_text(UUID(FAN_AT).bytes, FAN, "1")):
        assert str(UUID(text)) == text
    assert identity.derived_uuid_text(UUID(FAN_AT).bytes, FAN, "1") == by_formula(FAN_AT, FAN, "1")


def test_hash_text_is_xxh3_of_128_bits() -> None:
    """The digest of nothing is a constant of the algorithm."""
    assert identity.hash_text("") == "99aa06d3014798d86001c324468d497f"
