"""``tracegraph graph``: a graph's drawing as Mermaid text."""

from __future__ import annotations

from tracegraph.cli.loading import load_graph
from tracegraph.cli.output import fail, print_data, to_plain_data
from tracegraph.drawing import draw

__all__ = ["draw_graph"]


def draw_graph(target: str, *, xray: bool, is_json: bool) -> None:
    """Print the drawing of a graph; nothing of it is run.

    Raises:
        CliError: it does not load, or Mermaid cannot show it.
    """
    drawing = draw(load_graph(target), xray=xray)
    if is_json:
        print_data(to_plain_data(drawing.to_json()))
        return
    try:
        print(drawing.draw_mermaid(), end="")
    except ValueError as error:
        fail(str(error), error)
