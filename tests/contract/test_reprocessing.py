"""A document that is read once more by another schema or model: what was read before, and said of it, stays."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from docmill.db.database import Database
from docmill.db.tables import documents, jobs
from docmill.documents.records import DocumentRecord
from docmill.model.documents import DocumentStatus
from docmill.model.errors import Conflict, NotFound
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.people import system_principal
from docmill.services import reprocessing
from docmill.services.jobs import Retry
from docmill.services.processing import Order
from docmill.services.quota import QuotaExceeded
from docmill.services.reprocessing import Asked, Reprocessing, another, is_answered_by
from docmill.settings import StorageSection
from tests.contract.audited import log
from tests.contract.mailroom import SCHEMA, Mailroom, letter, mailroom

BILL = letter("Invoice 4711\nTotal 12.50")
ME = system_principal(DEFAULT_ORG, "me")


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


def again(room: Mailroom) -> Reprocessing:
    return room.app.for_org(DEFAULT_ORG).reprocessing.by(ME)


def other_schema(room: Mailroom) -> Order:
    """A schema of another name, with a field that both have."""
    path = room.folder / "note.yaml"
    path.write_text(SCHEMA.replace("name: slip", "name: note").replace("  number:", "  mark:"))
    return room.order(schema="note", schema_version="1", schema_file=_stored(room, path))


def _stored(room: Mailroom, path: Path) -> str:
    with path.open("rb") as stream:
        return room.app.blobs.put(stream).key


def done(room: Mailroom, asked: Asked) -> DocumentRecord:
    room.work_until(lambda: room.app.jobs.get(asked.job_id).summary.status.finished)
    return room.app.documents.get(asked.document_id)


def ask(room: Mailroom, record: DocumentRecord, named: Order | None = None, model: str | None = None) -> DocumentRecord:
    order = another(again(room).order_of(record), named=named, model=model)
    return done(room, again(room).ask(record, order))


def test_by_another_schema_it_is_another_document_and_what_was_read_before_stays(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    (copy,) = room.process(room.put("copy.pdf", BILL))
    found = ask(room, first, other_schema(room))
    assert (found.status, found.schema_name, found.sha256) == (DocumentStatus.COMPLETED, "note", first.sha256)
    assert (found.file_name, found.source, found.run_id) == (first.file_name, first.source, None)
    # The folder that its outputs go to was not said, so it is as it was.
    assert all(Path(path).is_relative_to(room.folder / "out") for path in found.outputs)
    assert room.app.documents.get(first.id) == first
    assert room.app.documents.get(copy.id) == copy
    assert room.steps_done("read") == 2, "the pages are known"
    # The first question is answered as it was before.
    (late,) = room.process(room.put("late.pdf", BILL))
    assert (late.status, late.duplicate_of, late.schema_name) == (DocumentStatus.DUPLICATE, first.id, "slip")


def test_what_people_decided_goes_along_under_the_same_schema_alone(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    item = room.app.review.claim(ME, first.id)
    room.app.review.correct(ME, item.id, "total", "99.00")
    newer = room.order(schema_version="newer")
    assert ask(room, first, newer).locked == {"total": "99.00"}
    assert ask(room, first, other_schema(room)).locked == {}
    assert room.app.documents.get(first.id).locked == {"total": "99.00"}


def test_a_question_that_was_answered_before_is_answered_by_a_duplicate(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    second = ask(room, first, other_schema(room))
    third = ask(room, first, other_schema(room))
    assert (third.status, third.duplicate_of) == (DocumentStatus.DUPLICATE, second.id)


def test_what_is_not_said_is_as_it_was_and_the_same_question_is_known(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    kept = again(room).order_of(first)
    assert kept == room.order()
    assert is_answered_by(first, another(kept, named=None, model=None))
    asked = another(kept, named=None, model="local:two")
    assert asked == replace(kept, model="local:two")
    assert not is_answered_by(first, asked)
    named = another(asked, named=room.order(schema="note", out=None), model=None)
    assert (named.schema, named.model, named.out) == ("note", "local:two", kept.out)


def test_document_and_job_are_one_commit_and_one_entry_however_often_it_is_asked(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    asked, order = new_id(), other_schema(room)
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: again(room).ask(first, order, document_id=asked), range(4)))
    assert {each.document_id for each in told} == {asked}
    with room.app.database.read() as connection:
        assert len(connection.execute(select(documents.c.id).where(documents.c.id == asked)).all()) == 1
        assert len(connection.execute(select(jobs.c.id).where(jobs.c.entity_id == asked)).all()) == 1
    (entry,) = [each for each in log(room.app) if each.action == "document.reprocess"]
    assert (entry.actor_id, entry.subject_id) == ("me", first.id)
    assert entry.before == {"schema": "slip", "model": "local"}
    made = {"document_id": asked, "job_id": told[0].job_id}
    assert entry.after == {"schema": "note", "model": "local", **made}


def test_without_bytes_a_model_is_refused_and_what_was_read_of_the_pages_is_enough_for_a_schema(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    with room.app.database.write() as connection:
        connection.execute(update(documents).values(original_key=None))
    first = room.app.documents.get(first.id)
    with pytest.raises(NotFound, match="is not kept any more"):
        ask(room, first, model="local:two")
    assert ask(room, first, other_schema(room)).schema_name == "note"
    with room.app.database.read() as connection:
        assert len(connection.execute(select(documents.c.id)).all()) == 2


def test_what_the_organisation_has_no_room_for_is_refused_as_an_upload_is(database_url: str, tmp_path: Path) -> None:
    storage = StorageSection(originals_expire_after=None, quota_bytes=2 * len(BILL))
    with mailroom(database_url, tmp_path, storage=storage) as room:
        (first,) = room.process(room.put("bill.pdf", BILL))
        ask(room, first, other_schema(room))
        with pytest.raises(QuotaExceeded) as refused:
            ask(room, first, room.order(schema_version="newer"))
        assert refused.value.details == {"wanted": 3 * len(BILL), "quota": 2 * len(BILL)}
        with room.app.database.read() as connection:
            assert len(connection.execute(select(documents.c.id)).all()) == 2
            assert len(connection.execute(select(jobs.c.id)).all()) == 2


def test_bytes_that_go_in_that_moment_leave_neither_document_nor_job(
    room: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    asked, order = new_id(), another(again(room).order_of(first), named=None, model="local:two")

    def gone(database: Database, keys: Sequence[str], pause: object) -> None:
        room.app.blobs.delete(*keys)

    monkeypatch.setattr(reprocessing, "stay", gone)
    with pytest.raises(NotFound, match="is not kept any more"):
        again(room).ask(first, order, document_id=asked)
    with room.app.database.read() as connection:
        assert list(connection.execute(select(documents.c.id)).scalars()) == [first.id]
        assert connection.execute(select(jobs.c.id).where(jobs.c.entity_id == asked)).first() is None
    assert [each.action for each in log(room.app) if each.subject_id == asked] == ["document.withdraw"]


def test_what_it_was_taken_in_for_a_document_answers_by_itself_and_anything_else_as_another(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    jobs_, wish, asked = room.app.jobs.by(ME), Retry(everything=True), new_id()
    kept, other = again(room).order_of(first), other_schema(room)
    for order, document_id in ((kept, first.id), (other, asked)):
        again(room).check(first, order)
        started = again(room).start(first, order, jobs_, wish, document_id=asked)
        assert (started.document_id, done(room, started).status) == (document_id, DocumentStatus.COMPLETED)
    assert room.app.jobs.get(str(first.job_id)).summary.run == 2


def test_what_is_not_done_or_was_not_kept_is_refused_before_anything_begins(room: Mailroom) -> None:
    (document_id,) = room.submit(room.put("bill.pdf", BILL))
    record = room.app.documents.get(document_id)
    kept = again(room).order_of(record)
    with pytest.raises(Conflict, match="is not done yet"):
        again(room).check(record, kept)
    nothing = replace(record, job_id=None)
    with pytest.raises(NotFound, match="no bytes were kept"):
        again(room).check(nothing, kept)
    with pytest.raises(NotFound, match="no bytes were kept"):
        again(room).start(nothing, kept, room.app.jobs.by(ME), Retry(everything=True))
