"""What telemetry may say: the names (``semconv.RUN_ID``) and, in the modules below, what each one means.

The names alone are loaded with this package, since spans need nothing else. The machine-readable part is
:mod:`tracegraph.telemetry.semconv.registry`; ``python -m tracegraph.telemetry.semconv`` writes it down as
``docs/telemetry.md``.
"""

from __future__ import annotations

from tracegraph.telemetry.semconv.names import *  # noqa: F403  # each name is written once, over there
