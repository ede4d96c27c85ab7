"""Zip archives, read from memory entry by entry and counted on the way; nothing is ever unpacked to disk."""

import io
import posixpath
import stat
import zipfile
import zlib

from docmill.documents.faults import ArchiveRefused, DamagedFile, EncryptedEpub
from docmill.documents.limits import Limits

_CENTRAL_RECORD = b"PK\x01\x02"
_PIECE = 1 << 16
_SMALL = 1 << 20
"""Entries below this size may be packed as tightly as they like."""


class Archive:
    """The entries of an archive by their names; those with unsafe names do not exist."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._limits = limits
        self._left = limits.archive_bytes
        # Before the directory is read: a million entries would fill the memory before the first is looked at.
        entries = data.count(_CENTRAL_RECORD)
        if entries > limits.archive_entries:
            raise ArchiveRefused(
                f"The archive has {entries} entries; {limits.archive_entries} are the limit. Split it.", entries=entries
            )
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError, IndexError) as error:
            raise DamagedFile(f"The archive is damaged ({error}). Ask for a new copy.") from None
        self._entries = {info.filename: info for info in self._zip.infolist() if _is_safe(info)}

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def refuse_bombs(self) -> None:
        """Of an archive that is no book it is told if it was made to exhaust; of a book only what is read matters."""
        for name, info in self._entries.items():
            if info.file_size > self._limits.archive_entry_bytes or self._too_dense(info.file_size, info.compress_size):
                raise self._refusal(name)

    def read(self, name: str) -> bytes:
        """An entry, counted while it is unpacked, whatever size its header claims."""
        info = self._entries[name]
        if info.flag_bits & 1:
            raise EncryptedEpub("The book is locked by a password. Save it without one and upload it again.")
        most = min(self._limits.archive_entry_bytes, self._left)
        if info.file_size > most or self._too_dense(info.file_size, info.compress_size):
            raise self._refusal(name)
        pieces: list[bytes] = []
        size = 0
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(_PIECE):
                    size += len(piece)
                    if size > most or self._too_dense(size, info.compress_size):
                        raise self._refusal(name)
                    pieces.append(piece)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, ValueError) as error:
            raise DamagedFile(f"The entry {name!r} of the archive is damaged ({error}). Ask for a new copy.") from None
        self._left -= size
        return b"".join(pieces)

    def _too_dense(self, size: int, packed: int) -> bool:
        return size > _SMALL and size > self._limits.archive_ratio * max(packed, 1)

    def _refusal(self, name: str) -> ArchiveRefused:
        return ArchiveRefused(
            f"The entry {name!r} unpacks to far more than a book needs. If the file is genuine, save it again "
            "without its large parts."
        )


def resolve(base: str, reference: str) -> str | None:
    """The name of the entry that a reference inside of the entry `base` means; None if it leads out of the archive."""
    if ":" in reference.split("/", 1)[0] or reference.startswith("/") or "\\" in reference or "\x00" in reference:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), reference))
    return None if path in (".", "..") or path.startswith(("../", "/")) else path


def _is_safe(info: zipfile.ZipInfo) -> bool:
    name = info.filename
    if info.is_dir() or stat.S_ISLNK(info.external_attr >> 16):
        return False
    return resolve("", name) == name
