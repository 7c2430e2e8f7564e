"""Schema versions: databases of earlier versions are read, and brought up to date."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tracegraph.checkpoint.sqlite import SqliteSaver, SqliteSaverError, schema

VERSION_1 = Path(__file__).with_name("version_1.db")
"""Made by ``make_version_1()`` when the schema was frozen; it must never be made anew."""

ROOT: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
IDS = [f"1f000000-0000-6000-800{n}-000000000000" for n in range(3)]
VERSIONS = [f"{n:032}.{n:016}" for n in range(1, 4)]


def make_version_1(path: Path) -> None:
    """Write three checkpoints of a thread with a pending question, and one of a subgraph."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA page_size = 512")
    saver = SqliteSaver(connection)
    for n, (checkpoint_id, version) in enumerate(zip(IDS, VERSIONS, strict=True)):
        checkpoint: Any = {
            "v": 4,
            "id": checkpoint_id,
            "ts": "2026-11-30T00:00:00+00:00",
            "channel_values": {"a": n, "b": (n, {1})},
        }
        checkpoint |= {"channel_versions": {"a": version, "b": VERSIONS[0]}, "versions_seen": {"x": {"a": version}}}
        checkpoint |= {"updated_channels": ["a"]}
        where = ROOT if n == 0 else {"configurable": ROOT["configurable"] | {"checkpoint_id": IDS[n - 1]}}
        new = {"a": version, "b": version} if n == 0 else {"a": version}
        saver.put(where, checkpoint, {"source": "loop", "step": n, "run_id": "r1"}, new)  # type: ignore[arg-type]
        saver.put_writes({"configurable": ROOT["configurable"] | {"checkpoint_id": checkpoint_id}}, [("a", n + 1)], "t1", "~x")
    saver.put(
        {"configurable": {"thread_id": "1", "checkpoint_ns": "x:1"}},
        checkpoint,
        {"source": "input"},
        checkpoint["channel_versions"],
    )
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(VERSION_1, tmp_path / "old.db"))


def check(saver: SqliteSaver) -> None:
    found = list(saver.list(ROOT))
    assert [(each.checkpoint["id"], each.metadata["step"]) for each in found] == [(IDS[n], n) for n in (2, 1, 0)]
    assert [each.checkpoint["channel_values"] for each in found] == [{"a": n, "b": (0, {1})} for n in (2, 1, 0)]
    assert [each.pending_writes for each in found] == [[("t1", "a", n + 1)] for n in (2, 1, 0)]
    assert found[0].checkpoint == saver.get({"configurable": {"thread_id": "1", "checkpoint_ns": "x:1"}}) | {
        "channel_values": {"a": 2, "b": (0, {1})}
    }
    assert found[0].checkpoint["channel_versions"] == {"a": VERSIONS[2], "b": VERSIONS[0]}
    assert found[0].checkpoint["versions_seen"] == {"x": {"a": VERSIONS[2]}}


def test_database_of_version_1_reads_as_it_was_written(old: Path) -> None:
    """Values, versions, metadata, pending writes, namespaces."""
    with SqliteSaver.from_conn_string(old) as saver:
        check(saver)
        saver.delete_for_runs(["r1"])
        assert list(saver.list(ROOT)) == []


def test_older_database_is_brought_up_to_date_once(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version's statements run in their order, in one transaction, and not again."""
    newer = (*schema.MIGRATIONS, *((f"CREATE TABLE later_{n} (a)",) for n in range(2)))
    monkeypatch.setattr(schema, "MIGRATIONS", newer)

    for _ in range(2):
        with SqliteSaver.from_conn_string(old) as saver:
            check(saver)
            assert saver.conn.execute("PRAGMA user_version").fetchone() == (len(newer),)


def test_migration_that_fails_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old version goes on reading it."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE later (a)", "CREATE TABLE later (a)")))
        with SqliteSaver.from_conn_string(old) as saver, pytest.raises(sqlite3.OperationalError, match="later already exists"):
            saver.setup()

    with SqliteSaver.from_conn_string(old) as saver:
        check(saver)


def test_older_database_that_cannot_be_written_is_refused(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that opening it once for writing is enough."""
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE later (a)",)))

    with SqliteSaver.from_conn_string(f"file:{old}?mode=ro") as saver, pytest.raises(SqliteSaverError) as caught:
        saver.get_tuple(ROOT)

    assert caught.value.reason == "older"
