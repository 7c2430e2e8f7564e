"""``tracegraph import-langgraph``: threads from LangGraph's checkpoint databases."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.cli.database import check_database, open_for_writing
from tracegraph.cli.loading import load_graph
from tracegraph.cli.output import CliError, ExitCode, fail, json_text, note, one_line, print_line
from tracegraph.interop.langgraph import (
    Rules,
    Source,
    SourceError,
    ThreadRefusedError,
    import_thread,
    is_address,
    open_source,
)

__all__ = ["ImportOptions", "import_langgraph"]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the command line says."""

    threads: Sequence[str]
    db: str | None
    graph: str | None
    allow: Sequence[str]
    keeps_unknown: bool
    is_json: bool


def import_langgraph(database: str, options: ImportOptions) -> ExitCode:
    """Import threads and print a line for each; return FAILED if one was refused."""
    check_database(database, "DB")
    if options.db is not None:
        check_database(options.db, "--db")
    rules = Rules(
        allowed=tuple(map(_allowed, options.allow)),
        keeps_unknown=options.keeps_unknown,
        graph=None if options.graph is None else load_graph(options.graph),
    )
    if _is_same_file(database, options.db):
        fail("--db is LangGraph's own file, which stays as it is; give another one")
    try:
        # The source first: nothing is made for one that cannot be read.
        with open_source(database) as source:
            thread_ids = _wanted(source, options.threads)
            with open_for_writing(options.db) as (saver, place):
                done = [_imported(source, thread_id, saver, rules, is_json=options.is_json) for thread_id in thread_ids]
    except SourceError as error:
        is_there = is_address(database) or os.path.exists(database)  # noqa: PTH110  # a name may be too long for Path
        raise CliError(error.reason, ExitCode.USAGE if is_there else ExitCode.NOT_FOUND) from error
    counts = {status: sum(each["status"] == status for each in done) for status in ("imported", "present", "refused")}
    note(f"{counts['imported']} threads imported, {counts['present']} were there already, {counts['refused']} refused: {place}")
    if options.is_json:
        print(json_text(done))
    return ExitCode.FAILED if counts["refused"] else ExitCode.COMPLETED


def _is_same_file(database: str, db: str | None) -> bool:
    if db is None or is_address(database) or is_address(db):
        return False
    try:
        return Path(database).samefile(db)
    except OSError:  # one of them is not there
        return False


def _allowed(text: str) -> tuple[str, str] | str:
    """Return an entry of the allow-list; classes are looked up where the user's own files are, too."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module, colon, name = text.partition(":")
    if not module or (colon and not name):
        fail(f"--allow takes MODULE:CLASS, or MODULE for all of its classes, not {text!r}")
    return (module, name) if colon else module


def _wanted(source: Source, asked: Sequence[str]) -> list[str]:
    there = source.thread_ids()
    unknown = [thread_id for thread_id in asked if thread_id not in there]
    if unknown:
        shown = ", ".join(map(repr, there[:10])) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
        what = f"{source.name} has no thread {', '.join(map(repr, unknown))}; it has {shown or 'none'}"
        raise CliError(what, ExitCode.NOT_FOUND)
    return list(dict.fromkeys(asked)) or there


def _imported(source: Source, thread_id: str, saver: BaseCheckpointSaver, rules: Rules, *, is_json: bool) -> dict[str, Any]:
    try:
        outcome = import_thread(source, thread_id, saver, rules)
    except ThreadRefusedError as error:
        note(f"error: {one_line(str(error))}")
        return {"thread_id": thread_id, "status": "refused", "reason": error.reason}
    if not is_json:
        what = "imported" if outcome.status == "imported" else "there already"
        print_line(f"{thread_id}: {outcome.checkpoints} checkpoints {what}")
    for name, where in outcome.kept_as_data.items():
        note(f"{thread_id}: objects of {name} are kept as plain data ({where})")
    return {
        "thread_id": thread_id,
        "status": outcome.status,
        "checkpoints": outcome.checkpoints,
        "kept_as_data": outcome.kept_as_data,
    }
