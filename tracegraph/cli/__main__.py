"""``python -m tracegraph.cli``."""

from tracegraph.cli import app

app(prog_name="tracegraph")
