"""Triage a log file: split it, read the pieces in parallel, cluster what went wrong, write a report.

A map-reduce over any text log::

    tracegraph run examples/log_triage.py:graph --input '{"path": "build.log"}'
    python examples/log_triage.py build.log report.md

Pieces are sent to the node ``read`` with ``Send``. A piece that is not UTF-8 fails and is retried; the
number of the attempt, which the runtime tells, chooses the next codec. The pieces' findings are merged
by the reducers of the state, in the order of the pieces and not of their arrival.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import Runtime
from tracegraph.types import RetryPolicy, Send

PIECE_BYTES = 16 * 1024
MAX_PIECES = 64
"""A larger file gets larger pieces."""
CODECS = ("utf-8", "cp1252", "latin-1")
"""By attempt. The last one decodes anything, if not always to what was meant."""

SHIPPED_LOG = Path(__file__).parent / "data" / "package-manager.log"
# Where systems keep the logs that everybody has: package managers first, since they are readable and full.
USUAL_LOGS = ("apt/term.log", "dpkg.log", "pacman.log", "dnf.log", "zypper.log", "install.log", "syslog", "messages")

Level = Literal["error", "warning", "other"]


class Cluster(TypedDict):
    """Lines that are the same once numbers, ids and paths are masked."""

    level: Level
    count: int
    first_line: str
    """As it stands in the log, not masked."""


Clusters = dict[str, Cluster]


def merge_clusters(old: Clusters, new: Clusters) -> Clusters:
    """Add up counts by template; the first line stays that of the earlier piece."""
    merged = dict(old)
    for template, cluster in new.items():
        known = merged.get(template)
        merged[template] = {**known, "count": known["count"] + cluster["count"]} if known else cluster
    return merged


def add_counts(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """Add two tallies."""
    return dict(Counter(old) + Counter(new))


class Question(TypedDict, total=False):
    """What a caller gives."""

    path: str
    """The log to read; the machine's own package-manager or system log if left out."""
    report_path: str
    """Where to write the report; nowhere if left out."""


class Piece(TypedDict):
    """What one ``read`` task gets: a range of the file that starts and ends between two lines."""

    path: str
    start: int
    size: int


class Triage(Question, total=False):
    """What the nodes share."""

    pieces: list[Piece]
    clusters: Annotated[Clusters, merge_clusters]
    tally: Annotated[dict[str, int], add_counts]
    """Lines read, and pieces by the codec that could decode them."""
    report: str


class Answer(TypedDict):
    """What a caller gets."""

    path: str
    tally: dict[str, int]
    report: str


def find_log() -> Path:
    """Return the first usual log that this user may read and that is not empty, else the one shipped here."""
    root = Path(os.environ.get("LOG_DIR", "/var/log"))
    readable = (path for name in USUAL_LOGS if os.access(path := root / name, os.R_OK) and path.stat().st_size)
    return next(readable, SHIPPED_LOG)


