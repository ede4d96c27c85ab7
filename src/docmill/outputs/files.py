"""Files that are there whole or not at all."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from time import time

from docmill.documents.folders import made, sync_folder
from docmill.model.errors import DocmillError

_LOCKED, _UNLOCKED = ".tmp", ".part"
"""Ends of temporary names: of files that their writer keeps locked, and of those that a library writes for us."""
_LEFT_BEHIND = 3600.0
"""Seconds after which an unlocked one is one that nobody writes any more."""


class OutputUnwritable(DocmillError):
    """An output file cannot be written: no room, no right, or something else in its place."""

    code = "output_unwritable"


def put(files: Sequence[tuple[Path, bytes]], *, atomic: bool = True) -> None:
    """Write files, replacing what is there. Atomic: each appears whole under its name once it is on disk.

    All are written before the first is waited for, so that the disk does them together.
    """
    try:
        if atomic:
            _put_whole(files)
        else:
            for path, content in files:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    except OSError as error:
        # Of several, the first: what the system names is the folder, or a temporary name that nobody knows.
        place = files[0][0]
        raise OutputUnwritable(
            f"{place} cannot be written: {error.strerror}. Make room, mend the rights, or name another folder.",
            path=str(place),
        ) from error


def make_sure_of(folder: Path) -> None:
    """Make the folder and write a file in it, to know before the work whether that can be done."""
    try:
        made(folder)
        trial = _beside(folder / "trial", _UNLOCKED)
        trial.touch()
        trial.unlink(missing_ok=True)
    except OSError as error:
        raise OutputUnwritable(
            f"Outputs cannot be written to {folder}: {error.strerror}. Name another folder, or mend its rights.",
            path=str(folder),
        ) from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside the path to write a large file under; it takes the path's place once it is whole and on disk."""
    temporary = _beside(path, _UNLOCKED)
    try:
        yield temporary
        handle = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise OutputUnwritable(f"{path} cannot be written: {error.strerror}.", path=str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _put_whole(files: Sequence[tuple[Path, bytes]]) -> None:
    changed: dict[Path, None] = {}
    waiting: list[tuple[int, Path, Path]] = []
    try:
        for path, content in files:
            for folder in made(path.parent):
                changed[folder] = None
            handle, temporary = _locked_beside(path)
            waiting.append((handle, temporary, path))
            _write_all(handle, content)
        for handle, _, _ in waiting:
            os.fdatasync(handle)
        for _, temporary, path in waiting:
            os.replace(temporary, path)
            changed[path.parent] = None
        for folder in changed:
            sync_folder(folder)
    finally:
        for handle, temporary, _ in waiting:
            os.close(handle)
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def _locked_beside(path: Path) -> tuple[int, Path]:
    """A new file of our own beside the path. The lock says that we live: one that died leaves an unlocked file."""
    while True:
        temporary = _beside(path, _LOCKED)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, temporary
        # Taken for a dead one's between its creation and our lock.
        os.close(handle)


def _beside(path: Path, suffix: str) -> Path:
    """A name of our own for a file that is to become this one: an attempt that was given up may still be writing."""
    _sweep(path.parent)
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}{suffix}")


@lru_cache(maxsize=1000)
def _sweep(folder: Path) -> None:
    """Take away what processes that were killed left in a folder: looked for once by each process that writes there."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith((_LOCKED, _UNLOCKED)):
                with contextlib.suppress(FileNotFoundError, BlockingIOError):
                    _remove_if_dead(Path(entry.path))


def _remove_if_dead(path: Path) -> None:
    if path.suffix == _UNLOCKED:
        if path.stat().st_mtime < time() - _LEFT_BEHIND:
            path.unlink()
        return
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
