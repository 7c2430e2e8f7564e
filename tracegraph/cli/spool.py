"""``tracegraph spool``: telemetry that waits to be sent, and what was lost."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tracegraph.cli.output import fail, local_time, note, print_data
from tracegraph.cli.tables import print_table

if TYPE_CHECKING:
    from tracegraph_exporters.spool import Backlog, Loss, SpoolQueue

__all__ = ["show_spool"]


def show_spool(*, send_s: float | None, is_json: bool) -> int:
    """Print what waits for each destination, and what it will never get.

    Args:
        send_s: first send what waits for the destinations that the OTLP variables name, for so many seconds at most.
        is_json: print it as JSON.

    Returns:
        1 if something was to be sent and still waits, else 0.

    Raises:
        CliError: the spool cannot be read.
    """
    from tracegraph_exporters.spool import DestinationError, SpoolError, SpoolQueue

    try:
        with closing(SpoolQueue()) as queue:
            if not queue.path.exists():
                if is_json:
                    print_data({"waiting": [], "lost": []})
                note(f"no spool in {str(queue.path)!r}; `setup()` makes one where telemetry goes by OTLP")
                return 0
            is_sent = send_s is None or _send(queue, send_s)
            _print(queue.backlog(), queue.losses(), is_json=is_json)
    except (SpoolError, DestinationError) as error:
        fail(str(error), error)
    except (sqlite3.Error, OSError) as error:
        fail(f"the spool cannot be read: {error}", error)
    return 0 if is_sent else 1


def _send(queue: SpoolQueue, seconds: float) -> bool:
    from tracegraph_exporters.spool import SpoolLogExporter, SpoolSpanExporter

    until = time.monotonic() + seconds
    is_sent = True
    for exporter in (SpoolSpanExporter(path=queue.path), SpoolLogExporter(path=queue.path)):
        is_sent &= exporter.force_flush(max(0.0, until - time.monotonic()) * 1e3)
        exporter.shutdown(0)
    return is_sent


def _print(waiting: list[Backlog], lost: list[Loss], *, is_json: bool) -> None:
    if is_json:
        print_data({"waiting": [asdict(one) for one in waiting], "lost": [asdict(one) for one in lost]})
        return
    if waiting:
        rows = [(one.destination, str(one.requests), str(one.items), str(one.bytes), _time(one.oldest_ns)) for one in waiting]
        headings = ("destination", "requests", "items", "bytes", "oldest")
        print_table(headings, rows, right={"requests", "items", "bytes"}, free={"destination"})
    else:
        note("nothing waits")
    for loss in lost:
        said = f": {loss.text}" if loss.text else ""
        note(f"{loss.destination} lost {loss.items} items ({loss.reason}, last {_time(loss.at_ns)}){said}")


def _time(at_ns: int) -> str:
    return local_time(datetime.fromtimestamp(at_ns / 1e9, UTC))