def split(state: Triage) -> Triage:
    """Cut the file into pieces of about equal size, at line ends."""
    path = Path(state.get("path") or find_log())
    about = max(PIECE_BYTES, path.stat().st_size // MAX_PIECES)
    pieces: list[Piece] = []
    with path.open("rb") as log:
        start = 0
        while block := log.read(about):
            size = len(block) + len(log.readline())
            pieces.append({"path": str(path), "start": start, "size": size})
            start += size
    return {"path": str(path), "pieces": pieces}


def scatter(state: Triage) -> list[Send] | str:
    """Send each piece to a reader of its own; an empty log goes straight to the report."""
    return [Send("read", piece) for piece in state["pieces"]] or "summarize"


def read(piece: Piece, runtime: Runtime) -> Triage:
    """Decode one piece and cluster its lines.

    Raises:
        UnicodeDecodeError: not in this attempt's codec; the retry tries the next one.
    """
    assert runtime.execution_info is not None
    codec = CODECS[runtime.execution_info.node_attempt - 1]
    with Path(piece["path"]).open("rb") as log:
        log.seek(piece["start"])
        text = log.read(piece["size"]).decode(codec)
    clusters: Clusters = {}
    # A progress bar overwrites its line with carriage returns; only its last state is of interest.
    lines = [shown for line in text.split("\n") if (shown := line.rstrip("\r").rpartition("\r")[2].strip())]
    for line in lines:
        cluster = clusters.setdefault(masked(line), {"level": level_of(line), "count": 0, "first_line": line})
        cluster["count"] += 1
    return {"clusters": clusters, "tally": {"lines": len(lines), codec: 1}}


# A word of its own: the package `libgpg-error-dev` is no error. In English, German and French, since a
# system's tools write their logs in its language.
WORDS: dict[Level, str] = {
    "error": r"E(?=:)|err(?:or|eur)s?|fail(?:ed|ure|ures)?|fatal|critical|panic|traceback|exception|fehler|échec",
    "warning": r"W(?=:)|warn(?:ing|ings|ung)?|deprecated|avertissement",
}
LEVELS = {level: re.compile(rf"(?<![\w./-])(?:{words})(?![\w/-]|\.\w)", re.IGNORECASE) for level, words in WORDS.items()}


def level_of(line: str) -> Level:
    """Say how bad a line is.

    >>> level_of("dpkg: error processing archive x.deb"), level_of("status installed libgpg-error-dev:amd64")
    ('error', 'other')

    """
    return next((level for level, pattern in LEVELS.items() if pattern.search(line)), "other")


# In this order: a date holds numbers, a path may hold anything.
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]+\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "<time>"),
    (re.compile(r"(?<![\w<])(?:\w+:/)?[\w.+~-]*/[\w./+~%:=-]+"), "<path>"),
    (re.compile(r"\b[\w.+-]+_\d[\w.+~:-]*\.deb\b"), "<package>"),
    (re.compile(r"\b(?:0x)?(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b[\w.+-]+:(?:amd64|arm64|i386|all)\b"), "<package>"),
    (re.compile(r"\(?\b\d[\w.+~:-]*\)?"), "<n>"),
)


def masked(line: str) -> str:
    """Replace what differs between two lines that say the same.

    >>> masked("2025-06-24 14:36:38 status unpacked zlib1g:amd64 1:1.2.13")
    '<time> status unpacked <package> <n>'

    """
    for pattern, mask in MASKS:
        line = pattern.sub(mask, line)
    return line


def summarize(state: Triage) -> Triage:
    """Write the report, as Markdown."""
    tally, clusters = state.get("tally", {}), state.get("clusters", {})
    codecs = ", ".join(f"{tally[codec]} as {codec}" for codec in CODECS if codec in tally)
    pieces = f"{len(state['pieces'])} pieces ({codecs or 'empty'})"
    report = [f"# Triage of {state['path']}", "", f"{tally.get('lines', 0)} lines in {pieces}."]
    report += _section("Errors", "error", clusters) + _section("Warnings", "warning", clusters)
    report += _section("Most frequent other lines", "other", clusters, most=8)
    text = "\n".join(report) + "\n"
    if report_path := state.get("report_path"):
        Path(report_path).parent.mkdir(parents=True, exist_ok=True)
        Path(report_path).write_text(text, encoding="utf-8")
    return {"report": text}


def _section(title: str, level: Level, clusters: Clusters, most: int = 20) -> list[str]:
    found = sorted(((c["count"], template) for template, c in clusters.items() if c["level"] == level), reverse=True)
    lines = ["", f"## {title}: {sum(count for count, _ in found)} lines, {len(found)} kinds", ""]
    for count, template in found[:most]:
        # A line that stands alone is shown as it is: there is nothing to generalize.
        shown = clusters[template]["first_line"] if count == 1 else template
        lines.append(f"- {count} x `{_shortened(shown)}`")
    return lines + ([f"- and {len(found) - most} kinds more"] if len(found) > most else [])


def _shortened(line: str, width: int = 110) -> str:
    line = line.replace("`", "'")
    return line if len(line) <= width else f"{line[: width - 1]}…"


builder = StateGraph(Triage, input_schema=Question, output_schema=Answer)
builder.add_node("split", split)
builder.add_node(
    "read",
    read,
    input_schema=Piece,
    retry_policy=RetryPolicy(max_attempts=len(CODECS), retry_on=UnicodeDecodeError, initial_interval=0.01, jitter=False),
)
builder.add_node("summarize", summarize)
builder.add_edge(START, "split")
builder.add_conditional_edges("split", scatter, ["read", "summarize"])
builder.add_edge("read", "summarize")
builder.add_edge("summarize", END)
graph = builder.compile(name="log-triage")


if __name__ == "__main__":
    question: Question = {}
    if len(sys.argv) > 1:
        question["path"] = sys.argv[1]
    if len(sys.argv) > 2:
        question["report_path"] = sys.argv[2]
    print(graph.invoke(question)["report"])
