"""Blobs in a folder: by content, complete or not at all, and out of reach of names from outside."""

import errno
import hashlib
import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from docmill.documents.blobs import BlobMissing, FolderBlobs, StorageUnavailable, Workshop, leave, write_in
from docmill.documents.faults import FileTooLarge
from docmill.documents.links import LinkRefused, Links
from docmill.model.errors import InvalidInput

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LINKS = Links(b"a secret of this installation")


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs", lambda: LINKS)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_bytes_come_back_by_the_hash_of_their_content(blobs: FolderBlobs) -> None:
    blob = blobs.put(io.BytesIO(b"an invoice"))
    assert blob.key == hashlib.sha256(b"an invoice").hexdigest()
    assert (blob.size, blob.new) == (10, True)
    assert blobs.read(blob.key) == blobs.path_of(blob.key).read_bytes() == b"an invoice"


def test_the_same_bytes_are_stored_once(blobs: FolderBlobs, tmp_path: Path) -> None:
    first, second = blobs.put(io.BytesIO(b"twice")), blobs.put(io.BytesIO(b"twice"))
    assert (first.key, first.new, second.new) == (second.key, True, False)
    assert len(files(tmp_path)) == 1


def test_what_is_too_large_leaves_nothing_behind(blobs: FolderBlobs, tmp_path: Path) -> None:
    with pytest.raises(FileTooLarge, match=r"documents\.max_bytes"):
        blobs.put(io.BytesIO(b"x" * 100), limit=99)
    assert files(tmp_path) == []
    assert blobs.put(io.BytesIO(b"x" * 99), limit=99).size == 99


def test_a_stream_that_is_cut_off_leaves_nothing_behind(blobs: FolderBlobs, tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise ConnectionResetError
            return super().read(3)

    with pytest.raises(ConnectionResetError):
        blobs.put(Broken(b"abcdef"))
    assert files(tmp_path) == []


def test_a_finished_file_becomes_a_blob_and_is_gone(blobs: FolderBlobs) -> None:
    file, key = write_in(blobs.workshop, b"made by a child")
    assert blobs.adopt(file, key).key == key
    assert not file.exists()
    assert blobs.read(key) == b"made by a child"


def test_what_a_child_leaves_is_a_blob_at_once_where_there_is_a_shelf(blobs: FolderBlobs, tmp_path: Path) -> None:
    workshop = Workshop(str(blobs.workshop), str(blobs.shelf))
    left = leave(b"made by a child", workshop)
    key = hashlib.sha256(b"made by a child").hexdigest()
    assert left == {"file": None, "key": key}
    assert blobs.read(key) == b"made by a child"
    assert leave(b"made by a child", workshop) == left
    assert files(tmp_path) == [blobs.path_of(key)]


def test_what_a_child_leaves_without_a_shelf_waits_to_be_adopted(blobs: FolderBlobs) -> None:
    left = leave(b"made by a child", Workshop(str(blobs.workshop)))
    assert left["file"] is not None
    assert not blobs.has(str(left["key"]))
    blobs.adopt(Path(left["file"]), str(left["key"]))
    assert blobs.has(str(left["key"]))


@pytest.mark.parametrize("by_a_child", [False, True], ids=["put", "left by a child"])
def test_a_blob_lasts_under_its_name_once_it_is_stored(
    blobs: FolderBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_a_child: bool
) -> None:
    synced: list[tuple[str, list[str]]] = []
    workshop = Workshop(str(blobs.workshop), str(blobs.shelf))
    really = os.fsync

    def fsync(handle: int) -> None:
        place = Path(f"/proc/self/fd/{handle}").resolve()
        if place.is_dir():
            synced.append((place.name, sorted(each.name for each in place.iterdir())))
        really(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    stored = leave(b"an invoice", workshop)["key"] if by_a_child else blobs.put(io.BytesIO(b"an invoice")).key
    key = str(stored)
    # The new folder in its parent first, then the name of the blob in the folder.
    assert ("blobs", [key[:2], "tmp"]) in synced
    assert synced[-1] == (key[:2], [key])
    synced.clear()
    # Whoever stored it first may not have come to it yet.
    file, _ = write_in(blobs.workshop, b"an invoice")
    assert not blobs.adopt(file, key).new
    assert synced == [(key[:2], [key])]


def test_what_was_left_in_the_workshop_goes_after_a_day(blobs: FolderBlobs) -> None:
    (blobs.workshop / "old").write_bytes(b"")
    (blobs.workshop / "new").write_bytes(b"")
    os.utime(blobs.workshop / "old", ((NOW - timedelta(days=2)).timestamp(),) * 2)
    os.utime(blobs.workshop / "new", (NOW.timestamp(),) * 2)
    blobs.tidy(NOW)
    assert [path.name for path in blobs.workshop.iterdir()] == ["new"]


def test_a_deleted_blob_is_missing_by_name(blobs: FolderBlobs) -> None:
    key = blobs.put(io.BytesIO(b"gone")).key
    blobs.delete(key)
    blobs.delete(key)
    assert not blobs.has(key)
    for look in (blobs.read, blobs.path_of):
        with pytest.raises(BlobMissing, match="expired"):
            look(key)


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "A" * 64, "0" * 63, "0" * 64 + "\n", "/" + "0" * 63])
def test_a_key_is_never_a_path(blobs: FolderBlobs, key: str) -> None:
    for look in (blobs.read, blobs.path_of, blobs.has, blobs.delete):
        with pytest.raises(InvalidInput):
            look(key)


def link(blobs: FolderBlobs) -> tuple[str, str]:
    key = blobs.put(io.BytesIO(b"for a while")).key
    return key, blobs.sign(key, within=timedelta(minutes=5), now=NOW)


def test_a_link_opens_its_blob_until_it_expires(blobs: FolderBlobs) -> None:
    key, url = link(blobs)
    assert LINKS.check(url, method="GET", now=NOW + timedelta(minutes=4)) == key
    with pytest.raises(LinkRefused, match="expired"):
        LINKS.check(url, method="GET", now=NOW + timedelta(minutes=5))


def test_a_link_is_good_for_one_method(blobs: FolderBlobs) -> None:
    with pytest.raises(LinkRefused, match="GET only"):
        LINKS.check(link(blobs)[1], method="PUT", now=NOW)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("expires=17", "expires=18"),
        ("method=GET", "method=PUT"),
        ("/blobs/", "/blobs/0"),
        ("signature=", "signature=A"),
        ("expires=", "expires=-"),
        ("signature=", "sig="),
        ("method=GET", "method=GET&method=PUT"),
        ("/blobs/", "/other/"),
    ],
)
def test_an_altered_link_is_refused(blobs: FolderBlobs, old: str, new: str) -> None:
    url = link(blobs)[1]
    assert old in url
    with pytest.raises(LinkRefused):
        LINKS.check(url.replace(old, new, 1), method="GET", now=NOW)


def test_a_link_of_another_installation_is_refused(blobs: FolderBlobs) -> None:
    with pytest.raises(LinkRefused, match="not made by this installation"):
        Links(b"another secret").check(link(blobs)[1], method="GET", now=NOW)


def test_a_folder_that_nobody_may_look_into_is_named(blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(path: Path, **more: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # Not by its rights: root, which tests may run as, may look into all.
    monkeypatch.setattr(Path, "stat", locked)
    monkeypatch.setattr(Path, "exists", locked)
    with pytest.raises(StorageUnavailable, match=r"cannot be stored in .*: Permission denied\. Check"):
        blobs.probe()
