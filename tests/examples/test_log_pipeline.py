"""The log pipeline: levels, ids and what is kept out, on real runs."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import log_pipeline
from small_graphs import State, chain, says
from spans import Trace
from spoken import Speaker, words

from tracegraph.config import RunnableConfig
from tracegraph.graph import START, StateGraph

EXAMPLES = Path(__file__).parents[2] / "examples"
SHIPPED_LOG = EXAMPLES / "data" / "package-manager.log"


def logged(graph: Any, level: int = logging.INFO, **options: Any) -> list[dict[str, Any]]:
    """Run a graph that may fail, and return the lines of its log."""
    out = io.StringIO()
    parts = graph.stream({"xs": ["the input"]}, stream_mode="events", subgraphs=True, version="v2")
    with contextlib.suppress(ValueError):
        log_pipeline.log_run(parts, log_pipeline.logger_to(out, level, **options))
    return [json.loads(line) for line in out.getvalue().splitlines()]


def process(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACEGRAPH_"))}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "log_pipeline.py"), *arguments],
        capture_output=True,
        encoding="utf-8",
        env=kept | {"TRACEGRAPH_HOME": str(tmp_path), "PYTHONWARNINGS": "error"},
        check=False,
    )


def fail(state: State) -> State:
    raise ValueError("a secret")


def test_a_retry_is_a_warning_of_its_node(tmp_path: Path) -> None:
    """In the log of the shipped triage, of which every line has thread, run and trace."""
    done = process(tmp_path, str(SHIPPED_LOG))

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [line["event"] for line in (lines[0], lines[-1])] == ["RunStarted", "RunEnded"]
    (warning,) = [line for line in lines if line["level"] != "info"]
    assert list(warning)[:3] == ["timestamp", "level", "event"]
    shown = {key: warning[key] for key in ("level", "event", "node", "graph", "attempt", "will_retry", "error", "step")}
    assert shown == {
        "level": "warning",
        "event": "AttemptEnded",
        "node": "read",
        "graph": "log-triage",
        "attempt": 1,
        "will_retry": True,
        "error": "UnicodeDecodeError",
        "step": 2,
    }
    assert {line["thread_id"] for line in lines} == {"nightly"}
    assert [len({line[key] for line in lines}) for key in ("run_id", "trace_id")] == [1, 1]
    assert "package-manager" not in done.stdout


def test_a_missing_file_is_two_errors_and_an_exit_code(tmp_path: Path) -> None:
    """The task's and the run's."""
    done = process(tmp_path, "no/such/file", "--level", "error")

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["event"], line["error"]) for line in lines] == [
        ("TaskEnded", "FileNotFoundError"),
        ("RunEnded", "FileNotFoundError"),
    ]
    assert done.returncode == 1
    assert done.stderr == "the run failed: [Errno 2] No such file or directory: 'no/such/file'\n"


def test_every_line_leads_to_a_span(trace: Trace) -> None:
    """Lines of a task to the task's, those of the graph inside to spans of the same trace."""
    inner = StateGraph(State).add_node("deep", says("x")).add_edge(START, "deep").compile(name="inner")
    graph = StateGraph(State).add_node("outer", inner).add_edge(START, "outer").compile(name="whole")

    lines = logged(graph, logging.DEBUG)

    names = {f"{span.context.span_id:016x}": span.name for span in trace.ended if span.context is not None}
    assert {names[line["span_id"]] for line in lines if line.get("node") == "deep"} == {"run_step deep"}
    assert {(line["graph"], names[line["span_id"]]) for line in lines if line["event"] == "RunEnded"} == {
        ("whole", "invoke_workflow whole"),
        ("inner", "invoke_workflow inner"),
    }
    assert {line["trace_id"] for line in lines} == {f"{trace_id:032x}" for trace_id in trace.trace_ids}
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))


def test_content_is_written_only_if_it_is_asked_for() -> None:
    """Neither input nor output, neither tokens nor what an error says."""

    def speak(state: State, config: RunnableConfig) -> State:
        return {"xs": [Speaker(words("a token")).speak(config).text]}

    lines = logged(chain(speak=speak, fail=fail), logging.DEBUG)
    told = logged(chain(speak=speak, fail=fail), logging.DEBUG, has_content=True)

    secrets = ("the input", "a token", "a secret")
    assert [secret for secret in secrets if secret in json.dumps(lines)] == []
    assert lines[-1]["error"] == "ValueError"
    assert [secret for secret in secrets if secret in json.dumps(told)] == list(secrets)


def test_a_failed_call_is_a_warning() -> None:
    """For something else may come of it."""

    def speak(state: State, config: RunnableConfig) -> State:
        try:
            Speaker([*words("well"), OSError("offline")]).speak(config)
        except OSError:
            return {"xs": ["never mind"]}
        raise AssertionError

    (warning,) = logged(chain(speak=speak), logging.WARNING)

    assert (warning["event"], warning["name"], warning["node"], warning["error"]) == ("ModelEnded", "Speaker", "speak", "OSError")
