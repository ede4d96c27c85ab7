"""What comes in: which files are meant, what they are called, and what happens to those that cannot be taken."""

import io
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest

from docmill.documents.blobs import FolderBlobs
from docmill.documents.intake import Source, shown_name, sources, take_in
from docmill.documents.limits import Limits
from docmill.documents.links import Links
from docmill.documents.records import DocumentRecord
from docmill.model.documents import DocumentStatus
from docmill.model.ids import DEFAULT_ORG, new_id

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs", lambda: Links(b"secret"))


def record() -> DocumentRecord:
    return DocumentRecord(
        id=new_id(), org_id=DEFAULT_ORG, file_name="a.png", job_id=new_id(), created_at=datetime.now(UTC)
    )


def shown(*paths: str) -> list[str]:
    return [source.shown for source in sources(paths)]


def test_folders_mean_all_their_files_in_order_and_nothing_hidden(tmp_path: Path) -> None:
    for name in ("b.pdf", "a.pdf", ".hidden.pdf", "in/ner.pdf", ".git/x.pdf", "a/z.pdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    names = ["a.pdf", "b.pdf", "a/z.pdf", "in/ner.pdf"]
    assert shown(str(tmp_path)) == [str(tmp_path / name) for name in names]


def test_what_docmill_itself_writes_below_a_folder_is_no_input(tmp_path: Path) -> None:
    for name in ("a.pdf", "out/json/a.json", "home/blobs/00/x", "outer/b.pdf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    found = sources([str(tmp_path)], besides=[tmp_path / "out", tmp_path / "link"])
    assert [source.shown for source in found] == [str(tmp_path / name) for name in ("a.pdf", "outer/b.pdf")]
    # Whoever names such a folder means it.
    named = sources([str(tmp_path / "out")], besides=[tmp_path / "out"])
    assert [source.shown for source in named] == [str(tmp_path / "out/json/a.json")]


def test_a_pipe_is_read_once_somebody_writes_and_given_up_if_nobody_does(
    tmp_path: Path, blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = Source(path=tmp_path / "pipe", shown="pipe")
    os.mkfifo(tmp_path / "pipe")
    assert pipe.keeps_waiting
    assert Source(path=None, shown="-").keeps_waiting
    assert not Source(path=tmp_path, shown=".").keeps_waiting
    with monkeypatch.context() as impatient:
        impatient.setattr("docmill.documents.intake._UNATTENDED", 0.0)
        nobody = take_in(pipe, record(), blobs, Limits())
    assert (nobody.status, nobody.error_code) == (DocumentStatus.FAILED, "file_unreadable")
    somebody = Thread(target=lambda: (tmp_path / "pipe").write_bytes(PNG))
    somebody.start()
    taken = take_in(pipe, record(), blobs, Limits())
    somebody.join()
    assert (taken.format, taken.size) == ("png", len(PNG))


def test_names_that_are_no_utf8_are_told_apart(tmp_path: Path) -> None:
    names = (b"a\xff", rb"a\xff", b"a\\\xff", rb"a\\xff", rb"a\b")
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    found = list(sources([str(tmp_path)]))
    assert len({source.place for source in found}) == len({source.shown for source in found}) == len(names)
    assert str(tmp_path / r"a\b") in {source.shown for source in found}


def test_what_is_named_itself_is_meant_though_it_be_hidden_or_missing(tmp_path: Path) -> None:
    hidden = tmp_path / ".hidden.pdf"
    hidden.write_bytes(b"x")
    assert shown(str(hidden), str(tmp_path / "none.pdf")) == [str(hidden), str(tmp_path / "none.pdf")]


def test_a_file_that_is_named_twice_is_meant_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    assert shown("a.pdf", ".", str(tmp_path / "a.pdf")) == ["a.pdf"]


def test_a_pipe_in_a_folder_does_not_hold_up_the_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert shown(str(tmp_path)) == []


def test_a_folder_that_cannot_be_listed_is_not_passed_over_in_silence(
    tmp_path: Path, blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.pdf").write_bytes(b"x")
    listing = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = list(sources([str(tmp_path)]))
    assert [source.shown for source in found] == [str(tmp_path / name) for name in ("a.pdf", "closed")]
    closed = take_in(found[1], record(), blobs, Limits())
    assert (closed.status, closed.error_code) == (DocumentStatus.FAILED, "file_unreadable")


def test_a_standard_input_that_is_closed_fails_by_name(blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    found = take_in(Source(path=None, shown="-"), record(), blobs, Limits())
    assert (found.status, found.error_code) == (DocumentStatus.FAILED, "file_unreadable")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\bill.pdf", "bill.pdf"),
        ("a\0b\r\nc.pdf", "ab c.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("..", "document"),
        ("", "document"),
        ("  spaces   inside .pdf", "spaces inside .pdf"),
        ("Grüße 请.pdf", "Grüße 请.pdf"),
    ],
)
def test_a_shown_name_is_one_clean_line(name: str, expected: str) -> None:
    assert shown_name(name) == expected


def test_a_long_name_is_cut_and_keeps_its_ending() -> None:
    name = shown_name("x" * 300 + ".pdf")
    assert len(name) == 200
    assert name.endswith("….pdf")


def test_bytes_that_are_no_text_in_a_name_are_written_out() -> None:
    assert shown_name(os.fsdecode(b"caf\xe9.pdf")).endswith("xe9.pdf")


def test_a_document_is_known_by_its_content(tmp_path: Path, blobs: FolderBlobs) -> None:
    (tmp_path / "lies.pdf").write_bytes(PNG)
    (source,) = sources([str(tmp_path / "lies.pdf")])
    taken = take_in(source, record(), blobs, Limits())
    assert (taken.status, taken.format, taken.size) == (DocumentStatus.QUEUED, "png", len(PNG))
    assert blobs.read(taken.original_key or "") == PNG


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "empty_file"), (b"just words", "unsupported_file"), (PNG * 5, "file_too_large")],
)
def test_what_cannot_be_taken_fails_by_name_and_is_not_kept(
    tmp_path: Path, blobs: FolderBlobs, content: bytes, code: str
) -> None:
    (tmp_path / "in.bin").write_bytes(content)
    (source,) = sources([str(tmp_path / "in.bin")])
    taken = take_in(source, record(), blobs, Limits(max_bytes=100))
    assert (taken.status, taken.error_code, taken.original_key, taken.job_id) == (
        DocumentStatus.FAILED,
        code,
        None,
        None,
    )
    assert taken.error_message
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]


def test_bytes_that_somebody_else_stored_stay_although_they_cannot_be_taken(tmp_path: Path, blobs: FolderBlobs) -> None:
    key = blobs.put(io.BytesIO(b"just words")).key
    (tmp_path / "in.txt").write_bytes(b"just words")
    (source,) = sources([str(tmp_path / "in.txt")])
    take_in(source, record(), blobs, Limits())
    assert blobs.has(key)


@pytest.mark.parametrize("name", ["none.pdf", "none/none.pdf", "a\0b.pdf"])
def test_a_file_that_is_not_there_fails_by_name(tmp_path: Path, blobs: FolderBlobs, name: str) -> None:
    source = Source(path=tmp_path / name, shown=name)
    taken = take_in(source, record(), blobs, Limits())
    assert (taken.status, taken.error_code) == (DocumentStatus.FAILED, "file_not_found")
