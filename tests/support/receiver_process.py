"""A receiver in a process of its own, to be killed: what it takes is in a file before it answers.

Run as a program: ``python receiver_process.py FILE PORT``; it prints its port, and appends the id of every span to FILE.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from scripted_receiver import HttpReceiver, Inbox


class ReceiverProcess:
    """Starts the program, kills it, and starts it again at the same port."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept
        self.kept.touch()
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start it; return when it listens."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self.kept), str(self.port)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill it, as the system does when memory is short."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()
            self._process = None

    @property
    def endpoint(self) -> str:
        """Where spans go."""
        return f"http://127.0.0.1:{self.port}/v1/traces"

    @property
    def span_ids(self) -> list[str]:
        """Ids of the spans that were taken, in order; one twice if the answer to it was lost."""
        return self.kept.read_text().split()


class _KeepingInbox(Inbox):
    file: IO[str]

    def _keep(self, signal: str, body: bytes) -> None:
        seen = len(self.spans)
        super()._keep(signal, body)
        self.file.write("".join(f"{span_id.hex()}\n" for span_id, _ in self.spans[seen:]))
        self.file.flush()


def main(kept: str, port: str) -> None:
    """Listen until killed."""
    inbox = _KeepingInbox()
    with Path(kept).open("a") as inbox.file:
        receiver = HttpReceiver(inbox, int(port))
        sys.stdout.write(f"{receiver.port}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
