"""The operating guide's twenty questions, asked of a real incident: each command and each SQL gives the right answer."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from operating_guide import LANGUAGES, commands, questions

from tracegraph.telemetry.semconv import registry
from tracegraph_exporters import TraceStore, TraceStoreError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")

ROOT = Path(__file__).parents[2]
ASKED = {question.number: question for question in questions()}


@dataclass(frozen=True)
class Incident:
    """What is left of it: the environment with the store, and the ids that the page speaks of as variables."""

    environment: dict[str, str]

    @property
    def database(self) -> Path:
        return Path(self.environment["TRACEGRAPH_HOME"]) / "traces.db"

    def cli(self, number: int, *more: str) -> Any:
        """Run a question's command and return its JSON."""
        return json.loads(self.run(ASKED[number].answers["sh"].strip(), "--json", *more))

    def text(self, number: int) -> str:
        return self.run(ASKED[number].answers["sh"].strip())

    def run(self, line: str, *more: str) -> str:
        arguments = [
            argument.format_map({}) if "$" not in argument else self.variable(argument) for argument in shlex.split(line)[1:]
        ]
        return run(self.environment, *arguments, *more).stdout

    def variable(self, name: str) -> str:
        return self.environment[name.removeprefix("$")]

    def sql(self, number: int) -> list[Any]:
        """Run a question's SQL, as any reader of the file could."""
        values = {name.lower(): self.environment[name] for name in ("TRACE", "RESUMED", "LOOP")}
        with TraceStore(self.database) as store:
            return store.query(ASKED[number].answers["sql"], values)


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracegraph.cli", *arguments],
        capture_output=True, encoding="utf-8", cwd=ROOT, env=environment, check=False,
    )  # fmt: skip


