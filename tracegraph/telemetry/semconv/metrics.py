"""Every instrument: unit, attributes and bucket boundaries. No id of a thread, run, checkpoint or task is ever on one."""

from __future__ import annotations

from typing import Final

from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import Metric, Source, Use, recommended, required, when

__all__ = ["METRICS"]

_CALL_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_WORKFLOW_SECONDS: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0)
_WAIT_SECONDS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0)
_SAVE_BYTES: Final = tuple(4**power for power in range(4, 15))
_SAVE_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_CALLS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
_TOKENS: Final = tuple(4**power for power in range(14))

_FAILED: Final = when("it failed", names.ERROR_TYPE)
_WORKFLOW: Final = when("the graph has a name", names.WORKFLOW_NAME)
_IN_A_NODE: Final = (*_WORKFLOW, *when("a node made the call", names.STEP_NAME))
_CUT_SHORT: Final = when("it ended without a result or an error of its own", names.CALL_STATUS)
_OPERATION: Final = (
    *required(names.OPERATION_NAME),
    *when("it is a model's", names.PROVIDER_NAME),
    *when("it is known", names.REQUEST_MODEL),
    *recommended(names.RESPONSE_MODEL),
    *_IN_A_NODE,
    *_CUT_SHORT,
    *_FAILED,
)
_OF_A_RUN: Final = (*_WORKFLOW, *when("it is a nested run", names.NESTED))
_OF_A_NODE: Final = (*_WORKFLOW, *required(names.STEP_NAME))


def _seconds(
    name: str, description: str, attributes: tuple[Use, ...], buckets: tuple[float, ...] = _CALL_SECONDS, source: Source = "genai"
) -> Metric:
    return Metric(name, "histogram", "s", description, source, attributes, buckets)


def _tokens(name: str, description: str) -> Metric:
    return Metric(name, "histogram", "{token}", description, "genai", _OPERATION, _TOKENS)


def _used(name: str, description: str) -> Metric:
    return Metric(name, "counter", "{token}", description, "genai", (*_OPERATION, *required(names.MODALITY)))


def _calls(name: str, unit: str, description: str) -> Metric:
    return Metric(name, "histogram", unit, description, "proposal", _OF_A_RUN, _CALLS)


_OF_RUNS: Final = (
    _seconds(
        names.METRIC_WORKFLOW_DURATION,
        "Duration of a run, from its start to its end or pause.",
        (*_OF_A_RUN, *required(names.RUN_STATUS), *_FAILED),
        _WORKFLOW_SECONDS,
    ),
    _calls(names.METRIC_WORKFLOW_INFERENCE_CALLS, "{inference_call}", "Model calls of a run, those of runs inside it included."),
    _calls(names.METRIC_WORKFLOW_TOOL_CALLS, "{tool_call}", "Tool calls of a run, those of runs inside it included."),
    _seconds(
        names.METRIC_STEP_DURATION,
        "Duration of a task, a node in a superstep, its retries included.",
        (*_OF_A_NODE, *required(names.TASK_STATUS), *_FAILED),
        source="proposal",
    ),
    Metric(names.METRIC_RUNS_ACTIVE, "updowncounter", "{run}", "Runs that have begun and not ended.", "tracegraph", _OF_A_RUN),
    _seconds(
        names.METRIC_SUPERSTEP_DURATION,
        "Duration of a superstep, from its plan until its writes are applied.",
        (*_WORKFLOW, *required(names.SUPERSTEP_STATUS)),
        source="tracegraph",
    ),
    Metric(
        names.METRIC_TASK_RETRIES,
        "counter",
        "{retry}",
        "Failed attempts of tasks that are tried again.",
        "tracegraph",
        (*_OF_A_NODE, *_FAILED),
    ),
    Metric(
        names.METRIC_CACHE_LOOKUPS,
        "counter",
        "{lookup}",
        "Questions to the cache of node results.",
        "tracegraph",
        (*_OF_A_NODE, *required(names.CACHE_HIT)),
    ),
    _seconds(
        names.METRIC_CHECKPOINT_DURATION,
        "Duration of saving a checkpoint, by savers that do I/O.",
        (*_WORKFLOW, *_FAILED),
        _SAVE_SECONDS,
        "tracegraph",
    ),
    Metric(
        names.METRIC_INTERRUPTS,
        "counter",
        "{interrupt}",
        "Questions that nodes paused their run for, and breakpoints reached.",
        "tracegraph",
        (*_WORKFLOW, *required(names.INTERRUPT_REASON), *when("a node asked", names.STEP_NAME)),
    ),
    _seconds(
        names.METRIC_INTERRUPT_WAIT,
        "Time from a question's being asked to the resume that answers it.",
        (*_OF_A_NODE, *required(names.INTERRUPT_REASON)),
        _WAIT_SECONDS,
        "tracegraph",
    ),
    Metric(
        names.METRIC_CHECKPOINT_SIZE,
        "histogram",
        "By",
        "Bytes written for a checkpoint, by savers that tell.",
        "tracegraph",
        _WORKFLOW,
        _SAVE_BYTES,
    ),
)

