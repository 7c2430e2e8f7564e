"""The durable spool in front of OTLP, as ``setup()`` uses it. Loads the SDK when it is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.losses import Loss, note_loss
from tracegraph.telemetry.otlp import Signal

__all__ = ["SPOOL", "spool_exporter"]

SPOOL: Final = "tracegraph_spool"
"""The exporter's name, as the standard variables have it."""


def spool_exporter(signal: Signal) -> Callable[[], Any]:
    """Return what makes the exporter of *signal*, whose losses count for this process.

    Raises:
        InvalidInputError: the OTLP variables name something that there is not.
    """
    from tracegraph_exporters.spool import Destination, DestinationError, SpoolLogExporter, SpoolSpanExporter

    kind = SpoolSpanExporter if signal == "TRACES" else SpoolLogExporter
    try:
        Destination.find(kind.signal)
    except DestinationError as error:
        raise InvalidInputError(str(error)) from error
    return partial(kind, on_loss=lambda reason, items: note_loss(Loss(kind.signal, SPOOL, reason), items))
