"""The ``tracegraph`` command: run a graph, list traces, show one, draw a graph."""

from tracegraph.cli.app import app

__all__ = ["app"]
