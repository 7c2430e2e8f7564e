"""Every instrument that runs are measured with: made once for a meter, whatever number of runs there are.

Buckets are advice, which an application's views override. Where the GenAI conventions give boundaries, these are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter, Observation

from tracegraph.telemetry import semconv
from tracegraph.telemetry.losses import process_losses
from tracegraph.telemetry.tallies import Tally

__all__ = ["CALL_SECONDS", "SAVE_SECONDS", "TOKENS", "WORKFLOW_CALLS", "WORKFLOW_SECONDS", "Instruments"]

CALL_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Model and tool calls, and what holds them: steps and supersteps."""

WORKFLOW_SECONDS: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0)
WORKFLOW_CALLS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
WAIT_SECONDS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0)
"""Answers to questions: at once, or after a week."""

SAVE_BYTES: Final = (256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456)
SAVE_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Saves of checkpoints; the conventions have no word for these. A local file takes less than a millisecond."""


class Instruments:
    """The instruments of one meter, each an attribute named after what it measures."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._of_runs()
        self._of_calls()
        self._of_tokens()
        self._of_losses()

    def _of_runs(self) -> None:
        self.runs_active = Tally()
        self._meter.create_observable_up_down_counter(
            semconv.METRIC_RUNS_ACTIVE,
            unit="{run}",
            description="Runs that have begun and not ended.",
            callbacks=[self.runs_active.read],
        )
        self.workflow_duration = self._seconds(
            semconv.METRIC_WORKFLOW_DURATION, "Duration of a run, from its start to its end or pause.", WORKFLOW_SECONDS
        )
        self.inference_calls = self._meter.create_histogram(
            semconv.METRIC_WORKFLOW_INFERENCE_CALLS,
            "{inference_call}",
            "Model calls of a run, those of runs inside it included.",
            explicit_bucket_boundaries_advisory=WORKFLOW_CALLS,
        )
        self.tool_calls = self._meter.create_histogram(
            semconv.METRIC_WORKFLOW_TOOL_CALLS,
            "{tool_call}",
            "Tool calls of a run, those of runs inside it included.",
            explicit_bucket_boundaries_advisory=WORKFLOW_CALLS,
        )
        self.superstep_duration = self._seconds(
            semconv.METRIC_SUPERSTEP_DURATION, "Duration of a superstep, from its plan until its writes are applied."
        )
        self.step_duration = self._seconds(
            semconv.METRIC_STEP_DURATION, "Duration of a task, a node in a superstep, its retries included."
        )
        self.task_retries = self._counter(
            semconv.METRIC_TASK_RETRIES, "{retry}", "Failed attempts of tasks that are tried again."
        )
        self.cache_lookups = self._counter(semconv.METRIC_CACHE_LOOKUPS, "{lookup}", "Questions to the cache of node results.")
        self.checkpoint_duration = self._seconds(
            semconv.METRIC_CHECKPOINT_DURATION, "Duration of saving a checkpoint, by savers that do I/O.", SAVE_SECONDS
        )
        self.interrupts = self._counter(
            semconv.METRIC_INTERRUPTS, "{interrupt}", "Questions that nodes paused their run for, and breakpoints reached."
        )
        self.interrupt_wait = self._seconds(
            semconv.METRIC_INTERRUPT_WAIT, "Time from a question's being asked to the resume that answers it.", WAIT_SECONDS
        )
        self.checkpoint_size = self._meter.create_histogram(
            semconv.METRIC_CHECKPOINT_SIZE,
            "By",
            "Bytes written for a checkpoint, by savers that tell.",
            explicit_bucket_boundaries_advisory=SAVE_BYTES,
        )

    def _of_calls(self) -> None:
        self.tool_duration = self._seconds(semconv.METRIC_TOOL_DURATION, "Duration of a tool call.")
        self.operation_duration = self._seconds(
            semconv.METRIC_OPERATION_DURATION, "Duration of a model call, a retrieval or a memory call."
        )
        self.time_to_first_chunk = self._seconds(
            semconv.METRIC_TIME_TO_FIRST_CHUNK, "Time from the start of a streamed model call to its first chunk."
        )
        self.time_per_output_chunk = self._seconds(
            semconv.METRIC_TIME_PER_OUTPUT_CHUNK, "Time between a chunk of a streamed answer and the one before."
        )

    def _of_tokens(self) -> None:
        self.token_usage = self._tokens(
            semconv.METRIC_TOKEN_USAGE,
            "Tokens of a model call by type, in place of the other token metrics under the 1.41 conventions.",
        )
        self.operation_tokens: dict[str, Histogram] = {
            semconv.USAGE_INPUT_TOKENS: self._tokens(
                semconv.METRIC_OPERATION_INPUT_TOKENS, "Input tokens of a model call, cached ones included."
            ),
            semconv.USAGE_OUTPUT_TOKENS: self._tokens(
                semconv.METRIC_OPERATION_OUTPUT_TOKENS, "Output tokens of a model call, those of reasoning included."
            ),
        }
        """By the name of the span's attribute that holds the same count, as the next one."""
        self.usage: dict[str, Tally] = {
            attribute: self._tally(name, "{token}", description)
            for attribute, name, description in (
                (semconv.USAGE_INPUT_TOKENS, semconv.METRIC_USAGE_INPUT_TOKENS, "Input tokens, cached ones included."),
                (semconv.USAGE_OUTPUT_TOKENS, semconv.METRIC_USAGE_OUTPUT_TOKENS, "Output tokens, those of reasoning included."),
                (
                    semconv.USAGE_CACHE_READ_INPUT_TOKENS,
                    semconv.METRIC_USAGE_CACHE_READ_INPUT_TOKENS,
                    "Input tokens that the provider read from its cache.",
                ),
                (
                    semconv.USAGE_CACHE_WRITE_INPUT_TOKENS,
                    semconv.METRIC_USAGE_CACHE_WRITE_INPUT_TOKENS,
                    "Input tokens that the provider wrote to its cache.",
                ),
                (
                    semconv.USAGE_REASONING_OUTPUT_TOKENS,
                    semconv.METRIC_USAGE_REASONING_OUTPUT_TOKENS,
                    "Output tokens that were spent on reasoning.",
                ),
            )
        }

    def _of_losses(self) -> None:
        self.stream_dropped = self._counter(
            semconv.METRIC_STREAM_DROPPED, "{part}", "Parts that slow readers of streams lost, counted when the run ends."
        )
        self.telemetry_dropped = self._meter.create_observable_counter(
            semconv.METRIC_TELEMETRY_DROPPED,
            unit="{item}",
            description="Spans and log records that the process is known to have lost on their way out.",
            callbacks=[_telemetry_lost],
        )

    def _seconds(self, name: str, description: str, boundaries: Sequence[float] = CALL_SECONDS) -> Histogram:
        return self._meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=boundaries)

    def _tokens(self, name: str, description: str) -> Histogram:
        return self._meter.create_histogram(name, "{token}", description, explicit_bucket_boundaries_advisory=TOKENS)

    def _counter(self, name: str, unit: str, description: str) -> Counter:
        return self._meter.create_counter(name, unit, description)

    def _tally(self, name: str, unit: str, description: str) -> Tally:
        tally = Tally()
        self._meter.create_observable_counter(name, unit=unit, description=description, callbacks=[tally.read])
        return tally


def _telemetry_lost(_: CallbackOptions) -> Iterator[Observation]:
    for way, number in process_losses().items():
        attributes = {
            semconv.TELEMETRY_SIGNAL: way.signal,
            semconv.TELEMETRY_SINK: way.sink,
            semconv.TELEMETRY_REASON: way.reason,
        }
        yield Observation(number, attributes)
