"""Bringing documents in: which files are meant, what they are called, and what their bytes are.

A name from outside is only ever shown. What cannot be taken in becomes a record that says why; nothing that a file is
can end the run that looks at it.
"""

import os
import re
import select
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from docmill.documents.blobs import Blobs
from docmill.documents.faults import DocumentFault
from docmill.documents.limits import Limits
from docmill.documents.reading import Format
from docmill.documents.records import DocumentRecord
from docmill.documents.sniffing import sniff, sniff_file
from docmill.model.documents import DocumentStatus
from docmill.model.errors import DocmillError

STDIN = "-"
_LONGEST_NAME = 200
_UNSEEN = ("Cc", "Cf", "Zl", "Zp")
_LIKE_A_BYTE = re.compile("\\\\(?=x[0-9a-f]{2}|[\\\\\0\udc80-\udcff])")
_HEAD = 1 << 16
"""Bytes that tell what a file is; only a zip archive must be seen whole."""
_UNATTENDED = 10.0
"""Seconds that a named pipe may stay without anybody who writes into it."""


class FileMissing(DocumentFault):
    """There is no such file."""

    code = "file_not_found"


class FileRefused(DocumentFault):
    """The operating system does not let us read it, or it is no file."""

    code = "file_unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input: a file, or standard input."""

    path: Path | None
    """None: standard input."""
    shown: str
    """As a person would write it."""

    @property
    def place(self) -> str:
        """Where it is, as text that any database stores."""
        return STDIN if self.path is None else storable(os.path.abspath(self.path))

    @property
    def keeps_waiting(self) -> bool:
        """Whether its bytes come from somebody who may take any time: a pipe, a device, standard input."""
        return self.path is None or _is_special(self.path)


def sources(paths: Iterable[str], *, besides: Iterable[Path] = ()) -> Iterator[Source]:
    """The inputs that these arguments name, each once: files, all files below folders in order, `-` for stdin.

    Hidden files and folders are passed over unless they are named themselves, and so are the folders of `besides`: what
    Docmill itself writes is no input.
    """
    seen: set[str] = set()
    own = frozenset(os.path.realpath(folder) for folder in besides)
    for path in paths:
        for source in _named_by(path, own):
            if source.place not in seen:
                seen.add(source.place)
                yield source


def _named_by(path: str, own: frozenset[str]) -> Iterator[Source]:
    if path == STDIN:
        yield Source(path=None, shown=STDIN)
    elif os.path.isdir(path):
        yield from _below(path, own)
    else:
        yield Source(path=Path(path), shown=storable(path))


def _below(folder: str, own: frozenset[str]) -> Iterator[Source]:
    unlisted: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=unlisted.append):
        shown = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in shown if os.path.realpath(os.path.join(parent, name)) not in own]
        for name in sorted(names):
            path = os.path.join(parent, name)
            if not name.startswith(".") and not _is_special(path):
                yield Source(path=Path(path), shown=storable(path))
    # Passed over in silence, all that lies in them would seem to be done.
    for error in unlisted:
        path = os.fsdecode(error.filename)
        yield Source(path=Path(path), shown=storable(path))


