"""Servers that end with the test run, even if that is killed.

A server is the child of a keeper, a small process of its own that waits for the end of its standard input: the system
closes that when the test run ends, however it ends. The keeper then stops the server and deletes its folder. Should
the keeper be killed too, the next test run does it: a folder that no keeper holds locked is a leftover.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

# Short, since a Unix socket's path has about 100 characters.
_FOLDERS = Path(tempfile.gettempdir()).resolve() / f"tracegraph-test-{os.getuid()}"
_LOCK = "lock"
_PID = "pid"


@dataclass(frozen=True)
class Folder:
    """A folder of the server's user, and the lock that says that it is in use: open in the keeper, if there is one."""

    path: Path
    lock: int


def as_server_user() -> dict[str, Any]:
    """Return arguments of ``subprocess`` that run a server as somebody it accepts: none of ours runs as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def new_folder() -> Folder:
    """Return a new folder, after deleting those that killed keepers left."""
    _FOLDERS.mkdir(mode=0o711, exist_ok=True)
    with (_FOLDERS / _LOCK).open("w") as lock:
        # Makes folder and lock one step, so that nobody takes the new folder for a leftover.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for found in [folder for folder in _FOLDERS.iterdir() if folder.is_dir()]:
            _delete_leftover(found)
        path = Path(tempfile.mkdtemp(dir=_FOLDERS, prefix=""))
        if user := as_server_user():
            os.chown(path, user["user"], user["group"])
        held = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR)
        fcntl.flock(held, fcntl.LOCK_EX)
    return Folder(path, held)


def _delete_leftover(folder: Path) -> None:
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # in use
        if (folder / _PID).exists():
            pid = int((folder / _PID).read_text())
            # The pid may be another process by now; the server has its folder in its command line.
            shown = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
            if str(folder) in shown.stdout:
                os.kill(pid, signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


class CannotStartError(RuntimeError):
    """The server ended before it was ready; the message is what it said."""


@contextmanager
def kept_process(folder: Folder, command: Sequence[str], ready: str) -> Iterator[None]:
    """Run *command*, whose arguments name *folder*, from the time it prints *ready* on stderr; then delete the folder.

    Raises:
        CannotStartError: it ended instead.
    """
    keeper = subprocess.Popen(
        [sys.executable, __file__, str(folder.path), ready, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C reaches the test run, which ends the keeper; it must not stop the server under running tests.
        start_new_session=True,
        pass_fds=[folder.lock],
    )
    os.close(folder.lock)
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    with keeper:
        said = keeper.stdout.readline().strip()
        if said != "ready":
            raise CannotStartError(f"{command[0]} did not start: {said or 'no word from it'} {keeper.stdout.read()}")
        try:
            yield
        finally:
            keeper.stdin.close()
            keeper.wait(timeout=30)


def _keep(folder: Path, ready: str, command: Sequence[str]) -> int:
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"LC_ALL": "C"},
        **as_server_user(),
    )
    (folder / _PID).write_text(str(server.pid))
    said = deque[str](maxlen=20)
    assert server.stderr is not None
    is_ready = False
    for line in server.stderr:
        said.append(line)
        if is_ready := ready in line:
            break
    sys.stdout.write("ready\n" if is_ready else "".join(said))
    sys.stdout.flush()
    Thread(target=server.stderr.read, daemon=True).start()  # a full pipe would stop the server
    if is_ready:
        sys.stdin.read()
    server.send_signal(signal.SIGINT)
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if is_ready else 1


if __name__ == "__main__":
    sys.exit(_keep(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
