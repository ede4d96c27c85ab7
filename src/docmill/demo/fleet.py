"""The demo's processes: started, one of them killed, all of them ended. No other process is ever touched."""

import base64
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from docmill.model.errors import DocmillError

NAMES = ("A", "B", "C")
"""Of the workers."""
OFFICE = "office"
_PATIENCE = 15.0
"""Seconds a process may take to end by itself before it is ended the hard way."""


class ProcessFailed(DocmillError):
    """A process ended that nobody killed; the message carries the end of its log."""

    code = "process_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the office listens, and the secret it was given."""

    url: str
    secret: str


class Fleet:
    """An office and a handful of workers on one installation; leaving the context ends those that still run."""

    def __init__(self, environment: Mapping[str, str], home: Path) -> None:
        self._environment = dict(environment)
        self._home = home
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.killed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def open_office(self) -> Address:
        """Start the process outside, and wait until it listens."""
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        process = self._start(OFFICE, "docmill.demo.office", str(self._home / OFFICE), stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(secret.encode())
        process.stdin.flush()
        url = process.stdout.readline().decode().strip()
        if not url:
            process.wait()
            self.check()
        return Address(url=url, secret=secret)

    def start_workers(self) -> None:
        """Start all of them; they read the settings, which must be there."""
        for name in NAMES:
            self._start(name, "docmill.demo.worker")

    def _start(
        self, name: str, module: str, *arguments: str, stdout: int | IO[bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        path = self.log(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=stdout or log,
                stderr=log,
                env=self._environment,
            )
        self._processes[name] = process
        return process

    def log(self, name: str) -> Path:
        return self._home / "logs" / f"{name if name == OFFICE else f'worker-{name}'}.log"

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def names_by_pid(self) -> dict[int, str]:
        """Process id -> name, of the killed too."""
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
        """Raise ProcessFailed if a process ended that nobody killed."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None and name not in self.killed:
                lines = self.log(name).read_text(errors="replace").splitlines()[-15:]
                log = "\n".join(f"  {line}" for line in lines)
                raise ProcessFailed(
                    f"{self.log(name).stem} ended by itself with code {code}. The end of its log:\n{log}"
                )

    def close(self) -> None:
        """Ask all to end, then wait; whoever does not end is killed."""
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
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
