"""How channel values are kept in rows: whole, or as what was added to an older one.

A value that only grows is kept as a chain: each version's row has what was added, and names the version it was added
to, its base. So that chains stay short, every 32nd row joins the 31 before it: its base is that of the first of them, its
*level* is one higher, and 32 rows of that level are joined in turn. A list of n pieces is then read from at most 31
rows of each level, each item once, and was written once for each level: three times for up to 32,768 pieces.

Source: the merging of runs of equal size is that of "The Log-Structured Merge-Tree", Acta Informatica 33, 1996.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tracegraph.checkpoint.serde.joining import Join
from tracegraph.checkpoint.sql.dialect import Dialect
from tracegraph.checkpoint.sql.orders import Operation, Rows
from tracegraph.checkpoint.sql.prepared import Blob, GrownBlob, Stored
from tracegraph.checkpoint.sql.statements import GET_PIECE
from tracegraph.records import Growth, Version

__all__ = ["FAN", "ValueRows"]

FAN: Final = 32
"""Rows of one level that are joined to one of the next."""


class _Piece(NamedTuple):
    """A row of a value, and where it stands in its chain."""

    stored: Stored
    base: Version | None = None
    growth: Growth | None = None
    level: int = -1
    """-1: the whole value that a chain begins with."""
    run: int = 1
    """How many rows of its level stand here one after the other, this one being the last."""
    chain_bytes: int = 0
    """What reading the value takes."""
    whole_bytes: int = 0
    """How large the value was as a whole when that was last looked at."""


class ValueRows:
    """The rows that a group of saves adds to a place's values."""

    def __init__(self, dialect: Dialect, place: int) -> None:
        self._dialect = dialect
        self._place = place
        self._pieces: dict[tuple[str, Version], _Piece] = {}
        """By channel and version as stored: what this group adds, and what it had to look up for that."""
        self.rows: list[tuple[Any, ...]] = []

    def add(self, blob: Blob) -> None:
        """Keep a whole value."""
        size = len(blob.stored[1])
        self._keep(blob.channel, self._dialect.version(blob.version), _Piece(blob.stored, chain_bytes=size, whole_bytes=size))

    def bytes_since(self, count: int) -> int:
        """Return how large the values of the rows are that follow the first *count* ones."""
        return sum(len(row[4]) for row in self.rows[count:])

    def grow(self, grown: GrownBlob) -> Operation[None]:
        """Keep what was added to a value, or all of it if the older value is not there any more.

        All of it too, where channels fold what is added into something smaller: once the chain is twice as large.
        """
        channel, base = grown.channel, self._dialect.version(grown.base)
        below = yield from self._piece(channel, base)
        if below is None or below.growth not in (None, grown.growth):
            self.add(Blob(channel, grown.version, grown.whole()))
            return
        chain_bytes, whole_bytes = below.chain_bytes + len(grown.stored[1]), below.whole_bytes
        if grown.growth == "fold" and chain_bytes > 2 * whole_bytes:
            whole = grown.whole()
            whole_bytes = len(whole[1])
            if 2 * chain_bytes > 3 * whole_bytes:
                self.add(Blob(channel, grown.version, whole))
                return
        stored, base, level, run = yield from self._joined_to(below, channel, base, grown.stored, grown.join)
        piece = _Piece(stored, base, grown.growth, level, run, chain_bytes, whole_bytes)
        self._keep(channel, self._dialect.version(grown.version), piece)

    def _joined_to(
        self, below: _Piece, channel: str, base: Version, stored: Stored, join: Join | None
    ) -> Operation[tuple[Stored, Version, int, int]]:
        """Return what a new piece on *base* has, its base, level and run, with those before it joined to it where that is due."""
        level = 0
        while True:
            run = below.run + 1 if below.level == level else 1
            if run < FAN or join is None:
                return stored, base, level, run
            newest_first = [stored]
            while below.level == level:
                assert below.base is not None
                newest_first.append(below.stored)
                base = below.base
                under = yield from self._piece(channel, base)
                assert under is not None, f"the base of a stored value of channel {channel!r} is missing"
                below = under
            stored = join(newest_first[::-1])
            level += 1

    def _piece(self, channel: str, version: Version) -> Operation[_Piece | None]:
        """Return the piece kept for a version; None if there is none."""
        key = (channel, version)
        if key not in self._pieces:
            rows = yield Rows(GET_PIECE, (self._place, version, channel))
            if not rows:
                return None
            kind, value, *where = rows[0]
            self._pieces[key] = _Piece((kind, value), *where)
        return self._pieces[key]

    def _keep(self, channel: str, version: Version, piece: _Piece) -> None:
        self._pieces[channel, version] = piece
        if piece.growth is None:
            self.rows.append((self._place, version, channel, *piece.stored, *(None,) * 6))
        else:
            self.rows.append((self._place, version, channel, *piece.stored, *piece[1:]))
