"""Tables: columns of even width in a pipe, coloured and folded on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

from tracegraph.cli.output import has_terminal, print_text, printable

__all__ = ["print_table"]


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    free: Collection[str] = (),
    style: Callable[[str, str], str] = lambda _heading, _cell: "",
) -> None:
    """Print rows below headings, with control characters in the cells as escapes.

    Args:
        right: columns that hold numbers.
        free: columns that may be folded where the terminal is too narrow.
        style: says from a heading and a cell how the terminal shows the cell.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if not has_terminal("stdout"):
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        for row in (headings, *rows):
            print_text("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, no_wrap=heading not in free, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=style(heading, cell)) for heading, cell in zip(headings, row, strict=True)))
    Console(highlight=False).print(table)
