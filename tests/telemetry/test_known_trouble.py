"""What others have been bitten by in public threads: for each of the 24 groups, the tests that show that we are not.

Numbers and threads are those of the design's list of known trouble.
"""

from __future__ import annotations

import logging
import operator
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from langchain_core.callbacks import BaseCallbackHandler
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from otlp_receiver import OtlpGrpcReceiver
from records import Records
from scripted_models import ScriptedModel
from sent_runs import EXPORTERS
from spans import Trace

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_config
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import semconv, use_provider
from tracegraph.types import Command, Send, interrupt

TESTS = Path(__file__).parents[1]

SHOWN: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (
        "Leaving an async generator early logs no 'created in a different Context' (opentelemetry-python#2606).",
        ("cases/test_early_close_spans.py::test_async_consumer_leaves",),
    ),
    2: (
        "An async run is one trace, with parents from the run tree (opentelemetry-python-genai#513).",
        (
            "cases/test_span_parents.py::test_span_in_an_async_body_and_what_it_starts",
            "telemetry/test_span_parents_from_events.py::test_foreign_span_that_happens_to_be_current_adopts_no_nested_run",
        ),
    ),
    3: (
        "Tools in worker threads stay below their step (smolagents#1840, haystack#9203).",
        (
            "telemetry/test_model_spans.py::test_tools_side_by_side_in_worker_threads_stay_below_their_step",
            "telemetry/test_model_spans.py::test_async_tools_side_by_side_stay_below_their_step",
        ),
    ),
    4: (
        "Code in a node sees the node's span as the current one (langchain#31398, opik#3914).",
        (
            "cases/test_span_parents.py::test_span_in_a_sync_body",
            "cases/test_span_parents.py::test_span_in_an_async_body_and_what_it_starts",
            "cases/test_span_parents.py::test_span_in_a_thread_that_copies_the_context",
        ),
    ),
    5: (
        "Invocations at the same time never adopt each other's parents (langfuse#3491).",
        (
            "telemetry/test_run_spans.py::test_one_graph_from_many_threads_makes_separate_traces",
            "telemetry/test_run_spans.py::test_many_subgraphs_at_once_keep_to_their_own_parents",
        ),
    ),
    6: (
        "A pause is control flow: no error, no exception (dd-trace-py#16614, langfuse#14034, openinference#3231).",
        (
            "telemetry/test_run_spans.py::test_pause_is_no_error_and_its_resume_links_back",
            "telemetry/test_spans_from_events.py::test_control_flow_is_never_an_error",
        ),
    ),
    7: (
        "The type decides, not the name: a user's own GraphInterrupt is an error (dd-trace-js#10010).",
        ("telemetry/test_spans_from_events.py::test_users_own_error_of_a_familiar_name_is_an_error",),
    ),
    8: (
        "A resumed run is connected to the interrupted one (langfuse#6704).",
        (
            "telemetry/test_run_spans.py::test_pause_is_no_error_and_its_resume_links_back",
            "telemetry/test_run_spans.py::test_second_question_of_a_node_links_to_the_run_that_asked_it",
            "telemetry/test_received.py::test_a_real_collector_reads_what_was_made",
        ),
    ),
    9: (
        "Exactly one ended span on every exit (openlit#1454, openinference#3796, dd-trace-py#18860).",
        (
            "telemetry/test_span_ends.py::test_end_of_the_run_ends_whatever_is_still_open",
            "telemetry/test_span_ends.py::test_close_ends_everything_where_no_event_will_come",
            "cases/test_early_close_spans.py::test_sync_consumer_leaves",
            "cases/test_early_close_spans.py::test_async_consumer_leaves",
            "telemetry/test_run_spans.py::test_keyboard_interrupt_in_a_node_ends_every_span",
        ),
    ),
    10: (
        "New lifecycle callbacks raise nothing in handlers that do not know them (openinference#3307).",
        ("telemetry/test_known_trouble.py::test_handler_that_knows_no_pauses_is_left_alone",),
    ),
    11: (
        "Streamed calls have their usage, or none, never 0 (openinference#637, openllmetry#627, langgraph#5951).",
        (
            "telemetry/test_model_spans.py::test_langchain_model_has_one_span_with_its_usage",
            "telemetry/test_model_spans.py::test_usage_is_taken_from_the_last_piece_if_the_answer_has_none",
            "telemetry/test_model_spans.py::test_model_that_reports_no_usage_has_none",
        ),
    ),
    12: (
        "Beside a provider's instrumentation each call has one span and one token count (dd-trace-js#8936, openinference#2101).",
        (
            "telemetry/test_options.py::test_model_spans_can_be_left_to_others",
            "telemetry/test_options.py::test_instrumentation_that_doubles_model_spans_is_named_once",
            "telemetry/test_options.py::test_tokens_of_a_call_are_counted_on_one_span",
        ),
    ),
    13: (
        "Totals on containers do not double a sum over the trace (harness-sdk#1267).",
        (
            "telemetry/test_known_trouble.py::test_sum_of_tokens_over_a_trace_counts_each_once",
            "telemetry/test_run_usage.py::test_root_says_what_all_calls_come_to",
            "telemetry/test_registry.py::test_token_counts_stand_on_model_calls_only",
        ),
    ),
    14: (
        "Values stay below what Tempo cuts (tempo#3985), content that was asked for too; every test's spans are held against it.",
        (
            "telemetry/test_span_rules.py::test_mistake_on_a_span_is_found",
            "telemetry/test_fat_content.py::test_no_value_is_longer_than_what_a_backend_takes",
        ),
    ),
    15: (
        "So do the values of span events, tracebacks aside (tempo#5156).",
        (
            "telemetry/test_fat_content.py::test_no_value_is_longer_than_what_a_backend_takes",
            "telemetry/test_span_rules.py::test_mistake_on_a_span_is_found",
            "telemetry/test_spans_from_events.py::test_huge_error_message_is_cut",
        ),
    ),
    16: (
        "No value is so fat that a backend drops the span (jaeger#1889).",
        (
            "telemetry/test_spans_from_events.py::test_huge_error_message_is_cut",
            "telemetry/test_known_trouble.py::test_tool_that_describes_itself_at_length_is_cut_short",
            "telemetry/test_fat_content.py::test_no_span_is_fat_as_a_whole",
        ),
    ),
    17: (
        "Truncation keeps JSON valid, marks the cut and counts bytes (vscode#299952, langfuse#6517, openllmetry#3212).",
        (
            "telemetry/test_fat_content.py::test_what_was_cut_is_json_and_says_so",
            "telemetry/test_content_budget.py::test_any_value_fits_any_budget_as_valid_json",
            "telemetry/test_content_budget.py::test_a_text_that_is_no_json_is_cut_between_characters",
            "telemetry/test_content_budget.py::test_keys_are_never_cut",
        ),
    ),
    18: (
        "Fat spans do not sink their batch: gRPC takes 4 MiB (aura#124).",
        (
            "telemetry/test_known_trouble.py::test_full_batch_of_failures_fits_into_one_message",
            "telemetry/test_known_trouble.py::test_error_that_is_no_valid_text_does_not_sink_its_batch",
            "exporters/spool/test_sending.py::test_no_request_is_larger_than_the_limit",
        ),
    ),
    19: (
        "Drops are counted as a metric, and a run that dropped telemetry says so (opentelemetry-python#3152).",
        (
            "telemetry/test_losses.py::test_what_was_lost_stays_counted_when_its_sink_is_closed",
            "telemetry/test_losses.py::test_a_full_disk_is_told_by_the_run_and_the_metric",
            "telemetry/test_losses.py::test_a_store_that_somebody_has_locked_loses_what_finds_its_queue_full",
            "telemetry/test_setup_logs.py::test_a_run_says_what_was_lost_meanwhile",
            "exporters/test_sqlite_exporter.py::test_batches_that_cannot_be_written_are_logged_once_and_counted_later",
        ),
    ),
    20: (
        "After a fork the child exports its own; importing starts no thread (opentelemetry-python#1567, #3307, #2349).",
        (
            "telemetry/test_setup.py::test_forked_child_exports_its_own_spans_and_not_its_parents",
            "telemetry/test_losses.py::test_a_forked_child_counts_its_own_losses",
            "exporters/test_sqlite_exporter.py::test_forked_child_writes_through_a_connection_of_its_own",
            "telemetry/test_setup.py::test_import_loads_no_sdk_and_starts_no_thread",
        ),
    ),
    21: (
        "A long run is found before its root ends (tempo#1476, tempo#4693, tempo#7494).",
        (
            "cli/test_running_traces.py::test_running_run_is_seen_and_ends_as_usual",
            "exporters/test_open_spans.py::test_open_span_is_seen_with_what_is_known_of_it",
            "telemetry/test_known_trouble.py::test_run_under_way_is_in_the_logs",
        ),
    ),
    22: (
        "Work under way is seen, and a crash leaves evidence (opentelemetry-specification#373, #4993).",
        (
            "cli/test_running_traces.py::test_killed_run_is_abandoned",
            "cli/test_running_traces.py::test_run_that_goes_on_after_a_crash_is_found_from_the_one_that_crashed",
            "exporters/test_abandoned.py::test_killed_process_leaves_abandoned_spans",
            "telemetry/test_known_trouble.py::test_run_under_way_is_in_the_logs",
        ),
    ),
    23: (
        "Supersteps give way where a trace gets large, and then a linked trace goes on (jaeger#668).",
        (
            "telemetry/test_spans_from_events.py::test_trace_beyond_its_budget_has_no_more_superstep_spans",
            "telemetry/test_trace_parts.py::test_a_long_loop_is_in_several_traces",
        ),
    ),
    24: (
        "Links are one-way, so that ids lead both ways (jaeger#4516, tempo discussion 3656).",
        (
            "telemetry/test_spans_from_events.py::test_resumed_run_links_to_what_it_resumes",
            "exporters/test_sqlite_exporter.py::test_links_can_be_followed_backwards",
        ),
    ),
}


