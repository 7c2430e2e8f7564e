"""What the model and tool calls of a run tree come to, for the root run's span and its record.

Under names of ours: the calls' own spans have ``gen_ai.usage.*``, and a sum over the trace must not count them twice.
"""

from __future__ import annotations

from typing import Final

from tracegraph.events import ModelEnded, ModelStarted, ToolStarted
from tracegraph.telemetry import semconv
from tracegraph.telemetry.calls import CallEnded, CallStarted
from tracegraph.telemetry.model_calls import model_used
from tracegraph.telemetry.open_spans import Attributes

__all__ = ["RunUsage"]

_TOTALS: Final = (
    (semconv.USAGE_INPUT_TOKENS, semconv.RUN_USAGE_INPUT_TOKENS),
    (semconv.USAGE_OUTPUT_TOKENS, semconv.RUN_USAGE_OUTPUT_TOKENS),
    (semconv.USAGE_CACHE_READ_INPUT_TOKENS, semconv.RUN_USAGE_CACHE_READ_INPUT_TOKENS),
    (semconv.USAGE_CACHE_WRITE_INPUT_TOKENS, semconv.RUN_USAGE_CACHE_WRITE_INPUT_TOKENS),
    (semconv.USAGE_REASONING_OUTPUT_TOKENS, semconv.RUN_USAGE_REASONING_OUTPUT_TOKENS),
)


class RunUsage:
    """Counts calls when they begin, and tokens when they are answered; what nobody told stays absent, never 0.

    >>> RunUsage().attributes()
    {}
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def started(self, event: CallStarted) -> None:
        """Count a call of a model or tool."""
        if isinstance(event, ModelStarted):
            self._add(semconv.RUN_USAGE_MODEL_CALLS, 1)
        elif isinstance(event, ToolStarted):
            self._add(semconv.RUN_USAGE_TOOL_CALLS, 1)

    def ended(self, event: CallEnded) -> None:
        """Add what a model's answer tells of its tokens."""
        if not isinstance(event, ModelEnded) or event.response is None:
            return
        answer = model_used(event.response)
        for of_call, of_run in _TOTALS:
            if isinstance(count := answer.get(of_call), int):
                self._add(of_run, count)

    def _add(self, name: str, count: int) -> None:
        self._counts[name] = self._counts.get(name, 0) + count

    def attributes(self) -> Attributes:
        """Return the totals so far."""
        return {**self._counts}
