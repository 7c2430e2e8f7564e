"""How a database is made ready, and what is needed for that."""

from __future__ import annotations

import subprocess
import sys

import pytest
from postgres_savers import THREAD, Called, asked, opened, put

from tracegraph.checkpoint.postgres import PostgresSaver, schema

NEWCOMER = """
import sys
from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.postgres import PostgresSaver
with PostgresSaver.from_conn_string(sys.argv[1]) as saver:
    print("ready", flush=True)
    sys.stdin.readline()
    saver.put({"configurable": {"thread_id": sys.argv[2], "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})
"""


def test_processes_that_find_an_empty_database_at_once_make_its_tables_once(postgres_url: str) -> None:
    """Eight start at the same moment; each of them saves."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", NEWCOMER, postgres_url, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()

    assert [process.returncode for process in processes] == [0] * 8
    with opened(postgres_url) as saver:
        assert len(saver.list_threads()) == 8
    assert asked(postgres_url, "SELECT version FROM tracegraph_schema") == [(len(schema.MIGRATIONS),)]


def test_setup_can_be_called_again(postgres_url: str, is_async: bool) -> None:
    """By those who always do, as with LangGraph; what is stored stays."""
    with opened(postgres_url, is_async=is_async) as saver:
        saver.setup()
        saved = put(saver)
        saver.setup()

        assert saver.get_tuple(THREAD).config == saved


def test_older_database_is_brought_up_to_date_once(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statements of each version run in their order, and not again."""
    with opened(postgres_url) as saver:
        saved = put(saver)
    later = tuple((f"CREATE TABLE later_{n} (a INTEGER)", f"INSERT INTO later_{n} VALUES ({n})") for n in range(2))
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *later))

    for _ in range(2):
        with opened(postgres_url) as saver:
            assert saver.get_tuple(THREAD).config == saved

    assert asked(postgres_url, "SELECT version FROM tracegraph_schema") == [(len(schema.MIGRATIONS),)]
    assert asked(postgres_url, "SELECT a FROM later_0 UNION ALL SELECT a FROM later_1") == [(0,), (1,)]


def test_migration_that_fails_changes_nothing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old version goes on reading it."""
    with opened(postgres_url) as saver:
        saved = put(saver)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE later (a INT)", "CREATE TABLE later (a INT)")))
        with opened(postgres_url) as saver, pytest.raises(RuntimeError, match='"later" already exists'):
            saver.setup()

    with opened(postgres_url) as saver:
        assert saver.get_tuple(THREAD).config == saved
    assert asked(postgres_url, "SELECT to_regclass('later'), (SELECT version FROM tracegraph_schema)") == [(None, 1)]


def test_tables_are_found_and_made_along_the_search_path(postgres_url: str) -> None:
    """So an application can keep them in a schema of their own."""
    asked(postgres_url, "CREATE SCHEMA memory")
    asked(postgres_url, f"ALTER DATABASE {postgres_url.rpartition('/')[2].partition('?')[0]} SET search_path = memory, public")

    with opened(postgres_url) as saver:
        put(saver)

    assert asked(postgres_url, "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'tracegraph%'") == [("memory",)]


def test_copies_of_a_saver_share_what_it_knows(postgres_url: str) -> None:
    """A graph copies the saver to add its classes to those that may be revived."""
    with PostgresSaver.from_conn_string(postgres_url) as saver:
        copy = saver.with_allowlist([])
        saved = put(Called(copy))

        assert saver._database.is_ready
        found = saver.get_tuple(THREAD)
        assert found is not None and found.config == saved


@pytest.mark.parametrize("missing", ["psycopg", "psycopg_pool"])
@pytest.mark.parametrize("module", ["tracegraph.checkpoint.postgres", "tracegraph.checkpoint.postgres.aio"])
def test_import_without_psycopg_says_what_to_install(missing: str, module: str) -> None:
    """Also where only the pool is missing, as after a plain `pip install psycopg`."""
    program = f"import sys; sys.modules[{missing!r}] = None; import {module}"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("ImportError: the PostgreSQL savers need psycopg (")
    assert done.stderr.strip().endswith("pip install tracegraph[postgres]")
