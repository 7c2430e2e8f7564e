"""``--stream``: the parts of a run as lines of JSON, written when they come, and a last line that says how it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import aclosing, closing
from typing import Any

from tracegraph.cli.output import fail
from tracegraph.errors import InvalidInputError
from tracegraph.pregel import Pregel
from tracegraph.stream.parts import checked_modes
from tracegraph.stream.wire import to_ndjson
from tracegraph.stream.wire.encoding import ndjson_line
from tracegraph.stream.wire.form import envelope

__all__ = ["Lines"]


class Lines:
    """Writes what stream modes show to stdout, past all buffers: whoever reads the pipe sees a part at once.

    A reader that does not keep up holds the run back, one that leaves stops it.
    """

    def __init__(self, modes: tuple[str, ...]) -> None:
        self._modes = modes
        # As it is now: while the run goes on, what nodes print is sent elsewhere.
        self._out = sys.stdout.fileno()
        self._is_left = False

    @classmethod
    def of(cls, modes: str, *, is_json: bool) -> Lines:
        """Return the lines for a list of modes with commas between.

        Raises:
            CliError: a mode does not exist, or JSON was not asked for.
        """
        if not is_json:
            fail("--stream writes lines of JSON: give --json too")
        try:
            return cls(checked_modes([mode.strip() for mode in modes.split(",")]))
        except InvalidInputError as error:
            fail(f"--stream: {error}", error)

    def run(self, graph: Pregel, graph_input: Any, config: Any, **options: Any) -> None:
        """Run the graph and write its parts; raises what ``invoke`` does, and OSError if nobody reads any more."""
        parts = graph.stream(graph_input, config, stream_mode=self._modes, version="v2", **options)
        with closing(to_ndjson(parts)) as chunks:
            for chunk in chunks:
                self._write(chunk)

    async def arun(self, graph: Pregel, graph_input: Any, config: Any, **options: Any) -> None:
        """Do what :meth:`run` does, on the running event loop."""
        parts = graph.astream(graph_input, config, stream_mode=self._modes, version="v2", **options)
        async with aclosing(to_ndjson(parts)) as chunks:
            async for chunk in chunks:
                self._write(chunk)

    def end(self, result: Mapping[str, Any]) -> None:
        """Write the last line, unless the reader has left."""
        if not self._is_left:
            self._write(ndjson_line(envelope("result", (), dict(result))))

    def _write(self, chunk: bytes) -> None:
        try:
            while chunk:
                chunk = chunk[os.write(self._out, chunk) :]
        except OSError:
            self._is_left = True
            raise
