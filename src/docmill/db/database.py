"""One database, opened by URL: short reads and writes for services, dedicated sessions for the engine's lanes.

SQLite transactions are explicit: a write begins IMMEDIATE and first takes an flock, so that writers of several
processes queue in the kernel instead of spinning on SQLITE_BUSY (p50 0.7 ms against 430 ms).
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.pool import NullPool, Pool, QueuePool

from docmill.db.standing import APP, ENGINE, ENTRY, KEEPER, Standing
from docmill.db.writer_lock import WriterLock
from docmill.model.errors import DatabaseUnavailable, ExtraMissing, InvalidInput
from docmill.model.extras import to_install

DatabaseKind = Literal["sqlite", "postgresql"]

_LANE_SETTINGS = (
    # Batches are joined to arrays: only nested loops over indexes are ever right, whatever the statistics say.
    "set enable_seqscan = off",
    "set enable_hashjoin = off",
    "set enable_mergejoin = off",
    "set jit = off",
)

# A server that vanished without a word is noticed within half a minute, not after the system's two hours.
_NETWORK = {
    "application_name": "docmill",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}


class Session:
    """One connection kept by one thread, with explicit write transactions."""

    def __init__(self, connection: Connection, lock: WriterLock | None) -> None:
        self.connection = connection
        self._lock = lock

    @property
    def raw(self) -> Any:
        """The driver's own connection, for the hot SQL."""
        return self.connection.connection.driver_connection

    def act_for(self, org_id: str) -> None:
        """Be the application, for this organisation, until the transaction under way ends."""
        if self._lock is None:
            Standing(APP, org_id).take(self.raw)

    def writing(self) -> AbstractContextManager[None]:
        """The right to write, without a transaction: SQLite's writers take turns."""
        return self._lock if self._lock is not None else nullcontext()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction: committed on leaving, rolled back on any exception."""
        with self.writing(), self.connection.begin():
            yield self.connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent look; never waits for a writer."""
        with self.connection.execution_options(docmill_read=True).begin():
            try:
                yield self.connection
            finally:
                self.connection.execution_options(docmill_read=False)

    def close(self) -> None:
        """Give the connection back to the operating system, whatever state it is in."""
        try:
            self.connection.invalidate()
        finally:
            self.connection.close()
            if self._lock is not None:
                self._lock.close()


@dataclass
class _Engines:
    """Made at first use, shared by all views of one database."""

    pooled: Engine | None = None
    lanes: Engine | None = None


