"""The thread that empties a spool: oldest first, one request at a time, and no busier than the receiver can bear."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value

from tracegraph_exporters.spool.answers import Answer, Transport, delay_s
from tracegraph_exporters.spool.packing import Packed
from tracegraph_exporters.spool.queue import Request, SpoolQueue

__all__ = ["Sender", "Split"]

Split = Callable[[bytes], Sequence[Packed]]
"""Makes of a request two that hold the same; of one with a single item, none."""

_ASK_AGAIN_S: Final = 0.5
"""How often to look whether another process still sends."""

_SIGN_OF_LIFE_S: Final = 10.0
"""How long to wait at most before the lease is renewed."""

_log = logging.getLogger("tracegraph_exporters.spool")


class Sender:
    """Sends what *queue* has for *destination*, in a thread of its own that sleeps while nothing waits.

    Args:
        queue: the spool.
        destination: the key that the requests are kept under.
        transport: makes the connection, in the thread.
        split: what to do with a request that the receiver finds too large.
        on_loss: told why how many items were not taken.
    """

    def __init__(
        self,
        queue: SpoolQueue,
        destination: str,
        transport: Callable[[], Transport],
        split: Split,
        on_loss: Callable[[str, int], None],
    ) -> None:
        self._queue = queue
        self._destination = destination
        self._make_transport = transport
        self._split = split
        self._on_loss = on_loss
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the thread; a forked process has none."""
        self._token = uuid.uuid4().hex
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._has_work = False
        self._is_stopping = False
        self._failures = 0
        self._has_reported = False
        self._reported_losses: set[str] = set()

    def wake(self) -> None:
        """Say that something waits; the thread starts the first time."""
        with self._changed:
            self._has_work = True
            if self._thread is None and not self._is_stopping:
                self._thread = threading.Thread(target=self._run, name="tracegraph-spool", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt did not get through."""
        return self._failures > 0

    def wait_until_sent(self, up_to: int, timeout_s: float, *, while_it_goes: bool = False) -> bool:
        """Wait until all requests with ids up to *up_to* have been answered, by whoever sends them.

        *while_it_goes*: no longer than until an attempt fails.
        """
        deadline = time.monotonic() + timeout_s
        self.wake()
        while self._queue.waits(self._destination, up_to):
            left = deadline - time.monotonic()
            if left <= 0 or (while_it_goes and self.is_failing):
                return False
            with self._changed:
                # Another process may be the one that sends: nobody tells of that here.
                self._changed.wait(min(left, _ASK_AGAIN_S))
        return True

    def stop(self, timeout_s: float) -> None:
        """End the thread, after the request that is on its way; what waits stays in the spool."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _run(self) -> None:
        # An instrumented HTTP client would make spans of this, which would be sent, which would make spans.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        transport: Transport | None = None
        try:
            while self._wait_for_work():
                try:
                    if transport is None:
                        transport = self._make_transport()
                    self._empty(transport)
                except Exception as error:  # noqa: BLE001  # whatever it is, this thread must not end: nobody else sends
                    self._report("the spool %s cannot be emptied: %s: %s", self._queue.path, type(error).__name__, error)
                    self._pause(delay_s(self._count_failure(), None))
                    self._has_work = True
        finally:
            if transport is not None:
                transport.close()

    def _wait_for_work(self) -> bool:
        with self._changed:
            while not self._has_work and not self._is_stopping:
                self._changed.wait()
            self._has_work = False
            return not self._is_stopping

    def _empty(self, transport: Transport) -> None:
        """Send until nothing waits, or while it is another's turn, wait for that."""
        while not self._is_stopping and self._queue.last_id(self._destination) is not None:
            self._take_turn(transport)

    def _take_turn(self, transport: Transport) -> None:
        """Send as long as the lease holds: a process that was stopped for longer finds another sending."""
        while not self._queue.take_lease(self._destination, self._token):
            if self._pause(_ASK_AGAIN_S) or self._queue.last_id(self._destination) is None:
                return
        try:
            while not self._is_stopping and (request := self._queue.first(self._destination, self._token)) is not None:
                self._send(transport, request)
                with self._changed:
                    self._changed.notify_all()
        finally:
            self._queue.give_back_lease(self._destination, self._token)
        if self._queue.last_id(self._destination) is None:
            self._queue.give_back_space()

    def _send(self, transport: Transport, request: Request) -> None:
        answer = transport.send(request.body)
        if answer.verdict == "later":
            self._report("%s does not take telemetry (%s); it waits in %s", self._destination, answer.text, self._queue.path)
            self._wait(delay_s(self._count_failure(), answer.wait_s))
            return
        self._failures = 0
        if answer.verdict == "taken" and self._has_reported:
            self._has_reported = False
            _log.info("%s takes telemetry again", self._destination)
        if answer.verdict == "too_large" and (parts := self._split(request.body)):
            self._queue.replace(request, self._destination, parts)
            return
        loss = _loss_of(answer, request)
        self._queue.remove(request, self._destination, loss)
        if loss is not None:
            # Told once it is stored: a request that cannot be removed now is sent again, and would be lost twice.
            self._tell_loss(*loss)

    def _tell_loss(self, reason: str, items: int, said: str) -> None:
        self._on_loss(reason, items)
        if reason not in self._reported_losses:
            self._reported_losses.add(reason)
            text = "%s will not get %d items: %s (%s); further ones are counted, see `tracegraph spool`"
            _log.error(text, self._destination, items, reason, said)

    def _wait(self, seconds: float) -> None:
        """Wait between attempts, and let other processes know that this one still sends."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._pause(min(left, _SIGN_OF_LIFE_S)):
                return
            self._queue.take_lease(self._destination, self._token)

    def _pause(self, seconds: float) -> bool:
        """Wait; return whether the thread is to end."""
        until = time.monotonic() + seconds
        with self._changed:
            while not self._is_stopping and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._is_stopping

    def _count_failure(self) -> int:
        with self._changed:
            self._failures += 1
            self._changed.notify_all()
        return self._failures

    def _report(self, text: str, *values: Any) -> None:
        """Log the first of a row of failures: a collector that is down for a night is not news every half minute."""
        if not self._has_reported:
            self._has_reported = True
            _log.warning(text, *values)


def _loss_of(answer: Answer, request: Request) -> tuple[str, int, str] | None:
    """Return why how many items of an answered request are lost, and what the receiver said; None if none are."""
    if answer.verdict != "taken":
        return answer.verdict, request.items, answer.text
    return ("rejected", answer.rejected, answer.text) if answer.rejected else None
