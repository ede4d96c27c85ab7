"""Private PostgreSQL and Redis servers: a free loopback port, a temporary directory, gone when the test is.

    with PostgresServer() as server:
        url = server.create_database("orders")
        server.stop("immediate")   # as a crash would
        server.start()             # same port, same data

Nothing is shared with servers that already run on the machine, and only what was started here is ever ended.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, assert_never

import psycopg
from psycopg import sql

from docmill.testing import programs
from docmill.testing.processes import Account, ServerFailed, TetheredProcess, tail
from docmill.testing.waiting import TimedOut, until

HOST = "127.0.0.1"
START_TIMEOUT = 30.0
STOP_TIMEOUT = 30.0

StopMode = Literal["immediate", "fast"]
"""`immediate`: as a crash, recovery at the next start. `fast`: sessions are cut off, then an orderly shutdown."""


class PrivateServer(ABC):
    """What both servers share: directory, port, start, stop and the promise to leave nothing behind."""

    name: str
    immediate_signal: signal.Signals
    fast_signal: signal.Signals

    def __init__(self, directory: Path | None = None) -> None:
        """`directory` is where the server's own temporary directory is made, for example on a certain disk."""
        self._account = self._choose_account()
        self._parent = directory
        self._directory: Path | None = None
        self._process: TetheredProcess | None = None
        self.port = 0

    @property
    def directory(self) -> Path:
        """The server's own directory: data, socket and log. Exists between the first start and `close`."""
        if self._directory is None:
            raise ServerFailed(f"this {self.name} has not been started: use it in a `with` block, or call start()")
        return self._directory

    @property
    def log(self) -> Path:
        """Everything that the server printed."""
        return self.directory / "server.log"

    @property
    def running(self) -> bool:
        """Whether the server's process is there."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._require_process().pid

    def start(self) -> None:
        """Start the server and return when it answers; after a `stop`, on the same port with the same data."""
        if self.running:
            raise ServerFailed(f"this {self.name} is already running on port {self.port}")
        self.stop("immediate")  # lets go of a process that ended by itself, or was killed
        if self._directory is None:
            self._directory = self._make_directory()
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise
        if self.port == 0:
            self._launch_on_a_free_port()
        else:
            # Children of a killed server hold its memory and port for a moment longer; nothing else is forgiven.
            until(self._try_to_launch, START_TIMEOUT, interval=0.05, what=f"what remains of {self.name} to be gone")

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server and wait until its process is gone; its data stays for the next `start`."""
        if self._process is None:
            return
        match mode:
            case "immediate":
                number = self.immediate_signal
            case "fast":
                number = self.fast_signal
            case _:
                assert_never(mode)
        # A server that a test has paused could not react to anything but SIGKILL.
        self._process.send_signal(signal.SIGCONT)
        process, self._process = self._process, None
        process.end(number, STOP_TIMEOUT)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the server process, for faults such as SIGSTOP or SIGKILL."""
        self._require_process().send_signal(number)

    def close(self) -> None:
        """Stop the server and remove everything it wrote."""
        try:
            self.stop("immediate")
        finally:
            if self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
                self._directory = None
                self.port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _command(self) -> list[str]:
        """The program and its arguments, for the current port."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server serves."""

    def _choose_account(self) -> Account | None:
        return None

    def _prepare(self) -> None:  # noqa: B027  (nothing to prepare is a fair default)
        """Fill the fresh directory before the first start."""

    def _environment(self) -> dict[str, str]:
        # Not the caller's: variables such as PGPORT or PGDATA would reach into a private server.
        return {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath), "TZ": "UTC"}

    def _launch(self) -> None:
        self._process = TetheredProcess(
            self._command(),
            directory=self.directory,
            log=self.log,
            parting_signal=self.immediate_signal,
            account=self._account,
            environment=self._environment(),
        )
        try:
            until(lambda: not self.running or self._answers(), START_TIMEOUT, what=f"{self.name} to answer")
        except TimedOut:
            self.stop("immediate")
            raise ServerFailed(f"{self.name} did not answer in {START_TIMEOUT:g} s:\n{tail(self.log)}") from None
        if not self.running:
            self.stop("immediate")
            raise ServerFailed(f"{self.name} ended while starting:\n{tail(self.log)}")

    def _launch_on_a_free_port(self) -> None:
        # A port found free may be taken before the server binds it, hence more than one attempt.
        for attempts_left in (2, 1, 0):
            self.port = free_port()
            if self._try_to_launch(forgiving=attempts_left > 0):
                return

    def _try_to_launch(self, *, forgiving: bool = True) -> bool:
        """Launch; False if something is still in use and that is to be forgiven."""
        try:
            self._launch()
        except ServerFailed as error:
            if forgiving and error.still_in_use:
                return False
            raise
        return True

    def _make_directory(self) -> Path:
        directory = Path(tempfile.mkdtemp(prefix=f"docmill-{self.name.lower()}-", dir=self._enterable_parent()))
        if self._account:
            os.chown(directory, self._account.uid, self._account.gid)
        return directory

    def _enterable_parent(self) -> Path:
        if self._parent is not None:
            return self._parent
        # As root, $TMPDIR may well lie where the server's user cannot go.
        candidates = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
        for candidate in candidates:
            if candidate.is_dir() and (self._account is None or self._account.can_enter(candidate.resolve())):
                return candidate
        raise ServerFailed(f"no temporary directory that the user of {self.name} may enter; looked at {candidates}")

    def _require_process(self) -> TetheredProcess:
        if self._process is None:
            raise ServerFailed(f"this {self.name} is not running: call start() first")
        return self._process


