"""Wake-ups between processes: hints that may be lost, doubled or late; then only latency suffers.

PostgreSQL: NOTIFY in a transaction of its own after the commit (inside, it would take a lock all committers share).
SQLite: a datagram to each worker's socket under `run/`. A message is a list of queues, or `CONTROL` when somebody
cancelled something and workers should look at their steps.
"""

import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Protocol

from docmill.db.database import Database

CONTROL = "*"
_CHANNEL = "docmill"


class Bell(Protocol):
    """Rings in all worker processes on this database."""

    def ring(self, queues: Iterable[str]) -> None:
        """Tell everybody that these queues have something ready. Never raises."""

    def listen(self, worker_id: str, on_ring: Callable[[frozenset[str]], None]) -> None:
        """Call back, from a thread of the bell's own, whenever somebody rings."""

    def close(self) -> None: ...


def open_bell(database: Database, run_dir: Path) -> Bell:
    """The bell that fits the database."""
    return PostgresBell(database) if database.kind == "postgresql" else SocketBell(run_dir)


def _message(queues: Iterable[str]) -> str:
    return ",".join(sorted(queues))


class SocketBell:
    """Datagram sockets in a directory. Addressed through the directory's descriptor: paths may be longer than 108."""

    def __init__(self, run_dir: Path) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self._run_dir = run_dir
        self._fd = os.open(run_dir, os.O_PATH | os.O_CLOEXEC)
        self._out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._out.setblocking(False)
        self._in: socket.socket | None = None
        self._own: Path | None = None
        self._stop = Event()

    def ring(self, queues: Iterable[str]) -> None:
        message = _message(queues).encode()
        if not message:
            return
        with suppress(OSError):  # The directory is gone, and with it all who could hear.
            for name in os.listdir(self._run_dir):
                if name.endswith(".sock"):
                    self._ring_one(name, message)

    def _ring_one(self, name: str, message: bytes) -> None:
        try:
            self._out.sendto(message, f"/proc/self/fd/{self._fd}/{name}")
        except ConnectionRefusedError:
            # Its process is gone.
            (self._run_dir / name).unlink(missing_ok=True)
        except OSError:
            pass  # Gone meanwhile, or so many rings unheard that one more says nothing new.

    def listen(self, worker_id: str, on_ring: Callable[[frozenset[str]], None]) -> None:
        self._own = self._run_dir / f"{worker_id}.sock"
        self._in = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._in.bind(f"/proc/self/fd/{self._fd}/{self._own.name}")
        self._in.settimeout(0.5)
        Thread(target=self._hear, args=(self._in, on_ring), name="docmill-bell", daemon=True).start()

    def _hear(self, heard: socket.socket, on_ring: Callable[[frozenset[str]], None]) -> None:
        while not self._stop.is_set():
            try:
                message = heard.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                return
            on_ring(frozenset(message.decode().split(",")))

    def close(self) -> None:
        self._stop.set()
        if self._own is not None:
            self._own.unlink(missing_ok=True)
        if self._in is not None:
            self._in.close()
        self._out.close()
        os.close(self._fd)


class PostgresBell:
    """LISTEN and NOTIFY on connections of their own, opened again whenever they are lost."""

    def __init__(self, database: Database) -> None:
        self._dsn = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        # Lane A waits for `ring`: a server that vanished must not hold it up longer than the other connections.
        self._network = {**database.network, "connect_timeout": 2}
        self._out: Any = None
        self._lock = Lock()
        self._stop = Event()

    def connect(self) -> Any:
        """A connection of the bell's own."""
        import psycopg

        connection = psycopg.connect(self._dsn, autocommit=True, **self._network)
        # A lost hint costs latency only: not worth an fsync.
        connection.execute("set synchronous_commit = off")
        return connection

    def ring(self, queues: Iterable[str]) -> None:
        message = _message(queues)
        if not message:
            return
        import psycopg

        with self._lock:
            for _ in range(2):
                try:
                    if self._out is None:
                        self._out = self.connect()
                    self._out.execute("select pg_notify(%s, %s)", (_CHANNEL, message))
                    return
                except psycopg.Error:
                    self._drop()

    def _drop(self) -> None:
        if self._out is not None:
            self._out.close()
            self._out = None

    def listen(self, worker_id: str, on_ring: Callable[[frozenset[str]], None]) -> None:
        Thread(target=self._hear, args=(on_ring,), name="docmill-bell", daemon=True).start()

    def _hear(self, on_ring: Callable[[frozenset[str]], None]) -> None:
        import psycopg

        while not self._stop.is_set():
            try:
                with self.connect() as connection:
                    connection.execute(f"listen {_CHANNEL}")
                    # Whatever rang while nobody listened.
                    on_ring(frozenset({CONTROL}))
                    while not self._stop.is_set():
                        for note in connection.notifies(timeout=0.5):
                            on_ring(frozenset(note.payload.split(",")))
                            if self._stop.is_set():
                                break
            except psycopg.Error:
                self._stop.wait(0.5)

    def close(self) -> None:
        self._stop.set()
        with self._lock:
            self._drop()