def test_every_group_is_shown() -> None:
    """All 24."""
    assert sorted(SHOWN) == list(range(1, 25))
    assert all(tests for _, tests in SHOWN.values())


@pytest.mark.timeout(180)
def test_the_named_tests_are_collected() -> None:
    """Pytest itself finds each, so that a renamed test takes the table along."""
    named = sorted({f"{TESTS / test}" for _, tests in SHOWN.values() for test in tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *named], cwd=TESTS.parent, capture_output=True, text=True, timeout=150, check=False)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert found == {Path(name).relative_to(TESTS.parent).as_posix() for name in named}


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


class OldHandler(BaseCallbackHandler):
    """A handler of before there were pauses, supersteps and checkpoints to be told of."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **rest: Any) -> None:
        self.told.append("start")

    def on_chain_end(self, outputs: Any, **rest: Any) -> None:
        self.told.append("end")

    def on_chain_error(self, error: BaseException, **rest: Any) -> None:
        self.told.append("error")


def test_handler_that_knows_no_pauses_is_left_alone(colour: Colour, caplog: pytest.LogCaptureFixture) -> None:
    """It hears what it knows, and nobody complains about what it does not."""
    app = StateGraph(State).add_node("ask", lambda _: {"said": [interrupt("ok?")]}).add_edge(START, "ask")
    graph, handler = app.compile(checkpointer=InMemorySaver()), OldHandler()
    config = {"configurable": {"thread_id": "t-1"}, "callbacks": [handler]}

    with caplog.at_level(logging.WARNING):
        colour.invoke(graph, {"said": []}, config)
        colour.invoke(graph, Command(resume="yes"), config)

    assert handler.told.count("start") == handler.told.count("end") == 4
    assert "error" not in handler.told
    assert [record.getMessage() for record in caplog.records] == []


def test_run_under_way_is_in_the_logs(records: Records, trace: Trace, colour: Colour) -> None:
    """Where a backend knows no open spans, the record of the start leads to the trace while nodes are at work."""
    seen: list[tuple[str, bool]] = []

    def works(_: State) -> State:
        is_open = any(name == "invoke_workflow long" for name in trace.open.values())
        seen.extend((record.event_name, is_open) for record in records.all)
        return {"said": ["done"]}

    graph = StateGraph(State).add_node("works", works).add_edge(START, "works").compile(name="long")
    colour.invoke(graph, {"said": []})

    assert seen == [("tracegraph.run.started", True)]
    (started,) = records.named("tracegraph.run.started")
    assert {started.trace_id} == trace.trace_ids


def test_sum_of_tokens_over_a_trace_counts_each_once(trace: Trace, colour: Colour) -> None:
    """A model in a subgraph in a node: three spans around it, and its tokens on none of them."""

    def asks(state: State) -> State:
        usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
        return {"said": [ScriptedModel("a", "b", usage=usage).invoke([]).content]}

    inner = StateGraph(State).add_node("asks", asks).add_edge(START, "asks").compile()
    outer = StateGraph(State).add_node("inner", inner).add_node("asks", asks).add_edge(START, "inner").add_edge("inner", "asks")
    colour.invoke(outer.compile(), {"said": []})

    assert sum(span.attributes.get(semconv.USAGE_INPUT_TOKENS, 0) for span in trace.ended) == 10
    assert sum(span.attributes.get(semconv.USAGE_OUTPUT_TOKENS, 0) for span in trace.ended) == 4


def test_tool_that_describes_itself_at_length_is_cut_short(trace: Trace) -> None:
    """Tools from servers bring descriptions of many kilobytes."""

    def calls(state: State) -> State:
        about = {"name": "search", "description": "très long " * 1000}
        get_config()["callbacks"].on_tool_start(about, "x").on_tool_end("found")
        return {"said": ["found"]}

    StateGraph(State).add_node("calls", calls).add_edge(START, "calls").compile().invoke({"said": []})

    description = trace.named("execute_tool search")[0].attributes[semconv.TOOL_DESCRIPTION]
    assert description.startswith("très long très")
    assert len(description.encode()) <= 1000


def received_from(bodies: int, fail: Any) -> tuple[int, int]:
    """Run so many failing tasks side by side, export them in one batch by gRPC; return what was made and received."""
    receiver = OtlpGrpcReceiver()
    provider = TracerProvider(shutdown_on_exit=False)
    trace = Trace(provider)
    provider.add_span_processor(trace)
    # Nothing is sent before the shutdown, so that all of it is sent in batches as full as they get.
    exporter = EXPORTERS["grpc"](receiver.url)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=600_000, max_queue_size=4096))
    graph = StateGraph(State).add_node("fails", fail, error_handler=lambda _: {"said": []})
    graph.add_conditional_edges(START, lambda _: [Send("fails", {})] * bodies, ["fails"])
    use_provider(provider)
    try:
        graph.compile().invoke({"said": []})
    finally:
        use_provider(None)
        provider.shutdown()
        receiver.close()
    return len(trace.ended), len(receiver.span_names)


def test_full_batch_of_failures_fits_into_one_message() -> None:
    """Each with a message and a traceback as long as they get; the receiver has gRPC's own limit."""

    def deep(depth: int) -> State:
        if depth:
            return deep(depth - 1)
        raise ValueError("é" * 5_000)

    made, received = received_from(600, lambda _: deep(60))

    assert made > 1000
    assert received == made


def test_error_that_is_no_valid_text_does_not_sink_its_batch() -> None:
    """The name of a file that is no UTF-8, as Python tells of it."""

    def fail(_: State) -> State:
        raise FileNotFoundError("caf\udce9.txt")

    made, received = received_from(2, fail)

    assert received == made
