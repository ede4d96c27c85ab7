"""Processes that start in a blink: forked from one that has imported everything and done nothing else.

The imports of a worker or a command cost a second and more of CPU, which a campaign of a thousand deaths pays a
thousand times. The nursery is a process with one thread and no connection, so what it forks is as good as a fresh
interpreter: it takes on its own environment, folder, streams, arguments and path, handles signals as Python does at its
start, and holds no file of the nursery's. What it cannot have of its own are the seed of hashes and what an interpreter
reads once from its environment; whoever wants another of those is refused (ADR 0047).

    nursery = Nursery(WORKERS)
    pid = nursery.spawn("docmill.testing.worker_process", environment, log)
    nursery.exit_code(pid)   # None while it runs
"""

import builtins
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

WORKERS = ("docmill.testing.worker_process", "docmill.testing.client_process", "psycopg", "alembic.command")
"""What the processes of a fleet import."""
_PR_SET_PDEATHSIG = 1
_LARGEST = 1 << 17
"""Bytes of an order; the environment is most of it."""


class Nursery:
    """The test's end. Not for several threads at a time."""

    def __init__(self, preloaded: Sequence[str]) -> None:
        self._codes: dict[int, int] = {}
        self._environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # No PYTHONPATH: what is found where is for each child to say.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "docmill.testing.nursery", str(theirs.fileno()), *preloaded],
                stdin=subprocess.DEVNULL,
                env=self._environment,
                pass_fds=[theirs.fileno()],
            )

    def spawn(self, module: str, environment: Mapping[str, str], log: Path, arguments: Sequence[str] = ()) -> int:
        """Run a module's `main` in a process of its own, which ends when `main` does; its pid."""
        with log.open("ab") as output, open(os.devnull, "rb") as nothing:
            streams = (nothing.fileno(), output.fileno(), output.fileno())
            return self._bear(streams, module=module, environment=environment, arguments=arguments)

    def start(
        self,
        script: Path,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        streams: tuple[int, int, int],
        session: bool = False,
    ) -> "Nursling":
        """Run a Python script as the interpreter would; `streams` are its stdin, stdout and stderr."""
        pid = self._bear(
            streams,
            script=str(script),
            environment=environment,
            arguments=arguments,
            folder=str(folder),
            session=session,
        )
        return Nursling(self, pid)

    def _bear(self, streams: Sequence[int], *, environment: Mapping[str, str], **order: object) -> int:
        others = _of_the_interpreter(self._environment) ^ _of_the_interpreter(environment)
        if others:
            raise ValueError(f"read when an interpreter starts, and the nursery's has started: {dict(others)}")
        message = json.dumps({**order, "environment": dict(environment)}).encode()
        assert len(message) <= _LARGEST
        socket.send_fds(self._socket, [message], list(streams))
        while True:
            for told in self._hear(None):
                if "born" in told:
                    return int(told["born"])

    def exit_code(self, pid: int) -> int | None:
        """How the process ended (minus the signal that killed it), or None while it runs."""
        self._hear(0)
        return self._codes.get(pid)

    def wait(self, pid: int, timeout: float) -> int | None:
        """The same, once it has ended; None if it does not in time."""
        deadline = time.monotonic() + timeout
        while (code := self._codes.get(pid)) is None:
            if not self._hear(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                break
        return code

    def _hear(self, patience: float | None) -> list[dict[str, int]]:
        """What the nursery tells: one answer per birth, one per death. Waits only while nothing was told."""
        told: list[dict[str, int]] = []
        while select.select([self._socket], [], [], 0 if told else patience)[0]:
            message = self._socket.recv(1024)
            assert message, "the nursery has ended"
            told.append(json.loads(message))
        for line in told:
            if "ended" in line:
                self._codes[line["ended"]] = line["code"]
            else:
                # The system may give a number again.
                self._codes.pop(line["born"], None)
        return told

    def close(self) -> None:
        """End it; whatever it has started dies with it."""
        self._socket.close()
        self._process.wait()


class Nursling:
    """A process that runs a script, handled as `subprocess.Popen` is."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self._nursery = nursery

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._nursery.exit_code(self.pid)

    def wait(self, timeout: float) -> int:
        """Its exit code, once it has ended."""
        code = self._nursery.wait(self.pid, timeout)
        if code is None:
            raise TimeoutError(f"process {self.pid} did not end within {timeout:g} s")
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _of_the_interpreter(environment: Mapping[str, str]) -> set[tuple[str, str]]:
    """Variables that an interpreter reads once, at its start; a path of modules can be taken on later."""
    read = ("PYTHON", "LC_", "LANG", "TZ")
    return {pair for pair in environment.items() if pair[0].startswith(read) and pair[0] != "PYTHONPATH"}


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends, however it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def _take_on(order: dict[str, Any], streams: Sequence[int]) -> None:
    """What differs from process to process, as the interpreter would have found it at its start."""
    for number, given in enumerate(streams):
        os.dup2(given, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            # That of the listing is gone already.
            with contextlib.suppress(OSError):
                os.close(int(name))
    if order.get("session"):
        os.setsid()
    os.chdir(order.get("folder", "."))
    os.environ.clear()
    os.environ.update(order["environment"])
    # Ignored by whoever was started in the background of a shell, and by all that comes of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        stream = _stream(number, name, mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = [order.get("script") or order["module"], *order["arguments"]]
    first = str(Path(order["script"]).parent) if "script" in order else os.getcwd()
    sys.path[:0] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    importlib.invalidate_caches()
    # Armed at import from the environment, which was another then.
    importlib.import_module("docmill.engine.failpoints").arm(os.environ.get("DOCMILL_FAILPOINT"))


def _stream(fd: int, name: str, mode: str) -> io.TextIOWrapper:
    """As the interpreter makes it, for whatever the stream is now: by lines towards a terminal, and for errors."""
    old: io.TextIOWrapper = getattr(sys, f"__{name}__")
    # Where PYTHONUNBUFFERED is set.
    unbuffered = old.write_through
    raw = io.FileIO(fd, mode, closefd=False)
    raw.name = f"<{name}>"
    buffer: Any = io.BufferedReader(raw) if mode == "r" else raw if unbuffered else io.BufferedWriter(raw)
    by_lines = not unbuffered and (fd == 2 or os.isatty(fd))
    stream = io.TextIOWrapper(
        buffer, old.encoding, old.errors, newline="\n", line_buffering=by_lines, write_through=unbuffered
    )
    stream.mode = mode  # type: ignore[misc]  # As the interpreter does.
    return stream


def _run_module(name: str) -> NoReturn:
    """Run its `main`, and end at once: its threads and what it holds are nobody's business then."""
    code = 1
    try:
        importlib.import_module(name).main()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run_script(path: str) -> None:
    """Run it as `__main__`; the process then ends as any interpreter does."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins)
    sys.modules["__main__"] = main
    exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)


def _serve(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork on demand, tell of deaths. Returns what to become in a child, None when the test's end is closed."""
    living: dict[int, int] = {}
    """pidfd -> pid"""
    nursery = os.getpid()
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poller.poll()]
        for fd in ready:
            if fd in living:
                poller.unregister(fd)
                os.close(fd)
                pid = living.pop(fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                connection.send(json.dumps({"ended": pid, "code": code}).encode())
        if connection.fileno() in ready:
            message, streams, _, _ = socket.recv_fds(connection, _LARGEST, 3)
            if not message:
                return None
            pid = os.fork()
            if pid == 0:
                die_with_parent(nursery)
                connection.detach()
                return json.loads(message), streams
            for stream in streams:
                os.close(stream)
            fd = os.pidfd_open(pid)
            living[fd] = pid
            poller.register(fd, select.POLLIN)
            connection.send(json.dumps({"born": pid}).encode())


def main() -> None:
    """Import, then serve; a child runs what it was born for."""
    die_with_parent(os.getppid())
    connection = socket.socket(fileno=int(sys.argv[1]))
    if not sys.flags.safe_path:
        # Our own folder, wherever that is.
        del sys.path[0]
    for name in sys.argv[2:]:
        importlib.import_module(name)
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, "a thread is lost by forking, and what it holds is held for ever"
    # Whatever is there now stays: a collection in a child need not write into pages it shares.
    gc.freeze()
    born = _serve(connection)
    if born is not None:
        order, streams = born
        _take_on(order, streams)
        if "script" in order:
            _run_script(order["script"])
        else:
            _run_module(order["module"])


if __name__ == "__main__":
    main()