_OF_CALLS: Final = (
    _seconds(names.METRIC_OPERATION_DURATION, "Duration of a model call, a retrieval or a memory call.", _OPERATION),
    _seconds(names.METRIC_TIME_TO_FIRST_CHUNK, "Time from the start of a streamed model call to its first chunk.", _OPERATION),
    _seconds(names.METRIC_TIME_PER_OUTPUT_CHUNK, "Time between a chunk of a streamed answer and the one before.", _OPERATION),
    _tokens(names.METRIC_OPERATION_INPUT_TOKENS, "Input tokens of a model call, cached ones included."),
    _tokens(names.METRIC_OPERATION_OUTPUT_TOKENS, "Output tokens of a model call, those of reasoning included."),
    Metric(
        names.METRIC_TOKEN_USAGE,
        "histogram",
        "{token}",
        "Tokens of a model call by type, in place of the other token metrics under the 1.41 conventions.",
        "genai 1.41",
        (*_OPERATION, *required(names.TOKEN_TYPE)),
        _TOKENS,
    ),
    _used(names.METRIC_USAGE_INPUT_TOKENS, "Input tokens, cached ones included."),
    _used(names.METRIC_USAGE_OUTPUT_TOKENS, "Output tokens, those of reasoning included."),
    _used(names.METRIC_USAGE_CACHE_READ_INPUT_TOKENS, "Input tokens that the provider read from its cache."),
    _used(names.METRIC_USAGE_CACHE_WRITE_INPUT_TOKENS, "Input tokens that the provider wrote to its cache."),
    _used(names.METRIC_USAGE_REASONING_OUTPUT_TOKENS, "Output tokens that were spent on reasoning."),
    _seconds(
        names.METRIC_TOOL_DURATION,
        "Duration of a tool call.",
        (*required(names.TOOL_NAME), *recommended(names.TOOL_TYPE), *_IN_A_NODE, *_CUT_SHORT, *_FAILED),
    ),
)

_OF_LOSSES: Final = (
    Metric(
        names.METRIC_STREAM_DROPPED,
        "counter",
        "{part}",
        "Parts that slow readers of streams lost, counted when the run ends.",
        "tracegraph",
        _WORKFLOW,
    ),
    Metric(
        names.METRIC_TELEMETRY_DROPPED,
        "counter",
        "{item}",
        "Spans and log records that the process is known to have lost on their way out.",
        "tracegraph",
        required(names.TELEMETRY_SIGNAL, names.TELEMETRY_SINK, names.TELEMETRY_REASON),
    ),
)

METRICS: Final = (*_OF_RUNS, *_OF_CALLS, *_OF_LOSSES)
