"""Private servers for one run: PostgreSQL at its defaults and Redis without persistence, on free loopback ports.

Only ports, addresses and the connection limit are set; fsync and synchronous_commit stay on. Fresh data directories
are made for each run and removed with it. Nothing is ended that was not started here.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.processes import BenchError, die_with_parent

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 10.0
_MAX_CONNECTIONS = 300
_POSTGRES_USER = "postgres"
_ROLE = "bench"
_EVENTS_PREFIX = "docmill-bench-"


@dataclass(frozen=True, kw_only=True)
class Servers:
    """Addresses of the running servers and the folder of this run."""

    postgres_port: int
    redis_port: int
    folder: Path
    events: Path
    """Where event logs go: in memory where possible, so that counting never waits for the disk."""
    fdatasync_us: float
    """Median cost of one small durable write where PostgreSQL keeps its data: what every commit pays."""

    def url(self, database: str) -> str:
        """The address of a database on the private PostgreSQL."""
        return url(self.postgres_port, database)

    def redis_url(self) -> str:
        """The address of the private Redis, without a database number."""
        return f"redis://127.0.0.1:{self.redis_port}"

    def fresh_database(self, name: str) -> str:
        """Drop and create `name`, then checkpoint, so that no measurement pays for the one before it."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'drop database if exists "{name}" with (force)'.encode())
            connection.execute(f'create database "{name}"'.encode())
            connection.execute("checkpoint")
        return self.url(name)

    def flush_redis(self) -> None:
        """Empty the private Redis."""
        with socket.create_connection(("127.0.0.1", self.redis_port), timeout=_START_TIMEOUT_S) as connection:
            connection.sendall(b"FLUSHALL\r\n")
            connection.recv(64)


@contextlib.contextmanager
def running(home: Path) -> Iterator[Servers]:
    """Start both servers for the duration of the block; `home` is the git-ignored folder of the benchmark."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_run_folder(home))
        events = stack.enter_context(_events_folder(folder))
        make_cluster(folder / "postgres")
        postgres_port = stack.enter_context(postgres(folder / "postgres", log=folder / "postgres.log"))
        (redis_port,) = _free_ports(1)
        stack.enter_context(_redis(folder, redis_port))
        yield Servers(
            postgres_port=postgres_port,
            redis_port=redis_port,
            folder=folder,
            events=events,
            fdatasync_us=_fdatasync_us(folder),
        )


@contextlib.contextmanager
def _run_folder(home: Path) -> Iterator[Path]:
    """A folder the server's user may enter: below `home`, or in the system's temporary folder when home is closed."""
    home.mkdir(parents=True, exist_ok=True)
    _remove_stale(home, "run-")
    folder = home.resolve() / f"run-{os.getpid()}"
    folder.mkdir(mode=0o755)
    if not may_enter(folder):
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="docmill-bench-"))
        folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _events_folder(fallback: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield fallback
        return
    _remove_stale(memory, _EVENTS_PREFIX)
    folder = memory / f"{_EVENTS_PREFIX}{os.getpid()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(parent: Path, prefix: str) -> None:
    """Remove folders of runs that were killed before they could tidy up; their names end in the process id."""
    for folder in parent.glob(f"{prefix}*"):
        if not Path("/proc", folder.name.removeprefix(prefix)).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root; anybody else runs it as themselves."""
    return _POSTGRES_USER if os.geteuid() == 0 else None


def may_enter(folder: Path) -> bool:
    """Whether the user that PostgreSQL runs as can reach this folder."""
    return subprocess.run(["test", "-x", folder], user=_server_user(), check=False).returncode == 0


def _postgres_bin() -> Path:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if versions:
        return versions[-1]
    found = shutil.which("postgres")
    if found is None:
        raise BenchError("PostgreSQL is not installed: install the package `postgresql` (the service may stay off).")
    return Path(found).resolve().parent


def postgres_version() -> str:
    """What the server's program says of itself."""
    told = subprocess.run([_postgres_bin() / "postgres", "--version"], capture_output=True, text=True, check=True)
    return told.stdout.strip()


def make_cluster(data: Path) -> None:
    """Make an empty data directory for PostgreSQL."""
    user = _server_user()
    data.mkdir(mode=0o700)
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(data, account.pw_uid, account.pw_gid)
    initdb = [str(_postgres_bin() / "initdb"), "-D", str(data), "-A", "trust", "-U", _ROLE]
    initdb += ["--locale=C.UTF-8", "-E", "UTF8"]
    made = subprocess.run(initdb, user=user, group=user, capture_output=True, text=True, check=False, cwd="/")
    if made.returncode:
        raise BenchError(f"initdb failed: {made.stderr}")


@contextlib.contextmanager
def postgres(data: Path, *, log: Path, **settings: str) -> Iterator[int]:
    """Serve a data directory at the defaults of PostgreSQL, `settings` apart; yields the port."""
    (port,) = _free_ports(1)
    options = {
        "port": str(port),
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "max_connections": str(_MAX_CONNECTIONS),
        **settings,
    }
    command = [str(_postgres_bin() / "postgres"), "-D", str(data)]
    command += [word for key, value in options.items() for word in ("-c", f"{key}={value}")]

    def ready() -> bool:
        try:
            psycopg.connect(url(port, "postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    with _server(command, user=_server_user(), log=log, stop=signal.SIGINT, ready=ready):
        yield port


def url(port: int, database: str) -> str:
    """The address of a database on a private PostgreSQL; TCP for everybody."""
    return f"postgresql://{_ROLE}@127.0.0.1:{port}/{database}"


@contextlib.contextmanager
def _redis(folder: Path, port: int) -> Iterator[None]:
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        raise BenchError("Redis is not installed: install the package `redis-server` (the service may stay off).")
    options: Mapping[str, str] = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(folder),
        "appendonly": "no",
        "save": "",
        "daemonize": "no",
    }
    command = [binary, *(word for key, value in options.items() for word in (f"--{key}", value))]

    def ready() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    with _server(command, user=None, log=folder / "redis.log", stop=signal.SIGTERM, ready=ready):
        yield


@contextlib.contextmanager
def _server(
    command: Sequence[str],
    *,
    user: str | None,
    log: Path,
    stop: signal.Signals,
    ready: Callable[[], bool],
) -> Iterator[None]:
    """Run a server in the foreground until the block ends; the kernel ends it if this process is killed."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            user=user,
            group=user,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGQUIT if stop is signal.SIGINT else stop),
        )
    try:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(stop)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for candidate in sockets:
            candidate.bind(("127.0.0.1", 0))
        return [int(candidate.getsockname()[1]) for candidate in sockets]


def _fdatasync_us(folder: Path) -> float:
    """Median of 30 synced 8 kB writes into an allocated file, as a WAL writer does them."""
    times: list[float] = []
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(8192))
        os.fsync(file.fileno())
        for _ in range(30):
            began = time.perf_counter()
            os.pwrite(file.fileno(), os.urandom(8192), 0)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6