class Database:
    """The database behind a URL: `sqlite:///path` or `postgresql://…`.

    As it is opened it speaks as the login of the URL, which is right for migrations and for nothing else: on PostgreSQL
    row-level security shows a login no row (unless it is a superuser). Whoever works with rows takes one of the views.
    """

    def __init__(self, url: str, *, patience: float = 30.0) -> None:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError) as error:
            raise InvalidInput(
                "The database URL cannot be read; write sqlite:///path or postgresql://user@host/name."
            ) from error
        backend = parsed.get_backend_name()
        if backend == "sqlite":
            self.kind: DatabaseKind = "sqlite"
            if not parsed.database or parsed.database == ":memory:":
                raise InvalidInput("An in-memory SQLite database cannot be shared by workers; name a file.", url=url)
            self.path: Path | None = Path(parsed.database)
        elif backend in ("postgresql", "postgres"):
            self.kind = "postgresql"
            self.path = None
            _need_driver()
            parsed = parsed.set(drivername="postgresql+psycopg")
        else:
            raise InvalidInput(
                f"Database URLs start with sqlite:/// or postgresql://, not {parsed.drivername}:", url=backend
            )
        self.url = parsed
        self._engines = _Engines()
        self._standing: Standing | None = None
        self.patience = patience
        """Seconds that a transaction may stand idle on PostgreSQL before the server ends it: the locks of a process
        that was stopped inside one must not outlive its lease."""

    def scoped(self, org_id: str) -> "Database":
        """This database as one organisation sees it."""
        return self._as(Standing(APP, org_id))

    def as_engine(self) -> "Database":
        """This database as the engine sees it: the jobs of all organisations, and nothing of their documents."""
        return self._as(Standing(ENGINE))

    def as_entry(self, org_id: str = "") -> "Database":
        """This database as sign-in sees it: who is there. What it writes for an organisation needs its id."""
        return self._as(Standing(ENTRY, org_id))

    def as_keeper(self) -> "Database":
        """This database for chores that concern all organisations."""
        return self._as(Standing(KEEPER))

    @property
    def standing(self) -> Standing | None:
        """As whom this view speaks; None: as the login of the URL."""
        return self._standing

    def _as(self, standing: Standing) -> "Database":
        if self._standing == standing:
            return self
        view = copy(self)
        view._standing = standing
        return view

    @property
    def network(self) -> dict[str, Any]:
        """How long PostgreSQL's silence is borne, as the driver's arguments; what the URL says comes first."""
        return {name: value for name, value in _NETWORK.items() if name not in self.url.query}

    @property
    def engine(self) -> Engine:
        """The pooled engine for reads and the services' writes, made at first use."""
        if self._engines.pooled is None:
            make = _sqlite_engine if self.kind == "sqlite" else _postgres_engine
            self._engines.pooled = make(self, QueuePool)
        return self._engines.pooled

    @property
    def lane_engine(self) -> Engine:
        """Connections of their own, unpooled, tuned for batches: who keeps one for long takes none from the others."""
        if self._engines.lanes is None:
            sqlite = self.kind == "sqlite"
            lanes = _sqlite_engine(self, NullPool) if sqlite else _postgres_engine(self, NullPool, _LANE_SETTINGS)
            self._engines.lanes = lanes
        return self._engines.lanes

    def session(self) -> Session:
        """A connection kept by one thread for long; raises DatabaseUnavailable when there is none to be had."""
        with unavailable(self):
            session = Session(self.lane_engine.connect(), self.writer_lock())
            if self._standing is not None and self.kind == "postgresql":
                try:
                    self._standing.keep(session.raw)
                except BaseException:
                    session.close()
                    raise
            return session

    def _connect(self, **options: Any) -> Connection:
        """A pooled connection whose transactions have our standing."""
        return self.engine.connect().execution_options(docmill_standing=self._standing, **options)

    @contextmanager
    def borrow(self) -> Iterator[Session]:
        """A pooled connection for one short piece of work."""
        with unavailable(self), self._connect() as connection:
            lock = self.writer_lock()
            try:
                yield Session(connection, lock)
            finally:
                if lock is not None:
                    lock.close()

    def writer_lock(self) -> WriterLock | None:
        return WriterLock(self.path.with_name(self.path.name + ".writer")) if self.path else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A short read transaction: a look at one moment."""
        options: dict[str, Any] = {"docmill_read": True}
        if self.kind == "postgresql":
            # As on SQLite, all statements of one look see the same moment.
            options["isolation_level"] = "REPEATABLE READ"
        with unavailable(self), self._connect(**options) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A short write transaction of a service."""
        with self.borrow() as session, session.write() as connection:
            yield connection

    def close(self) -> None:
        for engine in (self._engines.pooled, self._engines.lanes):
            if engine is not None:
                engine.dispose()
        self._engines.pooled = self._engines.lanes = None

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)


