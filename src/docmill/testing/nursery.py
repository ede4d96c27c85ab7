"""Processes that start in a blink: forked from one that has imported everything and done nothing else.

A worker's imports cost a second and more of CPU, which a campaign of a thousand deaths pays a thousand times. The
nursery is a process with one thread and no connection, so what it forks is as good as a fresh interpreter.

    nursery = Nursery()
    pid = nursery.spawn("docmill.testing.worker_process", environment, log)
    nursery.exit_code(pid)   # None while it runs
"""

import ctypes
import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

PRELOADED = ("docmill.testing.worker_process", "docmill.testing.client_process", "psycopg", "alembic.command")
_PR_SET_PDEATHSIG = 1


class Nursery:
    """The test's end. Not for several threads at a time."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "docmill.testing.nursery"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._read = b""

    def spawn(self, module: str, environment: Mapping[str, str], log: Path, arguments: Sequence[str] = ()) -> int:
        """Run a module's `main` in a process of its own; its pid."""
        order = {"module": module, "environment": dict(environment), "log": str(log), "arguments": list(arguments)}
        self._in.write(json.dumps(order).encode() + b"\n")
        self._in.flush()
        while True:
            for told in self._hear(wait=True):
                if "born" in told:
                    return int(told["born"])

    def exit_code(self, pid: int) -> int | None:
        """How the process ended (minus the signal that killed it), or None while it runs."""
        self._hear(wait=False)
        return self._codes.get(pid)

    def _hear(self, *, wait: bool) -> list[dict[str, int]]:
        """What the nursery tells: one answer per birth, one line per death."""
        told: list[dict[str, int]] = []
        while select.select([self._out], [], [], None if wait and not told else 0)[0]:
            chunk = os.read(self._out.fileno(), 65536)
            assert chunk, "the nursery has ended"
            *lines, self._read = (self._read + chunk).split(b"\n")
            told += [json.loads(line) for line in lines]
        for line in told:
            if "ended" in line:
                self._codes[line["ended"]] = line["code"]
        return told

    def close(self) -> None:
        """End it; whatever it has started dies with it."""
        self._in.close()
        self._out.close()
        self._process.wait()


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends, however it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def _become(order: dict[str, Any], nursery: int) -> NoReturn:
    """The forked child: take on environment, log and arguments, and run."""
    code = 1
    try:
        die_with_parent(nursery)
        log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.argv = [order["module"], *order["arguments"]]
        # Armed at import from the environment, which was another then.
        importlib.import_module("docmill.engine.failpoints").arm(os.environ.get("DOCMILL_FAILPOINT"))
        importlib.import_module(order["module"]).main()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Fork on demand, tell of deaths; end when the test's end is closed."""
    die_with_parent(os.getppid())
    for name in PRELOADED:
        importlib.import_module(name)
    living: dict[int, int] = {}
    """pidfd -> pid"""
    rest = b""
    poller = select.poll()
    poller.register(0, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poller.poll()]
        for fd in ready:
            if fd in living:
                poller.unregister(fd)
                os.close(fd)
                pid = living.pop(fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.write(1, json.dumps({"ended": pid, "code": code}).encode() + b"\n")
        if 0 in ready:
            chunk = os.read(0, 65536)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                me = os.getpid()
                pid = os.fork()
                if pid == 0:
                    _become(json.loads(line), me)
                fd = os.pidfd_open(pid)
                living[fd] = pid
                poller.register(fd, select.POLLIN)
                os.write(1, json.dumps({"born": pid}).encode() + b"\n")


if __name__ == "__main__":
    main()