def start_hanging(environment: dict[str, str], thread: str, stack: ExitStack) -> subprocess.Popen[bytes]:
    """Start a run that hangs, and return when the store knows of it and of what came before."""
    (line,) = commands("hang")
    arguments = shlex.split(line.replace(" t4 ", f" {thread} "))[1:]
    program = [sys.executable, "-m", "tracegraph.cli", *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(program, cwd=ROOT, env=environment, **quiet)
    stack.callback(process.wait)
    stack.callback(process.kill)
    sql = (
        "SELECT 1 FROM traces t WHERE thread_id = ? AND EXISTS (SELECT 1 FROM open_spans o WHERE o.trace_id = t.trace_id AND "
        "name = 'run_step look_up') AND EXISTS (SELECT 1 FROM operations o WHERE o.trace_id = t.trace_id AND name = 'triage')"
    )
    pause = threading.Event()
    while True:
        assert process.poll() is None
        try:
            with TraceStore(Path(environment["TRACEGRAPH_HOME"]) / "traces.db") as store:
                if store.query(sql, (thread,)):
                    return process
        except (FileNotFoundError, TraceStoreError):
            pass  # it is not there yet, or has no tables yet
        # Another process writes it when it does: there is nothing to be told by.
        pause.wait(0.05)


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incident]:
    """Everything that the page lets happen; a run of thread t6 was killed, one of t4 hangs until the end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACEGRAPH_"))}
    environment = kept | {
        "TRACEGRAPH_HOME": str(tmp_path_factory.mktemp("incident")),
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    with ExitStack() as stack:
        killed = start_hanging(environment, "t6", stack)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        start_hanging(environment, "t4", stack)
        codes = [run(environment, *shlex.split(line)[1:]).returncode for line in commands("incident")]
        assert codes == [3, 0, 1, 1, 3]
        listed = json.loads(run(environment, "traces", "--json").stdout)
        ids = {(trace["thread_id"], trace["status"]): trace["trace_id"] for trace in listed}
        environment["TRACE"] = ids["t1", "interrupted"]
        environment["RESUMED"] = ids["t1", "completed"]
        environment["LOOP"] = ids["t3", "step_limit"]
        yield Incident(environment)


def threads(traces: list[Any]) -> list[str]:
    return [trace["thread_id"] for trace in traces]


def names(spans: list[Any]) -> list[str]:
    return [span["name"] for span in spans]


def test_there_are_twenty_questions_in_every_language() -> None:
    """Where a language cannot answer, the page says why."""
    assert sorted(ASKED) == list(range(1, 21))
    for question in ASKED.values():
        for language, said in zip(LANGUAGES, ("sh", "sql", "PromQL: no", "TraceQL: no"), strict=True):
            assert language in question.answers or said in question.text, (question.number, language)


def test_queries_speak_of_what_there_is() -> None:
    """Every attribute in SQL and TraceQL is in the registry."""
    text = "\n".join(answer for question in ASKED.values() for answer in question.answers.values())
    asked = set(re.findall(r'\$\[?2?\]?\."([a-z_.]+)"', text)) | set(re.findall(r"span\.((?:gen_ai|tracegraph)\.[a-z_.]+)", text))

    assert asked > {"gen_ai.step.name", "tracegraph.task.status", "error.type"}
    assert asked <= set(registry.ATTRIBUTES)


def test_promql_asks_for_metrics_that_exist() -> None:
    """As a Prometheus exporter names them, by labels that they have."""
    known = {name.replace(".", "_") for name in registry.METRICS}
    text = "\n".join(question.answers.get("promql", "") for question in ASKED.values())
    metrics = set(re.findall(r"\b((?:gen_ai|tracegraph)_\w+?)(?:_seconds)?(?:_total|_count|_sum|_bucket)\b", text))
    labels = set(re.findall(r"\b((?:gen_ai|tracegraph)_\w+)(?=[,)=!])", text))

    assert len(metrics) > 8
    assert metrics <= known
    assert labels - known <= {name.replace(".", "_") for name in registry.ATTRIBUTES}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promql_is_understood_by_prometheus(tmp_path: Path) -> None:
    """Each as the expression of a rule."""
    asked = [question for question in ASKED.values() if "promql" in question.answers]
    rules = [{"record": f"question_{question.number}", "expr": question.answers["promql"]} for question in asked]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "operating", "rules": rules}]}))

    checked = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, encoding="utf-8", check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(asked)} rules found" in checked.stdout


def test_1_tokens_by_node(incident: Incident) -> None:
    """The command and the SQL agree to the token."""
    found = {one["name"]: one["input_tokens"] + one["output_tokens"] for one in incident.cli(1)}
    assert {name: tokens for name, tokens in found.items() if tokens} == {"draft": 8 * 3700, "check": 7 * 410, "triage": 6 * 220}
    assert incident.sql(1) == [("draft", 8 * 3700), ("check", 7 * 410), ("triage", 6 * 220)]


def test_2_cost_of_a_run(incident: Incident) -> None:
    """Tokens by model; dollars where price lists are installed."""
    found = {one["name"]: one for one in incident.cli(2)}
    assert {name: (one["count"], one["input_tokens"], one["output_tokens"]) for name, one in found.items()} == {
        "gpt-4o": (2, 6000, 1400), "gpt-4o-mini": (3, 1000, 40),
    }  # fmt: skip
    assert incident.sql(2) == [("openai", "gpt-4o", 2, 6000, 1400, None), ("openai", "gpt-4o-mini", 3, 1000, 40, None)]


def test_3_loop(incident: Incident) -> None:
    """What went round, and what the deciding node said each time."""
    assert incident.sql(3) == [("draft", 4, 9), ("check", 3, 8)]
    lines = [line.strip() for line in incident.text(3).splitlines()]
    assert lines.count('output: {"is_good":false}') == 3


def test_4_state_before_step_7(incident: Incident) -> None:
    """The id from the trace is that of the checkpoint with the values."""
    ((checkpoint_id,),) = incident.sql(4)
    (before,) = [one for one in incident.cli(4) if one["step"] == 6]
    assert before["checkpoint_id"] == checkpoint_id
    shown = json.loads(run(incident.environment, "state", "t1", "--at", checkpoint_id, "--json").stdout)
    assert (shown["values"]["rounds"], shown["values"]["draft"], shown["values"]["is_good"]) == (2, "Reply 2", True)


def test_5_wait_for_approval(incident: Incident) -> None:
    """Who asked, and the time between the two runs."""
    resumed, asked = incident.cli(5)
    assert (asked["status"], resumed["status"]) == ("interrupted", "completed")
    ((thread, node, waited_s),) = incident.sql(5)
    assert (thread, node) == ("t1", "approve")
    assert waited_s == pytest.approx((resumed["start_ns"] - asked["end_ns"]) / 1e9, abs=0.05)
    assert waited_s > 0


def test_6_retries(incident: Incident) -> None:
    """Two of the flaky order, two of the one that never came."""
    found = {one["name"]: one["retries"] for one in incident.cli(6)}
    assert found["look_up"] == 4
    ((node, error, count),) = incident.sql(6)
    assert (node, error.rpartition(".")[2], count) == ("look_up", "ShopDownError", 4)


def test_7_tools(incident: Incident) -> None:
    """The shop, not the mail."""
    found = {one["name"]: (one["count"], one["errors"]) for one in incident.cli(7)}
    first, second = incident.sql(7)
    assert first[:3] == ("search_orders", *found["search_orders"])
    assert second[:3] == ("send_mail", *found["send_mail"]) == ("send_mail", 1, 0)
    # Killed and hanging calls have not failed.
    assert found["search_orders"][1] == 5


def test_8_what_the_resume_continued(incident: Incident) -> None:
    """Both ways: from the resumed run, and from the one that was interrupted."""
    assert incident.sql(8) == [(incident.environment["TRACE"], "t1", "interrupted")]
    links = {link["trace_id"] for span in incident.cli(8)["spans"] for link in span["links"]}
    assert links == {incident.environment["TRACE"]}
    assert f"linked to {incident.environment['TRACE'][:8]}" in incident.text(8)


def test_9_barrier(incident: Incident) -> None:
    """Three lookups; the quick ones waited for the slow one."""
    ((step, tasks, slowest_ms, waited_ms),) = incident.sql(9)
    assert (step, tasks) == (2, 3)
    # The slow one takes 300 ms, and two waited for it.
    assert slowest_ms >= 300
    assert waited_ms > 0
    spans = incident.cli(9)["spans"]
    (superstep,) = [span["span_id"] for span in spans if span["name"] == "superstep"]
    assert names([span for span in spans if span["parent_id"] == superstep]) == ["run_step look_up"] * 3


def test_10_stuck(incident: Incident) -> None:
    """The one that hangs, and where; not the one that was killed."""
    (stuck,) = incident.cli(10)
    assert (stuck["thread_id"], stuck["status"]) == ("t4", "running")
    ((trace_id, name, seconds),) = incident.sql(10)
    assert (trace_id, name) == (stuck["trace_id"], "run_step look_up")
    assert seconds >= 0


def test_11_failures(incident: Incident) -> None:
    """A run that failed, and one at its step limit, which has a status of its own."""
    assert threads(incident.cli(11)) == ["t2"]
    found = {error.rpartition(".")[2]: count for error, count, _ in incident.sql(11)}
    assert found == {"GraphRecursionError": 1, "ShopDownError": 1}


def test_12_slow_node(incident: Incident) -> None:
    """The same 95th percentiles, to the nanosecond."""
    found = {one["name"]: one["p95_ns"] for one in incident.cli(12)}
    assert dict(incident.sql(12)) == found
    assert max(found, key=lambda name: found[name]) == "look_up"


def test_13_time_of_a_run(incident: Incident) -> None:
    """The lookups, and in them the tool."""
    first, second, *_ = incident.sql(13)
    assert {first[:2], second[:2]} == {("node", "look_up"), ("tool", "search_orders")}
    shown = incident.cli(13)["spans"]
    longest = max((span for span in shown if span["name"].startswith("run_step ")), key=lambda s: s["end_ns"] - s["start_ns"])
    assert longest["name"] == "run_step look_up"


def test_14_waiting_for_a_person(incident: Incident) -> None:
    """Only the question that nobody has answered."""
    waiting = [thread["thread_id"] for thread in incident.cli(14) if thread["latest"] and thread["latest"]["interrupts"]]
    assert waiting == ["t5"]
    assert [row[0] for row in incident.sql(14)] == ["t5"]


def test_15_what_the_model_saw(incident: Incident) -> None:
    """Readable from the command, structured from SQL."""
    shown = incident.text(15)
    assert "      user: Which orders? Where is it?\n      assistant: fast, slow, flaky\n" in shown
    first = incident.sql(15)[0]
    assert [json.loads(text)[0]["role"] for text in first] == ["user", "assistant"]
    # What was recorded is shown only where it is asked for.
    assert "Which orders?" not in run(incident.environment, "trace", incident.environment["TRACE"], "--json", "-a").stdout
    assert "Which orders?" not in run(incident.environment, "trace", incident.environment["TRACE"], "-a").stdout


def test_16_step_limit(incident: Incident) -> None:
    assert threads(incident.cli(16)) == ["t3"]
    assert incident.sql(16) == [("t3", incident.environment["LOOP"])]


def test_17_good_and_bad_run(incident: Incident) -> None:
    """They part where the good one looks up more; later the bad one goes on drafting."""
    found = incident.cli(17)
    parted = found["steps"][found["parted_at"]]
    assert (parted["kind"], parted["a"]["path"], parted["a"]["superstep"]) == ("only_a", ["look_up"], 2)
    changed = {where: both for step in found["steps"] for where, both in step["changed"].items()}
    assert changed["output.is_good"] == {"a": True, "b": False}
    assert [step["b"]["path"] for step in found["steps"] if step["kind"] == "only_b"] == [["draft"], ["check"], ["draft"]]
    assert incident.sql(17) == [(7, "draft"), (8, "check"), (9, "draft")]


def test_18_checkpoints(incident: Incident) -> None:
    """As many as the tree shows."""
    ((count, mean_ms, max_ms, errors),) = incident.sql(18)
    assert count == names(incident.cli(18)["spans"]).count("checkpoint put") > 5
    assert 0 < mean_ms <= max_ms
    assert errors == 0


def test_19_losses(incident: Incident) -> None:
    """Nothing, and the store says so."""
    assert incident.cli(19)["dropped"] == incident.sql(19) == []


def test_20_killed(incident: Incident) -> None:
    assert threads(incident.cli(20)) == ["t6"]
    assert incident.sql(20) == [("t6", "look_up")]