@contextmanager
def unavailable(database: Database) -> Iterator[None]:
    """Turn a lost or refused connection into an error that says which database and what to check."""
    try:
        yield
    except PoolExhausted as error:
        raise DatabaseUnavailable(
            f"Every connection of this process to the database {database} is in use. Try again in a moment."
        ) from error
    except Exception as error:
        if not is_connection_lost(error):
            raise
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise DatabaseUnavailable(
            f"Cannot reach the database {database}: {(str(cause).strip() or 'connection lost').splitlines()[0]}. "
            "Check that it runs and that DOCMILL_DATABASE_URL is right; `docmill doctor` looks at both."
        ) from error


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection, not the statement, is at fault."""
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return True
        error = error.orig or error
    import sqlite3

    if isinstance(error, sqlite3.OperationalError):
        return "unable to open" in str(error)
    # 57P..: the server goes away. Not 57014, a cancelled statement: its next attempt may be cancelled too, for ever.
    return isinstance(error, _postgres_errors("OperationalError", "InterfaceError")) and (
        getattr(error, "sqlstate", None) is None or str(getattr(error, "sqlstate", "")).startswith(("08", "57P"))
    )


def stood_idle(error: BaseException) -> bool:
    """Whether the server ended the transaction because nothing happened in it for too long."""
    if isinstance(error, DBAPIError):
        error = error.orig or error
    return getattr(error, "sqlstate", None) == "25P03"


def is_transient(error: BaseException) -> bool:
    """Whether the same transaction may succeed when tried again: connection lost, deadlock, disk full and the like."""
    if is_connection_lost(error):
        return True
    if isinstance(error, DBAPIError):
        error = error.orig or error
    import sqlite3

    if isinstance(error, sqlite3.OperationalError):
        return any(word in str(error) for word in ("locked", "busy", "full", "disk I/O"))
    return isinstance(error, _postgres_errors("SerializationFailure", "DeadlockDetected", "DiskFull"))


def is_collision(error: BaseException) -> bool:
    """Whether a job that was thought new, or the only active one of its entity, is not."""
    if isinstance(error, DBAPIError):
        error = error.orig or error
    import sqlite3

    if isinstance(error, sqlite3.IntegrityError):
        return str(error).startswith(
            ("UNIQUE constraint failed: processing_jobs.", "UNIQUE constraint failed: processing_batches.")
        )
    names = ("uq_processing_jobs_active", "pk_processing_jobs", "pk_processing_batches")
    diagnosis = getattr(error, "diag", None)
    return (
        isinstance(error, _postgres_errors("UniqueViolation")) and getattr(diagnosis, "constraint_name", None) in names
    )


def is_refusal(error: BaseException) -> bool:
    """Whether the database refuses the data itself, so that no other attempt can succeed."""
    if isinstance(error, DBAPIError):
        error = error.orig or error
    import sqlite3

    if isinstance(error, sqlite3.Error):
        return isinstance(error, sqlite3.DataError | sqlite3.IntegrityError | sqlite3.ProgrammingError)
    state = str(getattr(error, "sqlstate", None) or "")
    # Bad data, broken constraints, limits exceeded; and what the drivers themselves will not send.
    ours = isinstance(error, UnicodeError | OverflowError)
    return ours or state[:2] in ("22", "23", "54") or isinstance(error, _postgres_errors("DataError"))


def _need_driver() -> None:
    """PostgreSQL's driver is an extra: a laptop with SQLite does without it."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise ExtraMissing(
            f"PostgreSQL needs its driver ({error}): {to_install('postgres')}; SQLite: unset DOCMILL_DATABASE_URL.",
            extra="postgres",
        ) from error


def _postgres_errors(*names: str) -> tuple[type[Exception], ...]:
    """Errors of PostgreSQL's driver; none where nobody has imported it, since then nobody can have raised them."""
    errors = sys.modules.get("psycopg.errors")
    return () if errors is None else tuple(getattr(errors, name) for name in names)


def _sqlite_engine(database: Database, pool: type[Pool]) -> Engine:
    assert database.path is not None
    if not database.path.parent.is_dir():
        raise DatabaseUnavailable(
            f"The folder of the database {database} does not exist; create it or set DOCMILL_HOME to another."
        )
    limits: dict[str, Any] = {"pool_size": 4} if pool is QueuePool else {}
    arguments = {"check_same_thread": False, "timeout": 60}
    engine = create_engine(database.url, poolclass=pool, connect_args=arguments, **limits)

    @event.listens_for(engine, "connect")
    def _configure(raw: Any, _record: object) -> None:
        raw.isolation_level = None
        for pragma in ("journal_mode = wal", "synchronous = full", "foreign_keys = on", "cache_size = -32000"):
            raw.execute(f"pragma {pragma}")
        # Bounded WAL: checkpoint at about 16 MB, and cut the file back to at most 64 MB.
        raw.execute("pragma wal_autocheckpoint = 4000")
        raw.execute("pragma journal_size_limit = 67108864")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("docmill_read", False)
        # By the driver: what SQLAlchemy does for a statement costs more than most looks at a database of one's own.
        raw: Any = connection.connection.driver_connection
        raw.execute("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _postgres_engine(database: Database, pool: type[Pool], settings: tuple[str, ...] = ()) -> Engine:
    # What psycopg warns of when a pipeline ends by an error, the error itself says better.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    settings = (*settings, f"set idle_in_transaction_session_timeout = {round(1000 * database.patience)}")
    limits: dict[str, Any] = {"pool_size": 5, "max_overflow": 20, "pool_pre_ping": True} if pool is QueuePool else {}
    engine = create_engine(database.url, poolclass=pool, connect_args=database.network, **limits)

    @event.listens_for(engine, "connect")
    def _configure(raw: Any, _record: object) -> None:
        import orjson
        from psycopg.types.json import set_json_loads
        from psycopg.types.string import TextLoader

        # Ids are text in Python: psycopg's UUID objects cost more than the query that fetched them.
        raw.adapters.register_loader("uuid", TextLoader)
        set_json_loads(orjson.loads, raw)
        raw.execute("; ".join(settings))
        raw.commit()

    @event.listens_for(engine, "begin")
    def _stand(connection: Connection) -> None:
        standing = connection.get_execution_options().get("docmill_standing")
        if standing is not None:
            standing.take(connection.connection.driver_connection)

    return engine
