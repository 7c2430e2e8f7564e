"""The saver in a PostgreSQL database (extra ``postgres``); ``tracegraph.checkpoint.postgres.aio`` has the one for event loops."""

try:
    import psycopg as _psycopg  # noqa: F401  # before all that would fail for want of it with a name nobody knows
    import psycopg_pool as _psycopg_pool  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"the PostgreSQL savers need psycopg ({error}); pip install tracegraph[postgres]", name=error.name
    ) from error

from tracegraph.checkpoint.postgres.errors import PostgresSaverError
from tracegraph.checkpoint.postgres.saver import PostgresSaver

__all__ = ["PostgresSaver", "PostgresSaverError"]
