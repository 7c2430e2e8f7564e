"""``tracegraph store``: how large the embedded trace store is, what it keeps, and how it is tidied."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tracegraph.cli.output import note, print_data, print_line
from tracegraph.cli.times import duration_ns, time_text
from tracegraph.cli.trace_store import is_missing, opened_store, store_errors
from tracegraph_exporters.base import default_path
from tracegraph_exporters.retention import (
    KEEP_VARIABLE,
    MAX_MB_VARIABLE,
    Pruned,
    keep_ns_from_environment,
    max_bytes_from_environment,
    prune,
    vacuum,
)

__all__ = ["prune_store", "show_store", "vacuum_store"]


def show_store(*, is_json: bool) -> None:
    """Print where the store lies, what is in it, and what it had to leave out.

    Raises:
        CliError: it cannot be read.
    """
    if is_missing():
        if is_json:
            print_data(None)
        return
    with opened_store() as store:
        (facts,) = store.query("SELECT count(*), coalesce(sum(span_count), 0), min(start_ns), max(end_ns) FROM traces")
        (version,) = store.query("PRAGMA user_version")
        drops = store.drops()
    data: dict[str, Any] = {
        "path": str(default_path()),
        "version": version[0],
        "bytes": default_path().stat().st_size,
        "max_bytes": max_bytes_from_environment(),
        "keep_ns": keep_ns_from_environment(),
        "traces": facts[0],
        "spans": facts[1],
        "oldest_ns": facts[2],
        "newest_ns": facts[3],
        "dropped": [asdict(drop) for drop in drops],
    }
    if is_json:
        print_data(data)
        return
    print_line(f"{data['path']}  version {data['version']}  {_mb(data['bytes'])} of {_mb(data['max_bytes'])}")
    print_line(f"{data['traces']} traces, {data['spans']} spans")
    if facts[2] is not None:
        print_line(f"from {time_text(facts[2])} to {time_text(facts[3])}")
    for drop in drops:
        print_line(f"left out: {drop.spans} spans of {drop.traces} traces ({drop.reason}, last {time_text(drop.last_ns)})")


def prune_store(keep: str | None, max_mb: float | None, *, is_json: bool) -> None:
    """Drop what is too old or too much, and print how much it was.

    Raises:
        CliError: nothing says what is too much, or the store cannot be written.
    """
    keep_ns = duration_ns("--keep", keep) if keep is not None else None
    max_bytes = int(max_mb * 1_000_000) if max_mb is not None else None
    if keep is None and max_mb is None:
        keep_ns, max_bytes = keep_ns_from_environment(), max_bytes_from_environment()
    if is_missing():
        return
    with store_errors():
        _print(prune(keep_ns=keep_ns, max_bytes=max_bytes), is_json=is_json)
    if keep is None and max_mb is None and keep_ns is None:
        note(f"nothing is too old: {KEEP_VARIABLE} is not set; {MAX_MB_VARIABLE} or its default was kept to")


def vacuum_store(*, is_json: bool) -> None:
    """Write the file anew, and print how much smaller it is.

    Raises:
        CliError: it cannot be written.
    """
    if is_missing():
        return
    with store_errors():
        _print(vacuum(), is_json=is_json)


def _print(done: Pruned, *, is_json: bool) -> None:
    if is_json:
        print_data(asdict(done))
        return
    print_line(
        f"dropped {done.traces} traces with {done.spans} spans; {_mb(done.bytes_before)} before, {_mb(done.bytes_after)} now"
    )


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
