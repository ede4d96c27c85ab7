"""Same-host takeover: each worker holds an flock on `run/<worker>.lock`; whoever obtains it knows the worker is gone.

The kernel lets go of the lock with the process, at once and for certain, while pids can be reused. A stopped process
keeps it, so then the lease decides. The lock is opened close-on-exec and must be taken after any fork.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class WorkerLock:
    """This process's proof of life."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._fd: int | None = None
        self._path: Path | None = None

    def take(self, worker_id: str) -> None:
        """Hold the lock of this worker id, letting go of an earlier one."""
        self.drop()
        self._run_dir.mkdir(parents=True, exist_ok=True)
        path = self._run_dir / f"{worker_id}.lock"
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            # A sweeper may have seen the new file before we locked it and removed it: then ours is a lock on nothing.
            if _is_at(fd, path):
                break
            os.close(fd)
        self._fd, self._path = fd, path

    def drop(self) -> None:
        """Let go and tidy up."""
        if self._fd is not None and self._path is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = self._path = None


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def is_gone(run_dir: Path, worker_id: str) -> bool:
    """Whether this worker ran on this host and its process no longer exists. A look that leaves everything as it is."""
    try:
        fd = os.open(run_dir / f"{worker_id}.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # It ran elsewhere, or as somebody else: then its lease decides.
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def gone_workers(run_dir: Path, *, own: str) -> Iterator[str]:
    """Ids of workers on this host whose process no longer exists. Each lock is held while the caller looks at it.

    The file is removed afterwards, so that every death is reported by somebody and cleaned up once.
    """
    for path in sorted(run_dir.glob("*.lock")) if run_dir.is_dir() else ():
        if path.stem == own:
            continue
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            continue
        try:
            yield path.stem
            path.unlink(missing_ok=True)
        finally:
            os.close(fd)