def _is_special(path: str | Path) -> bool:
    """A pipe or a device: waiting for its end may take for ever."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def storable(text: str) -> str:
    """Text that any database stores: bytes that are no UTF-8 are written as `\\xNN`, and no two names come out alike.

    So a backslash that would read as the beginning of such a byte is written twice.
    """
    apart = _LIKE_A_BYTE.sub(r"\\\\", text)
    return os.fsencode(apart).decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def shown_name(name: str) -> str:
    """The last part of a name as it is shown: one line, nothing invisible, not too long; the ending is kept."""
    last = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    # Control characters, and those that turn the direction of writing: `gpj.exe` must not look like `exe.jpg`.
    visible = "".join(char for char in last if char.isspace() or unicodedata.category(char) not in _UNSEEN)
    cleaned = storable(" ".join(visible.split()).strip(". ")) or "document"
    if len(cleaned) <= _LONGEST_NAME:
        return cleaned
    stem, dot, ending = cleaned.rpartition(".")
    if not dot or len(ending) > 10:
        return cleaned[: _LONGEST_NAME - 1] + "…"
    return stem[: _LONGEST_NAME - len(ending) - 2] + "…." + ending


def absent(source: Source) -> FileMissing | None:
    """Why there is nothing to take in: the path names nothing. Looked at before the work, it is no document."""
    if source.path is None:
        return None
    try:
        source.path.stat()
    except (FileNotFoundError, NotADirectoryError):
        what = "folder" if source.shown.endswith("/") else "file"
        return FileMissing(f"There is no {what} {source.shown}. Check the path.")
    except ValueError:
        return _no_name()
    except OSError:
        # It may be there and not be ours to look at: whoever opens it says so.
        return None
    return None


def _no_name() -> FileMissing:
    return FileMissing("The path holds a NUL character; no file has such a name.")


def take_in(source: Source, record: DocumentRecord, blobs: Blobs, limits: Limits) -> DocumentRecord:
    """The record of what the source holds, its bytes stored; or the same with the reason why not.

    What stops the whole installation, such as a full disk, is raised.
    """
    try:
        if source.path is None:
            if sys.stdin is None:
                raise FileRefused("Standard input is closed. Name files, or pipe one in.")
            return _stored(sys.stdin.buffer, record, blobs, limits)
        with _opened(source.path) as stream:
            return _stored(stream, record, blobs, limits)
    except DocumentFault as fault:
        return refused(record, fault)


def refused(record: DocumentRecord, fault: DocmillError) -> DocumentRecord:
    """The record of a document that failed before there was a job for it."""
    return replace(
        record,
        status=DocumentStatus.FAILED,
        error_code=fault.code,
        error_message=fault.message,
        finished_at=record.created_at,
        job_id=None,
    )


def _opened(path: Path) -> BinaryIO:
    try:
        if path.is_dir():
            raise FileRefused("The folder cannot be listed. Check its permissions.")
        if path.is_fifo():
            return _attended(path)
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissing(f"There is no file {storable(str(path))}. Check the path.") from None
    except OSError as error:
        raise FileRefused(f"The file cannot be read: {error.strerror}. Check its permissions.") from None
    except ValueError:
        raise _no_name() from None


def _attended(path: Path) -> BinaryIO:
    """The pipe, once somebody writes into it. To open one as a file would wait for that for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    stream = os.fdopen(descriptor, "rb")
    try:
        looked_at = select.poll()
        looked_at.register(descriptor, select.POLLIN)
        if not looked_at.poll(_UNATTENDED * 1000):
            raise FileRefused(f"Nobody wrote into this pipe for {_UNATTENDED:.0f} s. Begin with who writes into it.")
        os.set_blocking(descriptor, True)
    except BaseException:
        stream.close()
        raise
    return stream


class _Input:
    """The stream, with the errors of reading told apart from those of writing."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.head = b""

    def read(self, size: int) -> bytes:
        try:
            chunk = self._stream.read(size)
        except OSError as error:
            raise FileRefused(f"The file cannot be read: {error.strerror}.") from None
        if len(self.head) < _HEAD:
            self.head += chunk[: _HEAD - len(self.head)]
        return chunk


def _stored(stream: BinaryIO, record: DocumentRecord, blobs: Blobs, limits: Limits) -> DocumentRecord:
    source = _Input(stream)
    blob = blobs.put(source, limit=limits.max_bytes)  # type: ignore[arg-type]  # reads, as all that is asked of it
    found = replace(record, sha256=blob.key, size=blob.size, original_key=blob.key)
    try:
        return replace(found, format=_format(source.head, blob.key, blobs).value)
    except DocumentFault as fault:
        if blob.new:
            blobs.delete(blob.key)
        return refused(replace(found, original_key=None), fault)


def _format(head: bytes, key: str, blobs: Blobs) -> Format:
    # The directory of an archive is at its end.
    return sniff_file(blobs.path_of(key)) if head.startswith(b"PK") else sniff(head)
