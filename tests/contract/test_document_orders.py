"""A document that was taken in for a schema is read by it, whoever submits the job."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete

from docmill.db.tables import jobs
from docmill.model.documents import DocumentStatus
from docmill.services.submission import new_job
from tests.contract.mailroom import Mailroom, letter, mailroom

BILL = letter("Invoice 4711\nTotal 12.50")


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


def _finished(room: Mailroom, job_id: str) -> bool:
    return room.app.jobs.get(job_id).summary.status.finished


def test_a_job_that_is_submitted_by_hand_reads_by_the_schema_that_the_document_was_taken_in_for(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    job = new_job(room.template, f"document:{record.id}", metadata={"colour": "blue"})
    room.app.jobs.submit_one(job)
    room.work_until(lambda: _finished(room, job.id))
    assert room.app.documents.get(record.id).schema_name == "slip"
    told = room.app.jobs.get(job.id).metadata
    own = room.app.jobs.get(str(record.job_id)).metadata
    assert told == {**own, "colour": "blue"}
    # What the cache says to the same question is an answer to it.
    (copy,) = room.process(room.put("copy.pdf", BILL))
    assert (copy.status, copy.schema_name) == (DocumentStatus.DUPLICATE, "slip")


def test_so_does_a_batch_and_submitting_it_again_is_the_same_batch(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    new = [new_job(room.template, f"document:{record.id}", idempotency_key="one")]
    batch = room.app.batches.submit(new, batch_id="0199c3a0-0000-7000-8000-000000000001")
    assert room.app.batches.submit(new, batch_id=batch.id).id == batch.id
    room.work_until(lambda: room.app.batches.get(batch.id).finished_at is not None)
    assert room.app.documents.get(record.id).schema_name == "slip"


def test_a_job_that_names_a_schema_itself_is_left_as_it_is_and_so_are_other_entities(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    job = new_job(room.template, f"document:{record.id}", metadata={"schema": "invoice"})
    other = new_job(room.template, "document:42")
    room.app.jobs.submit([job, other])
    assert room.app.jobs.get(job.id).metadata == {"schema": "invoice"}
    assert room.app.jobs.get(other.id).metadata == {}


def test_when_its_own_job_was_pruned_the_document_says_what_it_was_taken_in_for(room: Mailroom) -> None:
    asked = room.order(schema="invoice", schema_file=None, model="local:echo", out=None)
    (document_id,) = room.submit(room.put("bill.pdf", BILL), order=asked)
    with room.app.database.write() as connection:
        connection.execute(delete(jobs))
    job = new_job(room.template, f"document:{document_id}")
    room.app.jobs.submit_one(job)
    assert room.app.jobs.get(job.id).metadata == {"schema": "invoice", "model": "local:echo"}
