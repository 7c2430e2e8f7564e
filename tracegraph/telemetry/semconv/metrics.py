"""Every instrument: unit, attributes and bucket boundaries. No id of a thread, run, checkpoint or task is ever on one."""

from __future__ import annotations

from typing import Final

from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import Metric, Source, Use, recommended, required, when

__all__ = ["METRICS"]

_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_RUN_SECONDS: Final = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
_TOKENS: Final = tuple(4**power for power in range(14))
_MILLISECONDS_UP: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_BYTES: Final = tuple(float(4**power) for power in range(4, 15))

_OPERATION: Final = (
    *required(names.OPERATION_NAME, names.PROVIDER_NAME),
    *when("it is known", names.REQUEST_MODEL),
    *recommended(names.RESPONSE_MODEL),
)
_FAILED: Final = when("it failed", names.ERROR_TYPE)
_WORKFLOW: Final = when("the graph has a name", names.WORKFLOW_NAME)


def _duration(
    name: str, description: str, attributes: tuple[Use, ...], buckets: tuple[float, ...] = _SECONDS, source: Source = "genai"
) -> Metric:
    return Metric(name, "histogram", "s", description, source, attributes, buckets)


def _used(name: str, description: str) -> Metric:
    return Metric(name, "counter", "{token}", description, "genai", (*_OPERATION, *required(names.TOKEN_MODALITY)))


_GENAI: Final = (
    _duration(names.OPERATION_DURATION, "How long a model call took.", (*_OPERATION, *_FAILED)),
    _duration(names.TIME_TO_FIRST_CHUNK, "From a streamed call's request to the first piece of its answer.", _OPERATION),
    _duration(names.TIME_PER_OUTPUT_CHUNK, "Between one piece of an answer and the next.", _OPERATION),
    _used(names.INPUT_TOKENS_USED, "Tokens of requests, cached ones included."),
    _used(names.OUTPUT_TOKENS_USED, "Tokens of answers, those of reasoning included."),
    _used(names.CACHE_READ_TOKENS_USED, "Of the requests' tokens, those that the provider's cache had."),
    _used(names.CACHE_WRITE_TOKENS_USED, "Of the requests' tokens, those put into that cache."),
    _used(names.REASONING_TOKENS_USED, "Of the answers' tokens, those of reasoning."),
    Metric(
        names.OPERATION_INPUT_TOKENS, "histogram", "{token}", "Tokens of one request.", "genai", (*_OPERATION, *_FAILED), _TOKENS
    ),
    Metric(
        names.OPERATION_OUTPUT_TOKENS, "histogram", "{token}", "Tokens of one answer.", "genai", (*_OPERATION, *_FAILED), _TOKENS
    ),
    Metric(
        names.TOKEN_USAGE,
        "histogram",
        "{token}",
        "Tokens of one call, in the 1.41 profile only.",
        "genai 1.41",
        (*_OPERATION, *required(names.TOKEN_TYPE)),
        _TOKENS,
    ),
    _duration(
        names.EXECUTE_TOOL_DURATION,
        "How long a tool took.",
        (*required(names.TOOL_NAME), *recommended(names.TOOL_TYPE), *_FAILED),
    ),
    _duration(
        names.INVOKE_WORKFLOW_DURATION,
        "How long a run took.",
        (*_WORKFLOW, *required(names.RUN_STATUS), *when("it is a nested run", names.NESTED), *_FAILED),
        _RUN_SECONDS,
    ),
    _duration(
        names.RUN_STEP_DURATION,
        "How long a task took.",
        (*required(names.STEP_NAME, names.TASK_STATUS), *_WORKFLOW, *_FAILED),
        source="proposal",
    ),
)

_OURS: Final = (
    Metric(names.RUNS_ACTIVE, "updowncounter", "{run}", "Runs under way.", "tracegraph", _WORKFLOW),
    _duration(
        names.SUPERSTEP_DURATION,
        "How long a superstep took, from plan to commit.",
        (*_WORKFLOW, *required(names.SUPERSTEP_STATUS)),
        _MILLISECONDS_UP,
        "tracegraph",
    ),
    Metric(
        names.TASK_RETRIES,
        "counter",
        "{retry}",
        "Tries that failed and were followed by another.",
        "tracegraph",
        (*required(names.STEP_NAME, names.ERROR_TYPE), *_WORKFLOW),
    ),
    Metric(
        names.CACHE_LOOKUPS,
        "counter",
        "{lookup}",
        "How often the node cache was asked.",
        "tracegraph",
        (*required(names.STEP_NAME, names.CACHE_HIT), *_WORKFLOW),
    ),
    _duration(names.CHECKPOINT_DURATION, "How long a save took.", (*_WORKFLOW, *_FAILED), _MILLISECONDS_UP, "tracegraph"),
    Metric(names.CHECKPOINT_SIZE, "histogram", "By", "Bytes that a save stored.", "tracegraph", _WORKFLOW, _BYTES),
    Metric(
        names.INTERRUPTS,
        "counter",
        "{interrupt}",
        "Pauses of runs.",
        "tracegraph",
        (*_WORKFLOW, *required(names.INTERRUPT_REASON)),
    ),
    _duration(names.INTERRUPT_WAIT, "From a pause to the run that goes on from it.", _WORKFLOW, _RUN_SECONDS, "tracegraph"),
)

METRICS: Final = (*_GENAI, *_OURS)
