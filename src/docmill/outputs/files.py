"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from docmill.model.errors import DocmillError


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
        place = error.filename2 or error.filename or files[0][0]
        raise OutputUnwritable(
            f"The output {place} cannot be written: {error.strerror}. Make room, mend the rights, or set output.root.",
            path=str(place),
        ) from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside the path to write a large file under; it takes the path's place once it is whole and on disk."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
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
            for folder in _made(path.parent):
                changed[folder] = None
            # Always the same name: what a killed process left behind is taken away by whoever writes the file after it.
            temporary = path.with_name(f".{path.name}.tmp")
            temporary.unlink(missing_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
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


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _made(folder: Path) -> list[Path]:
    """Make a folder; returns those that got a new entry and must be synced for it to last."""
    missing = []
    place = folder
    while not place.is_dir():
        missing.append(place)
        place = place.parent
    for place in reversed(missing):
        place.mkdir(exist_ok=True)
    return [place.parent for place in missing]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
