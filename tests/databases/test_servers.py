"""The database servers that tests get: they answer, are apart, and do not outlive the test run."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from kept_process import CannotStartError, kept_process, new_folder
from postgres_server import find_programs, new_database, running_server

SUPPORT = Path(__file__).parent.parent / "support"

HOST = """
import sys
from postgres_server import find_programs, running_server
with running_server(find_programs()[0]) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def server_of_another_run() -> Iterator[tuple[subprocess.Popen[str], str]]:
    host = subprocess.Popen([sys.executable, "-c", HOST], cwd=SUPPORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with host:
        assert host.stdout is not None
        yield host, host.stdout.readline().strip()


def wait_for_end(connection: psycopg.Connection) -> None:
    readable, _, _ = select([connection.fileno()], [], [], 30)
    assert readable, "the server is still there"
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()


def folder_of(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def test_database_answers_and_is_empty(postgres_url: str) -> None:
    """A real server, of a version with what we use, and nothing in the database."""
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        assert tables == (0,)
        assert connection.info.server_version >= 150000


def test_every_server_of_this_machine_can_be_started() -> None:
    """Where the wheel is missing, an installed server has to do."""
    assert find_programs()
    for programs in find_programs():
        with running_server(programs) as url, psycopg.connect(url) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("off",)


def test_databases_are_apart(postgres_server: str, postgres_url: str) -> None:
    """What one test writes no other one sees, and it goes although a connection is open."""
    with new_database(postgres_server) as other:
        writing = psycopg.connect(other, autocommit=True)
        writing.execute("CREATE TABLE t (n int)")
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute("SELECT to_regclass('t')").fetchone() == (None,)

    wait_for_end(writing)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(other)


def test_pgbouncer_hands_out_connections_for_one_transaction(pgbouncer_url: str, postgres_url: str) -> None:
    """Four clients that take turns are served by at most two connections, to the test's own database."""
    with psycopg.connect(postgres_url) as direct:
        direct.execute("CREATE TABLE t (n int)")
    clients = [psycopg.connect(pgbouncer_url, autocommit=True, prepare_threshold=None) for _ in range(4)]

    backends = {client.execute("INSERT INTO t VALUES (1) RETURNING pg_backend_pid()").fetchone() for client in clients}

    assert 1 <= len(backends) <= 2
    assert clients[0].execute("SELECT count(*) FROM t").fetchone() == (4,)
    for client in clients:
        client.close()


def test_server_ends_with_a_killed_test_run() -> None:
    """Nobody has to stop it, and its folder is gone."""
    with server_of_another_run() as (host, url):
        connection = psycopg.connect(url)
        with (folder_of(url) / "lock").open() as lock:
            host.kill()
            wait_for_end(connection)
            fcntl.flock(lock, fcntl.LOCK_EX)  # the keeper holds it until it has tidied up
        assert not folder_of(url).exists()


def test_server_of_a_killed_keeper_is_removed_by_the_next_run() -> None:
    """Found by the lock that nobody holds, ended by its pid."""
    with server_of_another_run() as (host, url):
        folder = folder_of(url)
        connection = psycopg.connect(url)
        pid = (folder / "pid").read_text()
        parent = subprocess.run(["ps", "-o", "ppid=", "-p", pid], capture_output=True, text=True, check=True)
        os.kill(int(parent.stdout), signal.SIGKILL)
        host.kill()
        host.wait()

        mine = new_folder()

        wait_for_end(connection)
        assert not (folder / "pid").exists()
        assert mine.path.exists()
        os.close(mine.lock)


def test_server_in_use_is_nobodys_leftover(postgres_url: str) -> None:
    """Several test runs start at once and sweep while others run."""
    with server_of_another_run() as (host, url):
        os.close(new_folder().lock)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        host.communicate()
    assert not folder_of(url).exists()


def test_server_that_does_not_start_says_why() -> None:
    """The error holds what the program printed, and nothing is left."""
    folder = new_folder()
    command = [str(find_programs()[0] / "postgres"), "-D", str(folder.path / "nothing")]

    with pytest.raises(CannotStartError, match="nothing"), kept_process(folder, command, "ready"):
        raise AssertionError("not reached")

    assert not folder.path.exists()
