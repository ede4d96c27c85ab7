"""A job reaches its own organisation's documents and blobs, whatever it names: the same on both databases."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from docmill.db.tables import documents, jobs
from docmill.documents.records import DocumentRecord
from docmill.model.errors import NotFound
from docmill.model.statuses import JobStatus
from docmill.services.submission import new_job
from docmill.templates.compile import compile_template
from docmill.testing.world import OTHER_ORG as THEIRS
from tests.contract.mailroom import Mailroom, letter, mailroom

PEEK = """
name: peek
processable_type: document
steps:
  - {step_key: peek, type: rule.check, input: {seen: exists(entity.file_name)}}
  - {step_key: finish, type: FinishProcessing}
"""
NOTE = {"model": None, "run": 0, "calls": 0}


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


@pytest.fixture
def both(room: Mailroom) -> tuple[DocumentRecord, DocumentRecord]:
    """A document of ours and one of theirs."""
    bills = (letter("Invoice 4711\nTotal 12.50"), letter("Invoice 666\nTotal 66.60"))
    ours, theirs = room.process(*(room.put(f"{place}.pdf", bill) for place, bill in enumerate(bills)))
    with room.app.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == theirs.id).values(org_id=THEIRS))
    return ours, theirs


def _seen(room: Mailroom, document_id: str) -> bool:
    """Whether a job of ours that names this document is shown anything of it."""
    template = room.app.templates.register(compile_template(PEEK, catalogue=room.app.catalogue, source="peek"))
    job = new_job(template, f"document:{document_id}")
    room.app.jobs.submit_one(job)
    room.work_until(lambda: room.app.jobs.get(job.id).summary.status.finished)
    view = room.app.jobs.get(job.id)
    assert view.summary.status is JobStatus.COMPLETED
    result: Any = view.steps[0].result
    return bool(result["passed"])


def test_a_job_that_names_a_foreign_document_finds_none(
    room: Mailroom, both: tuple[DocumentRecord, DocumentRecord]
) -> None:
    ours, theirs = both
    assert _seen(room, ours.id)
    assert not _seen(room, theirs.id)


def _note(room: Mailroom, job_id: str | None, note: object) -> str:
    """Metadata as nobody but Docmill should have written them."""
    assert job_id is not None
    with room.app.database.write() as connection:
        connection.execute(update(jobs).where(jobs.c.id == job_id).values(metadata={"reruns": note}))
    return job_id


def test_a_comparison_reads_no_blob_but_those_of_its_own_document(
    room: Mailroom, both: tuple[DocumentRecord, DocumentRecord]
) -> None:
    ours, theirs = both
    reruns = room.app.for_org(room.app.org_id).reruns
    own = {"ask": {**NOTE, "result": {"extraction": ours.extraction_key}}}
    compared = reruns.compare(_note(room, ours.job_id, own), "ask")
    assert {each.path: each.before for each in compared.differences}["number"] == "4711"
    for key in (theirs.extraction_key, theirs.sha256, "../../etc/passwd", 7, None, {"a": 1}):
        forged = {step: {**NOTE, "result": {"extraction": key}} for step in ("ask", "finish")}
        _note(room, ours.job_id, forged)
        assert reruns.compare(str(ours.job_id), "ask").differences == ()
        told = reruns.compare(str(ours.job_id), "finish").differences
        assert "666" not in {each.before for each in told}


def test_a_note_that_docmill_did_not_write_is_none(room: Mailroom) -> None:
    (bill,) = room.process(room.put("bill.pdf", letter("Invoice 4711\nTotal 12.50")))
    reruns = room.app.for_org(room.app.org_id).reruns
    whole = {**NOTE, "result": 1}
    notes: list[object] = ["x", 1, None, [], {"ask": "x"}, {"ask": {}}, {"ask": {"result": {}}}]
    notes += [{"ask": whole | {name: []}} for name in NOTE]
    notes += [{"ask": whole | {"run": "first"}}, {"ask": whole | {"calls": "many"}}, {"ask": whole | {"calls": -1}}]
    for note in notes:
        with pytest.raises(NotFound):
            reruns.compare(_note(room, bill.job_id, note), "ask")
    assert reruns.compare(_note(room, bill.job_id, {"ask": whole}), "ask").before.result == 1
