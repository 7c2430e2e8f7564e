"""The batch processor that counts what it loses. Loads the SDK."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tracegraph.telemetry.losses import BatchCount

__all__ = ["CountingProcessor"]


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

    def on_end(self, span: ReadableSpan) -> None:
        """Count the span and put it into the next batch."""
        if (context := span.context) is not None and context.trace_flags.sampled:  # the others are not exported
            self._count.put()
        super().on_end(span)

    def shutdown(self) -> None:
        """Export what waits; what comes later is nobody's loss."""
        super().shutdown()  # type: ignore[no-untyped-call]  # the SDK's own
        self._count.close()
