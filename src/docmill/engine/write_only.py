"""The fast way for processors that only write: statements go straight to the driver, and nobody waits for an answer.

On PostgreSQL they travel in a pipeline, on SQLite without SQLAlchemy's machinery; either costs a fraction of a full
execute. A processor that asks for more (a result, a savepoint, a Core statement) or meets an error is run again the
full way, in a fresh transaction; `LaneB` remembers which ones those are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NoReturn

from sqlalchemy import Connection, text
from sqlalchemy.dialects import postgresql

from docmill.db.database import is_transient


class NeedsFullDatabase(BaseException):
    """Leaves the transaction; not an Exception, so that a processor's `except Exception` cannot hold it back."""


class _Unread:
    """Stands for a result that was never fetched: any use of it means that the full way is needed."""

    __slots__ = ("_database",)

    def __init__(self, database: "WriteOnlyDatabase") -> None:
        self._database = database

    def __getattr__(self, name: str) -> NoReturn:
        self._database.refuse()

    def __iter__(self) -> NoReturn:
        self._database.refuse()

    def __bool__(self) -> NoReturn:
        self._database.refuse()


@lru_cache(maxsize=512)
def _psycopg_text(statement: str) -> str:
    """`:name` parameters as the driver spells them."""
    dialect = postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy does not type its dialects
    return str(text(statement).compile(dialect=dialect))


class WriteOnlyDatabase:
    """`plugin.Database` for the optimistic attempt."""

    def __init__(self, connection: Connection) -> None:
        self._raw: Any = connection.connection.driver_connection
        self._postgres = connection.dialect.name == "postgresql"
        self._unread = _Unread(self)
        self.refused = False

    def refuse(self) -> NoReturn:
        """Give up this attempt."""
        self.refused = True
        raise NeedsFullDatabase

    def raise_swallowed(self) -> None:
        """A processor that went on although the attempt was given up."""
        if self.refused:
            raise NeedsFullDatabase

    def execute(self, statement: Any, parameters: Any = None) -> Any:
        if not isinstance(statement, str) or isinstance(parameters, list | tuple):
            self.refuse()
        try:
            # Never None: psycopg would leave the doubled percent signs of the compiled text as they are.
            self._raw.execute(_psycopg_text(statement) if self._postgres else statement, parameters or {})
        except Exception as error:
            if is_transient(error):
                raise
            # Not this error, but the one SQLAlchemy makes of it, is what the processor may be prepared for.
            self.refuse()
        return self._unread

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.refuse()
        yield

    def full(self) -> NoReturn:
        """What is asked for must be read: not here."""
        self.refuse()

    @contextmanager
    def together(self) -> Iterator[None]:
        """The applies of one batch: sent without waiting, errors raised at the end."""
        if self._postgres:
            with self._raw.pipeline():
                yield
        else:
            yield
