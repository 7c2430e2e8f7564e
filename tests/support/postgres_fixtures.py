"""Fixtures with a real PostgreSQL, for every test. ``conftest.py`` exposes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from postgres_server import (
    NO_SERVER,
    find_pgbouncer,
    find_programs,
    new_database,
    running_pgbouncer,
    running_server,
    with_database,
)

__all__ = ["pgbouncer_server", "pgbouncer_url", "postgres_server", "postgres_url"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a database server: yours, if TRACEGRAPH_TEST_POSTGRES_URL is set, else one that lives as long as the tests."""
    if yours := os.environ.get("TRACEGRAPH_TEST_POSTGRES_URL"):
        yield yours
        return
    programs = find_programs()
    if not programs:
        # Where the extra brings a server, its absence is a mistake that must not hide behind skipped tests.
        (pytest.fail if sys.platform == "linux" else pytest.skip)(NO_SERVER)
    with running_server(programs[0]) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """URL of an empty database that is the test's own."""
    with new_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def pgbouncer_server(postgres_server: str) -> Iterator[str]:
    """URL of pgbouncer in transaction mode."""
    program = find_pgbouncer()
    if program is None:
        pytest.skip("the program pgbouncer is not installed; Debian's package pgbouncer has it")
    with running_pgbouncer(program, postgres_server) as url:
        yield url


@pytest.fixture
def pgbouncer_url(pgbouncer_server: str, postgres_url: str) -> str:
    """URL of the database of :func:`postgres_url`, by way of pgbouncer in transaction mode."""
    return with_database(pgbouncer_server, postgres_url.rpartition("/")[2].partition("?")[0])
