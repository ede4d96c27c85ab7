"""The demo's worker processes: started, one of them killed, all of them ended. No other process is ever touched."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from docmill.model.errors import DocmillError

NAMES = ("A", "B", "C")
_PATIENCE = 15.0
"""Seconds a worker may take to drain before it is ended the hard way."""


class WorkerFailed(DocmillError):
    """A worker process ended by itself; the message carries the end of its log."""

    code = "worker_failed"


class Fleet:
    """A handful of workers on one installation; leaving the context ends those that still run."""

    def __init__(self, environment: Mapping[str, str], logs: Path) -> None:
        self._environment = dict(environment)
        self._logs = logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.killed: set[str] = set()

    def __enter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        try:
            for name in NAMES:
                self._processes[name] = self._start(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        with self.log(name).open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "docmill.demo.worker"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment,
            )

    def log(self, name: str) -> Path:
        return self._logs / f"worker-{name}.log"

    def names_by_pid(self) -> dict[int, str]:
        """Process id -> worker name, of the killed too."""
        return {process.pid: name for name, process in self._processes.items()}

    def kill_if(self, name: str, holds_enough: Callable[[], bool]) -> bool:
        """Kill this worker with SIGKILL if it holds enough at this very moment; it is stopped while we look."""
        process = self._processes[name]
        os.kill(process.pid, signal.SIGSTOP)
        try:
            worth_it = holds_enough()
            if worth_it:
                process.kill()
                process.wait()
                self.killed.add(name)
        finally:
            if name not in self.killed:
                os.kill(process.pid, signal.SIGCONT)
        return worth_it

    def check(self) -> None:
        """Raise WorkerFailed if a worker ended that nobody killed."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None and name not in self.killed:
                lines = self.log(name).read_text(errors="replace").splitlines()[-15:]
                log = "\n".join(f"  {line}" for line in lines)
                raise WorkerFailed(f"Worker {name} ended by itself with code {code}. The end of its log:\n{log}")

    def close(self) -> None:
        """Ask all to drain, then wait; whoever does not end is killed."""
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for process in self._processes.values():
            if process.stdin is not None:
                process.stdin.close()
