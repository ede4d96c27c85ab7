"""Turns of SQLite's writers: the kernel queues them, whatever process they are in."""

import fcntl
import os
from pathlib import Path


class WriterLock:
    """An flock that the writers of one SQLite file take in turn. Each holder needs its own instance."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *exc: object) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._fd)
