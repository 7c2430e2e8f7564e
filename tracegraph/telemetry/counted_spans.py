"""The batch processor that counts what it loses. Loads the SDK."""

from __future__ import annotations

from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tracegraph.telemetry.deadline import Deadline
from tracegraph.telemetry.losses import BatchCount

__all__ = ["CountingProcessor"]

_TIMEOUT_MS: Final = 30_000


class CountingProcessor(BatchSpanProcessor):
    """Counts every span that goes into its queue; whoever makes it counts what comes out, at the exporter.

    Args:
        exporter: takes the batches.
        count: of this processor alone.
        options: those of the class behind this one, which may be another kind of batch processor.
    """

    def __init__(self, exporter: Any, count: BatchCount, **options: Any) -> None:
        super().__init__(exporter, **options)
        self._count = count
        self._behind = exporter

    def release(self) -> None:
        """Let go of the exporter, so that a shutdown does not close it."""
        self._behind.is_released = True

    def on_end(self, span: ReadableSpan) -> None:
        """Count the span and put it into the next batch."""
        if (context := span.context) is not None and context.trace_flags.sampled:  # the others are not exported
            self._count.put()
        super().on_end(span)

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        """Export what waits, and have the exporter send it, if that is what it does later; within one deadline."""
        deadline = Deadline(_TIMEOUT_MS if timeout_millis is None else timeout_millis)
        has_flushed = super().force_flush(timeout_millis)
        return bool(self._behind.force_flush(deadline.left_ms)) and has_flushed

    def shutdown(self, timeout_millis: int = _TIMEOUT_MS) -> None:
        """Export what waits, for so long at most; what comes later is nobody's loss."""
        self._stop(timeout_millis)
        self._count.close()

    def _stop(self, timeout_millis: int) -> None:
        # The SDK's own shutdown() takes no time, but what it calls does.
        self._batch_processor.shutdown(timeout_millis)
