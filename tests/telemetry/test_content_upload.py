"""The upload hook: full content in files, references on spans, and no run that waits for it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import fsspec
import pytest
from colours import Colour
from fsspec.implementations.memory import MemoryFileSystem
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from signals import Signals

from tracegraph.config import get_config
from tracegraph.errors import InvalidInputError
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import setup
from tracegraph.telemetry.content import PERSONAL, ContentPolicy, Upload, active_policy

pytestmark = pytest.mark.content_on_spans("content is asked for")

PREFIX = "OTEL_INSTRUMENTATION_GENAI_"


class State(TypedDict, total=False):
    n: int


class SlowFileSystem(MemoryFileSystem):
    """Opens a file only once it is let."""

    protocol = "slow"
    may_open = threading.Event()
    is_opening = threading.Event()

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        type(self).is_opening.set()
        assert type(self).may_open.wait(30)
        return super().open(path, mode, **options)


class BrokenFileSystem(MemoryFileSystem):
    """Opens nothing."""

    protocol = "broken"

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        raise PermissionError("not yours")


fsspec.register_implementation("slow", SlowFileSystem, clobber=True)
fsspec.register_implementation("broken", BrokenFileSystem, clobber=True)


@pytest.fixture
def opened() -> Iterator[type[SlowFileSystem]]:
    SlowFileSystem.may_open.clear()
    SlowFileSystem.is_opening.clear()
    yield SlowFileSystem
    SlowFileSystem.may_open.set()


def node(_: State) -> State:
    """Call a model, with instructions beside the messages."""
    params = {"instructions": "be brief", "tools": [{"name": "add", "input_schema": {}}]}
    (run,) = get_config()["callbacks"].on_chat_model_start({"name": "m"}, [["hi ada@example.org", "again"]], **params)
    run.on_llm_end("hello " * 1_000)
    return {"n": 1}


def ask(colour: Colour, times: int = 1) -> None:
    app = StateGraph(State).add_node("a", node).add_edge(START, "a").compile()
    for _ in range(times):
        colour.invoke(app, {"n": 0})


def files(folder: Path) -> dict[str, Any]:
    return {str(path): path.read_text() for path in sorted(folder.iterdir())}


def test_full_content_is_stored_and_spans_refer_to_it(signals: Signals, colour: Colour, tmp_path: Path) -> None:
    """Redacted and whole, whatever is captured; equal instructions share a file."""
    upload = Upload(str(tmp_path / "prompts"))
    with signals.recorded(capture="NO_CONTENT", upload=upload, redactors=PERSONAL, tool_definitions=True):
        ask(colour, 2)
        assert upload.shutdown()

    first, second = (
        {k: v for k, v in (s.attributes or {}).items() if k.endswith("_ref")} for s in signals.spans if s.name == "chat m"
    )
    stored = files(tmp_path / "prompts")
    assert len(stored) == 6
    assert {str(ref).removeprefix("file://") for ref in (*first.values(), *second.values())} == set(stored)
    assert first["gen_ai.system_instructions_ref"] == second["gen_ai.system_instructions_ref"]
    assert first["gen_ai.tool.definitions_ref"] == second["gen_ai.tool.definitions_ref"]
    inputs, outputs = (
        json.loads(stored[str(first[f"gen_ai.{k}.messages_ref"]).removeprefix("file://")]) for k in ("input", "output")
    )
    assert inputs[0] == {"role": "user", "parts": [{"type": "text", "content": "hi [redacted]"}]}
    assert outputs[0]["parts"][0]["content"] == "hello " * 1_000
    assert not any("gen_ai.input.messages" in (span.attributes or {}) for span in signals.spans)
    assert (upload.dropped_count, upload.failed_count) == (0, 0)


def test_jsonl_is_a_line_for_each_message_with_its_index(signals: Signals, colour: Colour, tmp_path: Path) -> None:
    """For readers that stream."""
    upload = Upload(str(tmp_path), format="jsonl")
    with signals.recorded(upload=upload):
        ask(colour)
        assert upload.shutdown()

    (path,) = tmp_path.glob("*_inputs.jsonl")
    assert [json.loads(line)["index"] for line in path.read_text().splitlines()] == [0, 1]


def test_pictures_are_stored_where_the_policy_says(signals: Signals, colour: Colour, tmp_path: Path) -> None:
    """Once, under what they are; the message refers to them, and what cannot be read is left out."""
    upload = Upload(str(tmp_path))
    picture = {"type": "image", "base64": "QUFB", "mime_type": "image/png"}
    broken = {"type": "image", "base64": "Q", "mime_type": "image/png"}

    def look(_: State) -> State:
        callbacks = get_config()["callbacks"]
        for block, name in ((picture, "m"), (broken, "n")):
            (run,) = callbacks.on_chat_model_start({"name": name}, [[{"role": "user", "content": [block, picture]}]])
            run.on_llm_end("hello")
        return {}

    with signals.recorded(capture="SPAN_ONLY", store_blob=upload.store_blob):
        colour.invoke(StateGraph(State).add_node("a", look).add_edge(START, "a").compile(), {"n": 0})
        assert upload.shutdown()

    (path,) = tmp_path.iterdir()
    assert (path.suffix, path.read_bytes()) == (".png", b"AAA")
    part = {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": f"file://{path}"}
    assert signals.json("chat m", "gen_ai.input.messages") == [{"role": "user", "parts": [part, part]}]
    assert signals.span("chat n")["tracegraph.left_out"] == ("gen_ai.input.messages",)


def test_runs_that_are_sampled_out_are_uploaded_too(colour: Colour, tmp_path: Path) -> None:
    """The archive is complete; the references are on the log events."""
    signals = Signals(ALWAYS_OFF)
    upload = Upload(str(tmp_path))
    with signals.recorded(capture="EVENT_ONLY", upload=upload):
        ask(colour)
        assert upload.shutdown()

    assert signals.spans == ()
    ref = signals.log("gen_ai.client.inference.operation.details")["gen_ai.output.messages_ref"]
    assert json.loads(Path(ref.removeprefix("file://")).read_text())[0]["role"] == "assistant"


def test_a_full_queue_drops_and_counts_and_no_run_waits(
    signals: Signals, colour: Colour, opened: type[SlowFileSystem], caplog: pytest.LogCaptureFixture
) -> None:
    """What was dropped has no reference; the run says how much it was; one warning."""
    upload = Upload("slow://prompts", max_queue_size=2)
    with signals.recorded(upload=upload), caplog.at_level(logging.WARNING):
        ask(colour, 2)  # three files each, none of which can be written yet
        opened.may_open.set()
        assert upload.shutdown()

    refs = [key for s in signals.spans for key in (s.attributes or {}) if key.endswith("_ref")]
    assert len(refs) == 2
    assert upload.dropped_count == 4
    assert [(s.attributes or {}).get("tracegraph.uploads.dropped") for s in signals.spans if s.name.startswith("invoke")] == [
        1,
        3,
    ]
    assert len([r for r in caplog.records if "queue is full" in r.getMessage()]) == 1


def test_a_store_that_fails_is_counted_and_reported_once(
    signals: Signals, colour: Colour, caplog: pytest.LogCaptureFixture
) -> None:
    """The run does not notice."""
    upload = Upload("broken://prompts")
    with signals.recorded(upload=upload), caplog.at_level(logging.WARNING):
        ask(colour, 2)
        assert upload.shutdown()

    # The instructions are tried again: those of the first call have not been stored.
    assert upload.failed_count >= 5
    assert len([r for r in caplog.records if "could not be uploaded" in r.getMessage()]) == 1


def test_closing_it_writes_what_waits_and_takes_nothing_more(tmp_path: Path) -> None:
    """Harmless if repeated."""
    upload = Upload(str(tmp_path))
    assert upload.submit("inputs", [1], "a")
    assert upload.shutdown()
    assert upload.shutdown()
    assert upload.submit("inputs", [1], "b") is None
    assert [path.name for path in tmp_path.iterdir()] == ["a_inputs.json"]


def test_nothing_starts_before_there_is_something_to_write(tmp_path: Path) -> None:
    """No thread at import or at setup."""
    before = threading.active_count()
    Upload(str(tmp_path))

    assert threading.active_count() == before


@pytest.mark.parametrize(("variables", "message"), [
    ({"COMPLETION_HOOK": "mine"}, "only hook"),
    ({"COMPLETION_HOOK": "upload"}, "UPLOAD_BASE_PATH must say where to"),
    ({"COMPLETION_HOOK": "upload", "UPLOAD_BASE_PATH": "/tmp/x", "UPLOAD_FORMAT": "xml"}, "json or jsonl, not 'xml'"),
    ({"COMPLETION_HOOK": "upload", "UPLOAD_BASE_PATH": "/tmp/x", "UPLOAD_MAX_QUEUE_SIZE": "many"}, "must be a number"),
    ({"COMPLETION_HOOK": "upload", "UPLOAD_BASE_PATH": "/tmp/x", "UPLOAD_MAX_QUEUE_SIZE": "0"}, "needs a place"),
    ({"COMPLETION_HOOK": "upload", "UPLOAD_BASE_PATH": "nosuch://x"}, "cannot be uploaded to 'nosuch://x'"),
])  # fmt: skip
def test_wrong_variables_are_errors_at_setup(
    monkeypatch: pytest.MonkeyPatch, signals: Signals, variables: dict[str, str], message: str
) -> None:
    """Each names the variable and what it may be."""
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(InvalidInputError, match=message):
        setup(provider=signals.tracer_provider)


def test_the_variables_alone_are_enough(
    monkeypatch: pytest.MonkeyPatch, signals: Signals, colour: Colour, tmp_path: Path
) -> None:
    """setup() reads them; capture= of setup() does not switch the hook off; flushing writes what waits."""
    monkeypatch.setenv(PREFIX + "COMPLETION_HOOK", "upload")
    monkeypatch.setenv(PREFIX + "UPLOAD_BASE_PATH", str(tmp_path))
    monkeypatch.setenv(PREFIX + "UPLOAD_FORMAT", "jsonl")
    monkeypatch.setenv(PREFIX + "UPLOAD_MAX_QUEUE_SIZE", "50")
    with setup(provider=signals.tracer_provider, capture="SPAN_ONLY") as handle:
        chosen = active_policy().upload
        ask(colour)
        assert handle.force_flush()
        assert len(list(tmp_path.glob("*.jsonl"))) == 3

    assert chosen is not None
    assert chosen.max_queue_size == 50
    assert chosen.submit("inputs", [1], "late") is None


def test_leaving_the_process_writes_what_waits(tmp_path: Path) -> None:
    """Also without setup(), by the variables alone."""
    code = """
