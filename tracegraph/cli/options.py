"""What several commands share: options, and how an error that was foreseen ends them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from tracegraph.cli.output import CliError, note, one_line

__all__ = ["MOST", "Json", "reported"]

MOST: Final = 1_000_000_000
"""The longest list: far less than what a database takes as a LIMIT."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def reported() -> Iterator[None]:
    """Turn an error that was foreseen into one line and an exit code."""
    try:
        yield
    except CliError as error:
        note(f"error: {one_line(str(error))}")
        raise typer.Exit(error.code) from error
