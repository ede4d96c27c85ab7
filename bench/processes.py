"""Child processes that never outlive the driver: own session, killed as a group, die when the driver dies."""

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_MEGABYTE_KB = 1024


class BenchError(Exception):
    """A measurement could not be made; the message says what to look at."""


def die_with_parent(deadly: signal.Signals) -> Callable[[], None]:
    """A function to run in a fresh child: the kernel sends it `deadly` when its parent ends, however it ends."""
    libc = ctypes.CDLL(None)

    def arm() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(deadly))

    return arm


class WorkerGroup:
    """Worker processes of one system, started together. Use as a context manager; leaving it kills them."""

    def __init__(self, commands: Sequence[Sequence[str]], *, environment: Mapping[str, str], cwd: Path, log: Path):
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []
        with log.open("ab") as output:
            for command in commands:
                self._processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        cwd=cwd,
                        env=environment,
                        start_new_session=True,
                        preexec_fn=die_with_parent(signal.SIGKILL),
                    )
                )

    def __enter__(self) -> "WorkerGroup":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def check(self) -> None:
        """Raise when a worker has ended by itself: waiting for it would only run into the time-out."""
        for process in self._processes:
            if process.poll() is not None:
                tail = self._log.read_text(errors="replace")[-2000:]
                raise BenchError(f"A worker ended with code {process.returncode}. Last lines of {self._log}:\n{tail}")

    def kill(self) -> None:
        """kill -9 the whole tree of every worker, and reap. Their data is thrown away, so no grace is needed."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()

    def peak_rss_mb(self) -> float:
        """The largest peak resident size of any one process in the group, in MB."""
        leaders = {process.pid for process in self._processes}
        peaks = [_peak_rss_kb(pid) for pid in _pids() if _group_of(pid) in leaders]
        return max(peaks, default=0) / _MEGABYTE_KB


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _peak_rss_kb(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0
