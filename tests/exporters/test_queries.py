"""Questions to the store: filters, sums and costs, long traces folded, two runs compared, and what is new."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from span_story import Story

from tracegraph_exporters import (
    Follower,
    SQLiteSpanExporter,
    TraceFilter,
    TraceStore,
    TraceStoreError,
    compare,
    folded_tree,
    operation_stats,
    render_plain,
)
from tracegraph_exporters.database import Layout, open_writer
from tracegraph_exporters.schema import MIGRATIONS

OLD_STORE = Path(__file__).parent / "data" / "traces_v1.db"
S = 1_000_000_000


@pytest.fixture
def opened(story: Story, path: Path) -> Iterator[TraceStore]:
    story.run("quick", at_ms=0)
    story.run("slow", at_ms=10_000, thread="t-2", took_ms=5_000, node="other", model="claude-x", tool="mail")
    story.run("broken", at_ms=20_000, error=True)
    with TraceStore(path) as store:
        yield store


@pytest.mark.parametrize(
    ("tests", "found"),
    [
        ({}, ["broken", "slow", "quick"]),
        ({"has_error": True}, ["broken"]),
        ({"status": "failed"}, ["broken"]),
        ({"slower_ns": 2 * S}, ["slow"]),
        ({"slower_ns": 5 * S}, []),
        ({"node": "other"}, ["slow"]),
        ({"node": "work"}, ["broken", "quick"]),
        ({"node": "no such"}, []),
        ({"model": "claude-x"}, ["slow"]),
        ({"tool": "mail"}, ["slow"]),
        ({"graph": "quick"}, ["quick"]),
        ({"thread_id": "t-2"}, ["slow"]),
        ({"thread_id": "' OR 1 = 1 --"}, []),
        ({"name": "ick"}, ["quick"]),
        ({"node": "work", "has_error": True, "thread_id": "t-1", "status": "failed"}, ["broken"]),
        ({"node": "work", "thread_id": "t-2"}, []),
    ],
)
def test_filters_choose_traces_and_may_be_combined(opened: TraceStore, tests: dict[str, Any], found: list[str]) -> None:
    """Newest first; of several conditions all hold."""
    names = [(trace.name or "").partition(" ")[2] for trace in opened.find(TraceFilter(**tests))]
    assert names == found
    assert [(trace.name or "").partition(" ")[2] for trace in opened.traces(**tests)] == found


def test_since_and_until_bound_the_start(opened: TraceStore) -> None:
    """The first instant counts, the last does not."""
    quick, slow, broken = (trace.start_ns for trace in reversed(opened.traces()))
    assert [t.start_ns for t in opened.find(TraceFilter(since_ns=slow))] == [broken, slow]
    assert [t.start_ns for t in opened.find(TraceFilter(since_ns=quick, until_ns=slow))] == [quick]


def test_filters_speak_of_what_runs_too(story: Story, path: Path) -> None:
    """A node that has not ended, and a run that is slow so far."""
    root = story.maker.start("invoke_workflow g")
    task = story.maker.start(
        "run_step stuck", root, attributes={"gen_ai.operation.name": "run_step", "gen_ai.step.name": "stuck"}
    )
    story.exporter.export_open([root, task])

    with TraceStore(path) as store:
        for tests in ({"node": "stuck"}, {"graph": "g"}, {"slower_ns": S}, {"status": "running", "node": "stuck"}):
            assert len(store.traces(**tests)) == 1
        assert store.traces(node="other") == []
    story.maker.end(task)
    story.maker.end(root)


def test_sums_are_by_kind_and_name(opened: TraceStore) -> None:
    """Counts, errors and percentiles of each; tokens also of the node, tool and graph around a call."""
    found = {(one.kind, one.name): one for one in operation_stats(opened)}

    work = found["node", "work"]
    assert (work.count, work.errors, work.input_tokens, work.output_tokens) == (2, 1, 200, 40)
    assert found["model", "gpt-4o"].count == 2
    assert (
        found["graph", "slow"].input_tokens
        == found["node", "other"].input_tokens
        == found["model", "claude-x"].input_tokens
        == 100
    )
    assert found["tool", "mail"].input_tokens == 0
    assert [one.kind for one in operation_stats(opened, kinds=["tool", "node"])] == ["node", "node", "tool", "tool"]
    only = operation_stats(opened, TraceFilter(thread_id="t-2"))
    assert {(one.kind, one.name) for one in only} == {
        ("graph", "slow"),
        ("node", "other"),
        ("model", "claude-x"),
        ("tool", "mail"),
    }


def test_percentiles_are_nearest_ranks(story: Story, path: Path) -> None:
    """Of 1 to 100 ms in any order 50 and 95 ms."""
    durations = random.Random(1).sample(range(1, 101), 100)
    for at, took_ms in enumerate(durations):
        story.run("g", at_ms=at * 1_000, took_ms=took_ms)

    with TraceStore(path) as store:
        (graph,) = operation_stats(store, kinds=["graph"])
    assert (graph.count, graph.p50_ns, graph.p95_ns) == (100, 50_000_000, 95_000_000)


def test_cost_is_that_of_each_call_at_its_own_tier(story: Story, path: Path) -> None:
    """Many small requests must not be priced as one large one; a model that no list has is counted."""
    genai_prices = pytest.importorskip("genai_prices")
    for at in range(10):
        story.run("g", at_ms=at * 1_000, model="gemini-2.5-pro", provider="gcp.gemini", tokens=(100_000, 1_000))
    story.run("g", at_ms=99_000, model="gemini-2.5-pro", provider="gcp.gemini", tokens=(300_000, 1_000))
    story.run("g", at_ms=100_000, model="no such model", provider="nobody")

    with TraceStore(path) as store:
        found = {one.name: one for one in operation_stats(store, kinds=["model"])}
        (graph,) = operation_stats(store, kinds=["graph"])
    each = [
        genai_prices.calc_price(
            genai_prices.Usage(input_tokens=count, output_tokens=1_000), "gemini-2.5-pro", provider_id="google"
        )
        for count in [100_000] * 10 + [300_000]
    ]
    expected = float(sum(price.total_price for price in each))
    assert found["gemini-2.5-pro"].cost == pytest.approx(expected)
    assert (found["no such model"].cost, found["no such model"].unpriced) == (None, 1)
    assert graph.cost == pytest.approx(expected)


def test_span_exported_twice_counts_once(story: Story, path: Path) -> None:
    """A batch may be tried again after it was written."""
    batch = story.spans("g")
    story.exporter.export(batch)
    story.exporter.export(batch)

    with TraceStore(path) as store:
        assert {(one.kind, one.count) for one in operation_stats(store)} == {("graph", 1), ("node", 1), ("model", 1), ("tool", 1)}


def test_odd_attributes_of_other_applications_do_no_harm(story: Story, path: Path) -> None:
    """Any of them may be of any type."""
    odd = {"gen_ai.operation.name": "chat", "gen_ai.request.model": 7, "gen_ai.usage.input_tokens": "many"}
    story.exporter.export([story.maker.end(story.maker.start("chat 7", attributes=odd | {"gen_ai.usage.output_tokens": 1.0}))])
    story.exporter.export([story.maker.end(story.maker.start("x", attributes={"gen_ai.operation.name": ("chat",)}))])

    with TraceStore(path) as store:
        (one,) = operation_stats(store)
    assert (one.name, one.input_tokens, one.output_tokens) == ("7", 0, 1)


@pytest.mark.parametrize("version", [1, 2])
def test_older_store_answers_the_same_before_and_after_it_is_migrated(
    story: Story, path: Path, tmp_path: Path, version: int
) -> None:
    """Reading changes nothing in it; the next writer brings it up to date."""
    story.run("g", at_ms=0)
    story.run("h", at_ms=1_000, node="other")
    old = tmp_path / "old.db"
    with closing(open_writer(old, Layout("trace store", MIGRATIONS[:version], TraceStoreError))) as connection:
        connection.execute("ATTACH ? AS new", (str(path),))
        for table in ("resources", "spans", "links", "traces"):
            connection.execute(f"INSERT INTO {table} SELECT * FROM new.{table}")
    with TraceStore(path) as store:
        expected = operation_stats(store)

    with TraceStore(old) as store:
        assert operation_stats(store) == expected
        assert [trace.name for trace in store.traces(node="other")] == ["invoke_workflow h"]
        assert store.query("PRAGMA user_version") == [(version,)]
    exporter = SQLiteSpanExporter(old)
    exporter.export(story.maker.run())
    exporter.shutdown()
    with TraceStore(old) as store:
        assert store.query("PRAGMA user_version") == [(len(MIGRATIONS),)]
        # The new run's spans say of themselves no operation, so nothing is added.
        assert operation_stats(store) == expected
        assert [trace.name for trace in store.traces(node="other")] == ["invoke_workflow h"]


def test_store_of_version_1_from_its_time_is_migrated(path: Path) -> None:
    """A file that an old release really wrote."""
    shutil.copy(OLD_STORE, path)
    SQLiteSpanExporter(path).export([])
    with TraceStore(path) as store:
        assert store.query("PRAGMA user_version") == [(len(MIGRATIONS),)]
        assert len(store.traces()) == 2


def test_long_trace_is_folded_and_says_so(story: Story, path: Path) -> None:
    """Below each span so many; what is left out is counted, with its errors."""
    root = story.maker.start("invoke_workflow g")
    for number in range(60):
        child = story.maker.start(f"run_step {number}", root, at_ms=number)
        inner = story.maker.end(story.maker.start("inside", child, at_ms=number), at_ms=number + 1)
        story.maker.end(story.failed(child) if number == 59 else child, at_ms=number + 1)
        assert inner is not None
    story.maker.end(root, at_ms=100)
    story.exporter.export(story.maker.take())

    with TraceStore(path) as store:
        roots, folded = folded_tree(store, store.resolve("latest"), 50)
        everything, none = folded_tree(store, store.resolve("latest"), 60)
    lines = render_plain(roots, max_siblings=None).splitlines()
    assert folded == 20
    assert lines[-1] == "  ... and 10 more (20 spans, 1 with errors)"
    assert len(lines) == 1 + 100 + 1
    assert (none, len(render_plain(everything, max_siblings=None).splitlines())) == (0, 121)


def test_compared_runs_part_where_their_paths_do(story: Story, path: Path) -> None:
    """Parallel tasks are in the order of their names, whichever was first; values are compared where both have them."""
    story.path([(1, "a", '{"n":1}'), (2, "c", None), (2, "b", None), (3, "d", None)])
    story.path([(1, "a", '{"n":2,"m":0}'), (2, "b", None), (2, "c", None), (3, "e", None), (4, "d", None)], at_ms=1_000)

    with TraceStore(path) as store:
        b, a = (store.spans(trace.trace_id) for trace in store.traces())
    pairs = compare(a, b)
    assert [(pair.kind, (pair.a or pair.b).path) for pair in pairs if pair.a or pair.b] == [  # type: ignore[union-attr]
        ("changed", ("a",)), ("same", ("b",)), ("same", ("c",)), ("only_b", ("e",)), ("same", ("d",)),
    ]  # fmt: skip
    assert pairs[0].changed == {"output.m": (None, 0), "output.n": (1, 2)}
    assert all(pair.kind == "same" for pair in compare(a, a))
    assert [pair.kind for pair in compare(a, [])] == ["only_a"] * 4


def test_follower_tells_each_start_and_end_once(story: Story, path: Path) -> None:
    """What runs when it begins to look, then what is new; events in between."""
    story.run("before")
    root = story.maker.start(
        "invoke_workflow g", attributes={"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "g"}
    )
    story.exporter.export_open([root])
    with TraceStore(path) as store:
        follower = Follower(store)
        assert [(point.point, point.name) for point in follower.poll()] == [("graph.started", "g")]
        assert follower.poll() == []

        task = story.maker.start(
            "run_step n", root, at_ms=1, attributes={"gen_ai.operation.name": "run_step", "gen_ai.step.name": "n"}
        )
        task.add_event("tracegraph.task.retry", {"error.type": "X"}, timestamp=root.start_time + 2_000_000)
        story.exporter.export([story.maker.end(task, at_ms=3)])
        found = follower.poll()
        assert [(point.point, point.name) for point in found] == [
            ("node.started", "n"), ("tracegraph.task.retry", "n"), ("node.ended", "n"),
        ]  # fmt: skip
        assert found[1].attributes == {"error.type": "X"}

        story.exporter.export([story.maker.end(root, at_ms=9)])
        assert [(point.point, point.duration_ns) for point in follower.poll()] == [("graph.ended", 9_000_000)]
        assert follower.poll() == []


def test_sql_that_is_none_is_one_clear_error(opened: TraceStore) -> None:
    """And nobody can write through the read side."""
    with pytest.raises(TraceStoreError, match="cannot be read"):
        opened.query("SELEKT 1")
    with pytest.raises(TraceStoreError, match="readonly"):
        opened.query("DELETE FROM spans")
    assert json.loads(opened.query("SELECT attributes FROM spans LIMIT 1")[0][0])
    assert sqlite3.connect(opened.path).execute("SELECT count(*) FROM spans").fetchone()[0] > 0
