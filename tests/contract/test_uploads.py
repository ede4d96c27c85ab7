"""Documents that come in one by one: what cannot be taken on leaves nothing behind."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import delete, insert, select

from docmill.db.clock import database_now
from docmill.db.tables import documents, job_events, job_steps, jobs, leaving_blobs
from docmill.documents.blobs import StorageUnavailable
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.services.uploads import Uploaded
from docmill.testing.papers import invoice_pdf
from docmill.testing.waiting import until
from tests.contract.served import Served, somebody

PDF = invoice_pdf(1).content
KEY = hashlib.sha256(PDF).hexdigest()


def send(served: Served, document_id: str | None = None) -> Uploaded:
    org = served.app.for_org(DEFAULT_ORG)
    with closing(org.uploads.open()) as incoming:
        incoming.write(PDF)
        order = org.order(None, None)
        return org.uploads.accept(incoming, name="a.pdf", order=order, by=somebody("ann"), document_id=document_id)


def bytes_that_are_being_deleted(served: Served) -> None:
    """Those of a document whose original has expired: there still, and claimed by whoever deletes them."""
    first = send(served).document
    with served.app.database.write() as connection:
        connection.execute(delete(documents).where(documents.c.id == first.id))
        connection.execute(insert(leaving_blobs).values(key=KEY, claimed_at=database_now(connection)))


def test_an_upload_whose_bytes_go_in_that_moment_leaves_neither_document_nor_job(served: Served) -> None:
    bytes_that_are_being_deleted(served)
    document_id = new_id()
    mine = select(jobs.c.id).where(jobs.c.entity_id == document_id)

    def found() -> list[str]:
        with served.app.database.read() as connection:
            return list(connection.execute(mine).scalars())

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(send, served, document_id)
        # It has stored its row and its job, and waits to see whether the bytes stay.
        until(lambda: bool(found()), 60, what="the job of the upload")
        (job_id,) = found()
        served.app.blobs.delete(KEY)
        with served.app.database.write() as connection:
            connection.execute(delete(leaving_blobs))
        with pytest.raises(StorageUnavailable):
            late.result(60)
    assert found() == []
    with served.app.database.read() as connection:
        assert connection.execute(select(documents.c.id).where(documents.c.id == document_id)).first() is None
        for table in (job_steps, job_events):
            assert connection.execute(select(table).where(table.c.job_id == job_id)).first() is None
    told = [entry.action for entry in served.app.audit.list(somebody("ann"), subject=("document", document_id))]
    assert told == ["document.withdraw", "document.upload"]
    # Sent once more, it is processed like any other.
    again = send(served, document_id)
    assert (again.new, again.document.id) == (True, document_id)
    assert served.app.jobs.get(str(again.document.job_id)).summary.status == "PENDING"