class PostgresServer(PrivateServer):
    """A PostgreSQL of one's own. Superuser `postgres`, no password, reachable from this machine alone.

    `fsync=False` is for tests that never pull the plug: killing the server's processes loses nothing either way.
    `settings` are postgresql.conf parameters, for example `{"shared_buffers": "1GB"}`.
    """

    name = "PostgreSQL"
    immediate_signal = signal.SIGQUIT
    fast_signal = signal.SIGINT

    def __init__(
        self, *, fsync: bool = True, settings: Mapping[str, str] | None = None, directory: Path | None = None
    ) -> None:
        super().__init__(directory)
        # A page half written is for the plug to make, too.
        safety = "on" if fsync else "off"
        self._settings = {"fsync": safety, "full_page_writes": safety, **(settings or {})}
        self._copies_files = not fsync
        self._bin = programs.postgres_bin()
        self._templates: set[str] = set()
        self._administration: psycopg.Connection[Any] | None = None

    @property
    def url(self) -> str:
        """The maintenance database; make one of your own with `create_database`."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The address of a database on this server."""
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def create_database(self, name: str, *, template: str = "template0") -> str:
        """Create a database, empty or a copy of `template`, and return its address."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        if self._copies_files and self._administrator().info.server_version >= 150000:
            # Cheaper than by way of the log where nothing is waited for, and what new sessions look up is copied, too.
            statement += sql.SQL(" STRATEGY FILE_COPY")
        self._administer(statement)
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, cutting off whoever still uses it; nothing happens if there is none."""
        self._administer(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def template(self, name: str, prepare: Callable[[str], None]) -> str:
        """The name of a template database that `prepare(url)` filled, once per server.

        Copying it costs tens of milliseconds however long the preparation took:
        `server.create_database("case_7", template=server.template("schema", upgrade))`.
        """
        if name not in self._templates:
            url = self.create_database(name)
            prepare(url)
            # The first session after a change of the schema writes down what all others look up.
            psycopg.connect(url).close()
            # A copy is refused while anyone is connected to the original, and pools like to linger.
            identifier = sql.Identifier(name)
            self._administer(sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false").format(identifier))
            self._administer(
                sql.SQL("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = {}").format(
                    sql.Literal(name)
                )
            )
            self._templates.add(name)
        return name

    def stop(self, mode: StopMode = "fast") -> None:
        if self._administration is not None:
            self._administration.close()
            self._administration = None
        super().stop(mode)

    def close(self) -> None:
        super().close()
        self._templates.clear()

    def _choose_account(self) -> Account | None:
        return Account.for_servers()

    def _prepare(self) -> None:
        if self._account and not self._account.can_enter(self._bin):
            # For example the programs of a wheel in a private home directory: the server's user needs a copy it can
            # reach, libraries included, which lie at a fixed distance from the programs.
            whole = programs.WHEELS if self._bin.is_relative_to(programs.WHEELS) else self._bin.parent
            copy = self.directory / "programs"
            shutil.copytree(whole, copy, symlinks=True)
            self._bin = copy / self._bin.relative_to(whole)
        initdb = [str(self._bin / "initdb"), "-D", str(self._data), "-U", "postgres", "--auth=trust"]
        done = subprocess.run(
            [*initdb, "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions"],
            cwd=self.directory,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            user=self._account.uid if self._account else None,
            group=self._account.gid if self._account else None,
            extra_groups=[] if self._account else None,
        )
        if done.returncode:
            raise ServerFailed(f"initdb failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
            **self._settings,
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [str(self._bin / "postgres"), "-D", str(self._data), *options]

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _administer(self, statement: sql.Composed) -> None:
        self._administrator().execute(statement)

    def _administrator(self) -> psycopg.Connection[Any]:
        """Kept until the server stops: most tests need it twice."""
        if self._administration is None or self._administration.closed:
            self._administration = psycopg.connect(self.url, autocommit=True)
        return self._administration


class RedisServer(PrivateServer):
    """A Redis (or Valkey) of one's own. It keeps nothing on disk: after a stop it comes back empty."""

    name = "Redis"
    immediate_signal = signal.SIGKILL
    fast_signal = signal.SIGTERM

    def __init__(self, *, directory: Path | None = None) -> None:
        super().__init__(directory)
        self._program = programs.redis_server()

    @property
    def url(self) -> str:
        """Database 0 of this server."""
        return f"redis://{HOST}:{self.port}/0"

    def _command(self) -> list[str]:
        where = ["--bind", HOST, "--port", str(self.port), "--dir", str(self.directory)]
        return [str(self._program), *where, "--save", "", "--appendonly", "no", "--daemonize", "no"]

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=2) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def free_port() -> int:
    """A loopback port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
