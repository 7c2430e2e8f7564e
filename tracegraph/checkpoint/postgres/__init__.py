"""The saver in a PostgreSQL database (extra ``postgres``); ``tracegraph.checkpoint.postgres.aio`` has the one for event loops."""

from tracegraph.checkpoint.postgres.errors import PostgresSaverError
from tracegraph.checkpoint.postgres.saver import PostgresSaver

__all__ = ["PostgresSaver", "PostgresSaverError"]