from tracegraph.config import get_config
from tracegraph.graph import START, StateGraph
def node(_):
    (run,) = get_config()["callbacks"].on_chat_model_start({"name": "m"}, [["hi"]])
    run.on_llm_end("hello")
    return {}
StateGraph(dict).add_node("a", node).add_edge(START, "a").compile().invoke({"n": 1})
"""
    variables = {PREFIX + "COMPLETION_HOOK": "upload", PREFIX + "UPLOAD_BASE_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True, timeout=50
    )

    assert done.returncode == 0, done.stderr
    assert sorted(path.name.partition("_")[2] for path in tmp_path.iterdir()) == ["inputs.json", "outputs.json"]


def test_without_fsspec_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InvalidInputError, match=r"tracegraph\[upload\]"):
        Upload("prompts")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork_the_child_writes_its_own_files(tmp_path: Path) -> None:
    """And not those that wait in its parent."""
    code = f"""
import os, sys
from tracegraph.telemetry.content import Upload
upload = Upload({str(tmp_path)!r})
assert upload.submit("inputs", [1], "parent")
child = os.fork()
if child == 0:
    assert upload.submit("inputs", [2], "child")
    assert upload.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert upload.shutdown()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, env=dict(os.environ))

    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["child_inputs.json", "parent_inputs.json"]


def test_a_policy_with_an_upload_is_not_off(tmp_path: Path) -> None:
    """Although it captures nothing."""
    assert not ContentPolicy(upload=Upload(str(tmp_path))).is_off
