"""``tracegraph traces`` and ``tracegraph trace``, after runs of the same command."""

from __future__ import annotations

import re

from command_line import Command


def test_before_the_first_run_there_is_nothing_to_list(command: Command) -> None:
    """That is no error: an empty list, and a word on how traces come about."""
    assert command("traces", "--json").data == []
    done = command("traces")
    assert (done.code, done.out) == (0, "")
    assert "no traces yet" in done.err


def test_runs_are_listed_newest_first(run: Command, command: Command) -> None:
    """With status, thread and the full id, one a line."""
    run("good", "--input", '{"n": 1}', "--thread", "t-1")
    run("failing", "--input", '{"n": 1}')

    headings, first, second = command("traces").out.splitlines()

    assert headings.split() == ["trace", "started", "status", "duration", "spans", "name", "thread"]
    assert re.match(r"[0-9a-f]{32}  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  failed ", first)
    assert re.search(r"  completed .*  invoke_workflow good +t-1$", second)
    assert len(command("traces", "--limit", "1").out.splitlines()) == 2
    listed = command("traces", "--json").data
    assert [(trace["status"], trace["thread_id"]) for trace in listed] == [("failed", None), ("completed", "t-1")]
    assert all(trace["duration_ns"] > 0 for trace in listed)


def test_a_trace_is_a_tree_with_steps_durations_and_status(run: Command, command: Command) -> None:
    """Found by `last`, by its id and by the first digits of it."""
    trace_id = run("failing_inside", "--input", '{"n": 1}', "--json").data["trace_id"]

    shown = command("trace", "last")

    lines = shown.out.splitlines()
    assert shown.code == 0
    assert re.fullmatch(rf"trace {trace_id}  \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d  failed  5 spans", lines[0])
    duration = r"[\d.]+ (us|ms|s)"
    patterns = [
        rf"invoke_workflow  {duration}  error: first line",
        rf"  run_step inner  step 1  {duration}  error: first line",
        rf"    invoke_workflow  {duration}  error: first line",
        rf"      run_step add  step 1  {duration}",
        rf"      run_step explode  step 2  {duration}  error: first line",
    ]
    for line, pattern in zip(lines[1:], patterns, strict=True):
        assert re.fullmatch(pattern, line)
    assert command("trace", trace_id).out == command("trace", trace_id[:8]).out == shown.out


def test_attributes_are_shown_on_demand(run: Command, command: Command) -> None:
    """Below each span; JSON has them anyway."""
    run("good", "--input", '{"n": 1}', "--thread", "t-1")

    assert "gen_ai.conversation.id" not in command("trace", "last").out
    assert "  gen_ai.conversation.id = t-1\n" in command("trace", "last", "--attributes").out
    data = command("trace", "last", "--json").data
    assert (data["status"], data["thread_id"], data["continued_in"]) == ("completed", "t-1", [])
    names = [span["name"] for span in data["spans"]]
    assert [name for name in names if not name.startswith("checkpoint ")] == ["invoke_workflow good", "run_step add"]
    assert data["spans"][0]["attributes"]["gen_ai.conversation.id"] == "t-1"


def test_run_joins_the_trace_of_the_environment(run: Command, command: Command) -> None:
    """A script or a CI job that is traced itself hands its context on as W3C has it, in TRACEPARENT."""
    trace_id = "0af7651916cd43dd8448eb211c80319c"

    done = run("good", "--input", '{"n": 1}', "--json", env={"TRACEPARENT": f"00-{trace_id}-b7ad6b7169203331-01"})

    assert done.data["trace_id"] == trace_id
    assert command("trace", "last", "--json").data["spans"][0]["parent_id"] == "b7ad6b7169203331"


def test_an_unknown_trace_is_named(run: Command, command: Command) -> None:
    """Code 2, one line."""
    run("good", "--input", "{}")

    done = command("trace", "zz")

    assert (done.code, done.out) == (2, "")
    assert re.match("error: no trace in .* begins with 'zz'", done.err)
    assert done.err.count("\n") == 1
