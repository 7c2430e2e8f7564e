"""The ``tracegraph`` command: run and resume graphs, look at traces and at saved state, draw a graph."""

from tracegraph.cli.app import app

__all__ = ["app"]
