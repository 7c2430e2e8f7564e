"""Logging as a new process has it, for a test that configures it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from tracegraph.telemetry.log_lines import _Configured

__all__ = ["bare_root"]


@contextmanager
def bare_root() -> Iterator[logging.Logger]:
    """The root logger as a new process has it; pytest's handlers come back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    root.setLevel(logging.WARNING)
    structlog.reset_defaults()
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    _Configured.processors, _Configured.handlers = None, ()
