"""Documents that failed can leave, and nothing else can: the same on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from docmill.db.tables import audit_log, documents, processed_documents
from docmill.documents.blobs import BlobMissing
from docmill.model.documents import DocumentStatus
from docmill.model.errors import NotFound
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.people import system_principal
from docmill.services.discarding import NotDiscardable
from tests.contract.mailroom import Mailroom, letter, mailroom
from tests.contract.served import OTHER_ORG, Served
from tests.contract.test_api_manners import API, problem

BROKEN = b"%PDF-1.4 nothing"
ME = system_principal(DEFAULT_ORG, "me")


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


def test_what_failed_leaves_with_its_bytes_and_its_claim(room: Mailroom) -> None:
    (record,) = room.process(room.put("broken.pdf", BROKEN))
    assert (record.status, record.original_key is None) == (DocumentStatus.FAILED, False)
    assert room.app.documents.by(ME).discard([record.id]) == 1
    with pytest.raises(NotFound):
        room.app.documents.get(record.id)
    with pytest.raises(BlobMissing):
        room.app.blobs.read(str(record.original_key))
    with room.app.database.read() as connection:
        assert connection.execute(select(processed_documents.c.sha256)).all() == []
        entry = connection.execute(select(audit_log).where(audit_log.c.action == "document.discard")).one()
    assert (entry.subject_id, entry.actor_name) == (record.id, "me")
    assert entry.before["file_name"] == "broken.pdf"
    # The same bytes that come again are tried again.
    (again,) = room.process(room.put("again.pdf", BROKEN))
    assert again.status is DocumentStatus.FAILED


def test_bytes_that_another_document_has_stay(room: Mailroom) -> None:
    first, second = (*room.process(room.put("a.pdf", BROKEN)), *room.process(room.put("b.pdf", BROKEN)))
    room.app.documents.discard([first.id])
    assert room.app.blobs.read(str(second.original_key)) == BROKEN
    room.app.documents.discard([second.id])
    with pytest.raises(BlobMissing):
        room.app.blobs.read(str(second.original_key))


def test_what_has_or_had_a_result_stays_and_then_nothing_leaves(room: Mailroom) -> None:
    (good,) = room.process(room.put("good.pdf", letter("Invoice 7\nTotal 1.00")))
    (broken,) = room.process(room.put("broken.pdf", BROKEN))
    with pytest.raises(NotDiscardable, match="it is completed"):
        room.app.documents.discard([broken.id, good.id])
    with room.app.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == good.id).values(status="failed", job_id=None))
    with pytest.raises(NotDiscardable, match="it was read before"):
        room.app.documents.discard([broken.id, good.id])
    with pytest.raises(NotFound):
        room.app.documents.discard([broken.id, new_id()])
    assert room.app.documents.get(broken.id).status is DocumentStatus.FAILED


def test_nobody_removes_what_is_another_organisations(room: Mailroom) -> None:
    (broken,) = room.process(room.put("broken.pdf", BROKEN))
    with pytest.raises(NotFound):
        room.app.for_org(OTHER_ORG).documents.discard([broken.id])
    assert room.app.documents.get(broken.id).id == broken.id


def test_over_the_api_a_failed_document_is_removed_by_whoever_may_bring_some(served: Served) -> None:
    with served.client() as client:
        waiting = client.upload(letter("Invoice 7"), name="a.pdf")["id"]
    where = f"{API}/documents/{waiting}"
    problem(served.send("DELETE", where), 409, "not_discardable")
    problem(served.send("DELETE", where, token="viewer"), 403, "forbidden")
    problem(served.send("DELETE", where, token="stranger"), 404, "not_found")
    served.app.jobs.cancel(str(served.app.documents.get(waiting).job_id))
    assert served.send("DELETE", where).status_code == 204
    problem(served.send("GET", where), 404, "not_found")
    problem(served.send("DELETE", where), 404, "not_found")
