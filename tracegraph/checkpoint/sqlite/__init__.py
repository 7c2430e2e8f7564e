"""The saver in a SQLite database; ``tracegraph.checkpoint.sqlite.aio`` has the one for event loops."""

from tracegraph.checkpoint.sqlite.errors import SqliteSaverError
from tracegraph.checkpoint.sqlite.saver import SqliteSaver

__all__ = ["SqliteSaver", "SqliteSaverError"]
