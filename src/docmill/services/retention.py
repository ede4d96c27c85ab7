"""How long is long enough: lengths of time as people write them, counted back from the database's clock."""

from datetime import datetime, timedelta

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.model.errors import InvalidInput
from docmill.templates import times

_LONGEST = 100 * 366 * 86_400.0


def long_ago(database: Database, length: str) -> datetime:
    """The moment so long ago; InvalidInput for what is no length of time."""
    seconds = times.seconds(length)
    if seconds is None or seconds > _LONGEST:
        raise InvalidInput(f"{length!r} is not a length of time; write 90d, 12h, 30m, or seconds.")
    with database.read() as connection:
        return database_now(connection) - timedelta(seconds=seconds)
