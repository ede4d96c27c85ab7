"""Bytes by their content: originals, readings and results, in a folder or in a bucket.

A blob's key is the SHA-256 of its bytes, so storing the same twice is storing it once, and a name from outside never
reaches the disk. A blob is there completely or not at all: it is written under a temporary name, synced, and renamed.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from docmill.documents.faults import FileTooLarge
from docmill.documents.folders import made, sync_folder
from docmill.documents.links import Links, Method
from docmill.model.errors import DocmillError, InvalidInput, NotFound

_CHUNK = 1 << 20
UNUSED = timedelta(days=1)
"""After how long `tidy` takes a local file for one that nobody needs."""
_KEY = re.compile(r"[0-9a-f]{64}")


class BlobMissing(NotFound):
    """There are no bytes under this key: never stored, or expired."""

    code = "blob_missing"


class BlobDamaged(DocmillError):
    """The bytes under this key are not those that were stored: the disk lost some of them."""

    code = "blob_damaged"


class StorageUnavailable(DocmillError):
    """Where blobs are kept cannot be used; the message says what refused."""

    code = "storage_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """What was stored."""

    key: str
    size: int
    new: bool = True
    """False: the same bytes were there already."""


class Workshop(NamedTuple):
    """Where a child leaves what it made."""

    folder: str
    """For files that are to become blobs by `adopt`."""
    shelf: str | None = None
    """The blobs themselves, if they lie in a folder: then the child gives its file the final name, and nobody else has
    to wait for the disk."""


class Blobs(Protocol):
    """A place for blobs."""

    @property
    def local(self) -> bool:
        """Whether to look and to delete is a matter of microseconds, so that nobody need wait for it on a thread."""

    @property
    def workshop(self) -> Path:
        """A local folder for files that are to become blobs by `adopt`."""

    @property
    def shelf(self) -> Path | None:
        """The folder of the blobs themselves, if there is one: `leave` puts them there."""

    def put(self, stream: BinaryIO, *, limit: int | None = None) -> Blob:
        """Store what the stream gives; FileTooLarge beyond `limit` bytes, and then nothing is left behind."""

    def adopt(self, file: Path, key: str) -> Blob:
        """Make a finished file of the workshop, whose hash is `key`, a blob. The file is gone afterwards."""

    def read(self, key: str) -> bytes: ...

    def path_of(self, key: str) -> Path:
        """A local file with the bytes, to be read and never written: for children, which know nothing of buckets."""

    def has(self, key: str) -> bool: ...

    def delete(self, key: str) -> None:
        """Forget the bytes; nothing happens if there are none."""

    def sign(self, key: str, *, within: timedelta, now: datetime, method: Method = "GET") -> str:
        """A URL by which whoever holds it may do this, and nothing else, for so long."""

    def probe(self) -> None:
        """Make sure that bytes can be stored here, and leave nothing; StorageUnavailable says what refused."""

    def tidy(self, now: datetime) -> None:
        """Delete local files that nobody needs: left behind by children that died, or copies long unused."""


def checked_key(key: str) -> str:
    """The key; InvalidInput for anything that is none, such as a path."""
    if not _KEY.fullmatch(key):
        raise InvalidInput(f"{key[:80]!r} is not the key of a blob; it is 64 hexadecimal digits.")
    return key


class FolderBlobs:
    """Blobs in a folder of this machine (or one that all machines mount)."""

    local = True

    def __init__(self, root: Path, links: Callable[[], Links]) -> None:
        self._root = root
        self._workshop = root / "tmp"
        self._links = links

    @property
    def workshop(self) -> Path:
        _make(self._workshop)
        return self._workshop

    @property
    def shelf(self) -> Path | None:
        return self._root

    def put(self, stream: BinaryIO, *, limit: int | None = None) -> Blob:
        file, key, size = spool(stream, self.workshop, limit=limit)
        try:
            return Blob(key=key, size=size, new=_shelve(file, self._file(key)))
        finally:
            file.unlink(missing_ok=True)

    def adopt(self, file: Path, key: str) -> Blob:
        size = file.stat().st_size
        return Blob(key=key, size=size, new=_shelve(file, self._file(key)))

    def read(self, key: str) -> bytes:
        try:
            return self._file(key).read_bytes()
        except FileNotFoundError:
            raise missing(key) from None

    def path_of(self, key: str) -> Path:
        path = self._file(key)
        if not path.exists():
            raise missing(key)
        return path

    def has(self, key: str) -> bool:
        return self._file(key).exists()

    def delete(self, key: str) -> None:
        self._file(key).unlink(missing_ok=True)

    def sign(self, key: str, *, within: timedelta, now: datetime, method: Method = "GET") -> str:
        return self._links().make(checked_key(key), method=method, expires_at=now + within)

    def probe(self) -> None:
        # The folder is made at first use: until then it matters whether it can be.
        try:
            there = next(path for path in (self._root, *self._root.parents) if path.exists())
            folder = there.is_dir()
        except OSError as error:
            raise unusable(self._root, error) from error
        if not folder or not os.access(there, os.W_OK | os.X_OK):
            raise StorageUnavailable(
                f"Blobs cannot be stored in {self._root}: {there} cannot be written. Correct `storage.path`, or mend "
                "its rights."
            )

    def tidy(self, now: datetime) -> None:
        sweep(self.workshop, now - UNUSED)

    def _file(self, key: str) -> Path:
        return _place_of(self._root, checked_key(key))


def _place_of(root: Path | str, key: str) -> Path:
    # In one piece: joining paths costs more than looking at the file.
    return Path(f"{root}/{key[:2]}/{key}")


def _shelve(file: Path, target: Path) -> bool:
    """Give a synced file its name, for good: a row that names the blob may be committed the moment this returns."""
    new = not target.exists()
    if not new:
        file.unlink(missing_ok=True)
    else:
        try:
            os.replace(file, target)
        except FileNotFoundError:
            for folder in _make(target.parent):
                sync_folder(folder)
            os.replace(file, target)
    # Also when it is not new: whoever brought it may be about to.
    sync_folder(target.parent)
    return new


def leave(data: bytes, workshop: Workshop) -> dict[str, str | None]:
    """Bytes as a blob, or as a file that `adopt` makes one: what a child answers with. Both are on disk by then."""
    file, key = write_in(Path(workshop.folder), data)
    if workshop.shelf is None:
        return {"file": str(file), "key": key}
    _shelve(file, _place_of(workshop.shelf, key))
    return {"file": None, "key": key}


def spool(stream: BinaryIO, folder: Path, *, limit: int | None = None) -> tuple[Path, str, int]:
    """The stream as a synced file with a name of our own, its hash and its size; nothing is left if it is cut off."""
    digest, size = hashlib.sha256(), 0
    with _new_file(folder) as (file, fd):
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if limit is not None and size > limit:
                raise FileTooLarge(
                    f"The file is larger than {limit:,} bytes; split it, or raise `documents.max_bytes`.", limit=limit
                )
            digest.update(chunk)
            _write(fd, chunk, folder)
    return file, digest.hexdigest(), size


def write_in(folder: Path, data: bytes) -> tuple[Path, str]:
    """Bytes as a synced file in the workshop, and the key they will have: what a child leaves for `adopt`."""
    with _new_file(folder) as (file, fd):
        _write(fd, data, folder)
    return file, hashlib.sha256(data).hexdigest()


@contextmanager
def _new_file(folder: Path) -> Iterator[tuple[Path, int]]:
    """A file of our own to be written, synced at the end; gone if anything goes wrong."""
    file = folder / secrets.token_hex(16)
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(folder, error) from error
    try:
        try:
            yield file, fd
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _write(fd: int, data: bytes, folder: Path) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError as error:
            raise unusable(folder, error) from error


def sweep(folder: Path, before: datetime) -> None:
    """Delete the files of a folder that were not touched since then."""
    for entry in os.scandir(folder):
        try:
            if entry.is_file() and entry.stat().st_mtime < before.timestamp():
                os.unlink(entry.path)
        except FileNotFoundError:
            continue


def missing(key: str) -> BlobMissing:
    """What to say of a key without bytes."""
    return BlobMissing(f"There are no bytes for {key}: they expired, or the storage was changed.", key=key)


def unusable(place: Path, error: OSError) -> StorageUnavailable:
    """What to say of a folder that refuses."""
    return StorageUnavailable(f"Blobs cannot be stored in {place}: {error.strerror}. Check space and permissions.")


def _make(folder: Path) -> list[Path]:
    try:
        return made(folder)
    except OSError as error:
        raise unusable(folder, error) from error
