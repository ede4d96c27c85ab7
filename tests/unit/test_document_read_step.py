"""Reading page by page: what was read is not read again, and a file that harms its reader is named."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image

from docmill.documents import parsing
from docmill.documents.blobs import FolderBlobs, Workshop, write_in
from docmill.documents.faults import EncryptedPdf, ReaderDied, ReaderTimedOut
from docmill.documents.limits import Limits
from docmill.documents.links import Links
from docmill.documents.reading import Page, TextSource, page_as_json
from docmill.engine.children import ChildDied, Children, ChildSettings, ChildTimedOut
from docmill.plugin import StepContext
from docmill.steps import document_children as children
from docmill.steps.document_read import OriginalExpired, read_step
from docmill.steps.document_work import DocumentWork

SUMMARY = {"format": "png", "pages": 3}


class Attempt:
    """The few things of a context that the step uses; parts outlive the attempt."""

    def __init__(self, parts: dict[str, Any], child: Callable[..., Any]) -> None:
        self._parts = parts
        self._child = child

    async def once(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self._parts:
            self._parts[name] = await compute()
        return self._parts[name]

    async def cpu(self, function: Callable[..., Any], *arguments: Any, timeout: float) -> Any:
        return self._child(function, *arguments)


@pytest.fixture
def work(tmp_path: Path) -> DocumentWork:
    blobs = FolderBlobs(tmp_path, lambda: Links(b"secret"))
    return DocumentWork(blobs=lambda: blobs, clock=lambda: datetime.now(UTC))


def read(work: DocumentWork, parts: dict[str, Any], child: Callable[..., Any], original: str | None = None) -> Any:
    if original is None:
        blobs = work.blobs()
        original = blobs.adopt(*write_in(blobs.workshop, b"the original")).key
    results = {"check": {"read_before": None, "original": original, "file_name": "scan.png"}}
    step = read_step(work).function
    return asyncio.run(step(cast(StepContext, Attempt(parts, child)), results))


def made(work: DocumentWork, content: bytes) -> dict[str, Any]:
    file, key = write_in(work.blobs().workshop, content)
    return {"file": str(file), "key": key}


def test_two_who_read_the_same_page_at_once_do_not_take_it_from_each_other(work: DocumentWork) -> None:
    readers: list[str] = []

    def child(outline: str) -> Callable[..., Any]:
        def run(function: Callable[..., Any], *arguments: Any) -> Any:
            if function is children.begin:
                return {"to_read": [1], "outline": outline}
            if function is children.page:
                readers.append(arguments[-1])
                return made(work, b"page of " + arguments[-1].encode())
            if outline == "first":
                # The other one comes to its end, and deletes its pages, while this one puts its own together.
                read_other()
            return {**made(work, Path(arguments[1][0]).read_bytes()), "summary": SUMMARY}

        return run

    def read_other() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(read, work, {}, child("second")).result()

    assert read(work, {}, child("first"))["pages"] == 3
    assert readers == ["first", "second"]


def test_pages_that_were_read_before_the_worker_died_are_not_read_again(work: DocumentWork) -> None:
    # One at a time, so that it is known which pages were stored when it happened.
    work = replace(work, abreast=1)
    asked: list[int] = []
    dies = True

    def child(function: Callable[..., Any], *arguments: Any) -> Any:
        if function is children.begin:
            return {"to_read": [1, 2, 3], "outline": "outline"}
        if function is children.page:
            number = arguments[1]
            if number == 3 and dies:
                raise KeyboardInterrupt  # As good as a kill: nothing after it runs.
            asked.append(number)
            return made(work, b"page %d" % number)
        assert function is children.finish
        pages = [Path(page).read_bytes() for page in arguments[1]]
        return {**made(work, b", ".join(pages)), "summary": SUMMARY}

    parts: dict[str, Any] = {}
    with pytest.raises(KeyboardInterrupt):
        read(work, parts, child)
    assert sorted(asked) == [1, 2]
    dies = False
    result = read(work, parts, child)
    assert sorted(asked) == [1, 2, 3]
    assert work.blobs().read(result["reading"]) == b"page 1, page 2, page 3"
    assert result["pages"] == 3
    # They are in the reading now.
    assert not any(work.blobs().has(key) for key in parts.values())


def test_a_page_whose_bytes_are_gone_is_read_again(work: DocumentWork) -> None:
    def child(function: Callable[..., Any], *arguments: Any) -> Any:
        if function is children.begin:
            return {"to_read": [1], "outline": "outline"}
        if function is children.page:
            return made(work, b"page")
        return {**made(work, Path(arguments[1][0]).read_bytes() + b"!"), "summary": SUMMARY}

    assert work.blobs().read(read(work, {"page-1": "0" * 64}, child)["reading"]) == b"page!"


@pytest.mark.parametrize(
    ("raised", "expected", "times"),
    [
        (ChildDied("killed"), ReaderDied, 2),
        (ChildTimedOut("too long"), ReaderTimedOut, 1),
        (EncryptedPdf("locked"), EncryptedPdf, 1),
    ],
)
def test_a_file_that_harms_its_reader_is_named(
    work: DocumentWork, raised: Exception, expected: type[Exception], times: int
) -> None:
    calls = 0

    def child(function: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        raise raised

    with pytest.raises(expected):
        read(work, {}, child)
    assert calls == times


def test_an_original_that_expired_is_said_to_have(work: DocumentWork) -> None:
    with pytest.raises(OriginalExpired, match=r"scan\.png"):
        read(work, {}, lambda *arguments: None, original="0" * 64)


def test_what_an_attempt_leaves_in_the_workshop_is_data_and_never_code(work: DocumentWork, tmp_path: Path) -> None:
    scan = tmp_path / "scan.png"
    Image.new("L", (300, 200), 255).save(scan)
    workshop = work.workshop
    begun = children.begin(str(scan), Limits(), workshop)
    kept = children.unpack(Path(begun["outline"]).read_bytes())
    assert (kept["format"], kept["needs_ocr"]) == ("png", begun["to_read"] == [1] and [1])
    page = children.pack({"page": page_as_json(Page(number=1, width=300, height=200, source=TextSource.NONE))})
    file, _ = write_in(Path(workshop.folder), page)
    whole = children.finish(begun["outline"], [str(file)], workshop)
    assert whole["summary"]["pages"] == 1


def busy(path: str, limits: Limits) -> None:
    """What a file does to its reader that is made to keep it busy."""
    while True:
        pass


def test_a_file_that_keeps_its_reader_busy_is_ended_by_its_cpu_time(tmp_path: Path) -> None:
    file = tmp_path / "busy.pdf"
    file.write_bytes(b"%PDF-1.7")
    made = Children(ChildSettings(count=1))
    try:
        with pytest.raises(ChildTimedOut, match="CPU time"):
            asyncio.run(made.run(kept_busy, (str(file),), 600.0))
    finally:
        made.close()


def kept_busy(path: str) -> None:
    """Runs in the child: `begin` with a parser that never ends."""
    parsing.outline = busy  # type: ignore[assignment]
    children.begin(path, Limits(cpu_seconds=1), Workshop(""))


def test_a_large_file_has_more_cpu_time_but_not_without_end(tmp_path: Path) -> None:
    file = tmp_path / "book.pdf"
    seconds = []
    for megabytes in (0, 4, 50):
        with file.open("wb") as book:
            book.truncate(megabytes << 20)
        seconds.append(children._cpu_seconds(str(file), Limits()))
    assert seconds == [25, 45, 75]
