"""Of several readings of the same bytes the newest waits for people, and nothing that a person said is lost."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from docmill.db.tables import documents, extracted_fields, job_steps, jobs, review_items
from docmill.documents.records import DocumentRecord
from docmill.engine.context import AppliedDatabase
from docmill.model.documents import DocumentStatus
from docmill.model.errors import Deferred
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import system_principal
from docmill.model.review import ReviewStatus, Superseded
from docmill.services.processing import Order
from docmill.services.review_statuses import review_statuses
from docmill.settings import ReviewSection
from docmill.steps import document_rows
from tests.contract.mailroom import SCHEMA, Mailroom, letter, mailroom
from tests.contract.test_review_of_documents import again

BILL = letter("Invoice 4711\nTotal 12.50")
ME, BOB = system_principal(DEFAULT_ORG, "me"), system_principal(DEFAULT_ORG, "bob")


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


def other_version(room: Mailroom, title: str = "Another slip", **wishes: object) -> Order:
    """The schema asks something else: what was read before does not answer for the same bytes."""
    (room.folder / "slip.yaml").write_text(SCHEMA.replace("title: Slip", f"title: {title}"))
    return room.order(**wishes)


def waiting(room: Mailroom) -> list[str]:
    """The documents in the queue."""
    return [item.document_id for item in room.app.review.list(ME)]


def value(room: Mailroom, item: str, path: str = "total") -> str | None:
    return next(each.value for each in room.app.review.get(ME, item).fields if each.path == path)


def test_the_item_of_an_earlier_reading_waits_no_more_and_tells_which_one_does(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    assert second.status is DocumentStatus.COMPLETED, "read anew, no duplicate"
    assert waiting(room) == [second.id]
    old, new = room.app.review.get(ME, first.id), room.app.review.get(ME, second.id)
    assert (old.item.superseded_by, old.item.status) == (new.item.id, ReviewStatus.PENDING)
    assert (new.item.superseded_by, new.supersedes) == (None, [old.item.id])
    assert room.app.review.list(ME, status=ReviewStatus.PENDING)[0].id == new.item.id
    with pytest.raises(Superseded, match=new.item.id):
        room.app.review.claim(ME, old.item.id)
    claimed = room.app.review.claim_next(ME)
    assert claimed is not None
    assert claimed.id == new.item.id
    assert room.app.review.claim_next(BOB) is None


def test_what_was_superseded_has_no_status_in_results(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    stand = {row["document_id"]: row["review"] for row in review_statuses(room.app.database, DEFAULT_ORG)}
    assert stand == {first.id: None, second.id: "pending"}


def test_a_person_goes_on_where_they_were_with_all_that_they_said(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    old = room.app.review.claim(ME, first.id)
    room.app.review.correct(ME, old.id, "total", "99.00")
    room.app.review.comment(ME, old.id, "as on the phone", path="total")
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    view = room.app.review.get(ME, second.id)
    assert (view.item.status, view.item.claimed_by) == (ReviewStatus.IN_REVIEW, "me")
    assert value(room, view.item.id) == "99.00"
    assert view.comments == 1
    assert [each.body for each in room.app.review.comments(ME, view.item.id)] == ["as on the phone"]
    assert [each.action for each in room.app.review.history(ME, view.item.id)] == ["correct"]
    with pytest.raises(Superseded):
        room.app.review.correct(ME, old.id, "total", "1.00")
    assert room.app.review.approve(ME, view.item.id).item.status is ReviewStatus.CORRECTED


def test_assignment_and_postponement_go_along(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    room.app.review.assign(ME, first.id, "bob")
    later = room.app.review.get(ME, first.id).item.created_at + timedelta(days=2)
    room.app.review.postpone(ME, first.id, later)
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    item = room.app.review.get(ME, second.id).item
    assert (item.assigned_to, item.postponed_until) == ("bob", later)
    assert room.app.review.claim_next(BOB) is None


def test_a_third_reading_stands_for_both_before(room: Mailroom) -> None:
    records = [
        *room.process(room.put("a.pdf", BILL)),
        *room.process(room.put("b.pdf", BILL), order=other_version(room)),
        *room.process(room.put("c.pdf", BILL), order=other_version(room, "A third")),
    ]
    assert waiting(room) == [records[2].id]
    views = [room.app.review.get(ME, record.id) for record in records]
    assert views[2].supersedes == [views[1].item.id, views[0].item.id]


def test_decisions_and_other_schemas_are_left_as_they_are(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    room.app.review.claim(ME, first.id)
    room.app.review.approve(ME, first.id)
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    assert room.app.review.get(ME, first.id).item.superseded_by is None
    (room.folder / "slip.yaml").write_text(SCHEMA.replace("name: slip", "name: chit"))
    (third,) = room.process(room.put("chit.pdf", BILL), order=room.order())
    # Read by two schemas, both results count, and both are looked at.
    assert sorted(waiting(room)) == sorted([second.id, third.id])


def test_a_copy_takes_no_place(database_url: str, tmp_path: Path) -> None:
    with mailroom(database_url, tmp_path, review=ReviewSection(duplicates="create")) as room:
        (first,) = room.process(room.put("bill.pdf", BILL))
        (copy,) = room.process(room.put("copy.pdf", BILL))
        assert copy.status is DocumentStatus.DUPLICATE
        assert sorted(waiting(room)) == sorted([first.id, copy.id]), "one for each was asked for"
        (third,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
        assert waiting(room) == [third.id]


def test_an_earlier_document_that_is_processed_once_more_does_not_come_back(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    again(room, first)
    assert waiting(room) == [second.id]


def late(room: Mailroom, record: DocumentRecord) -> tuple[Any, Any]:
    """The end of a document once more: what its processor is given."""
    with room.app.database.write() as connection:
        query = select(job_steps.c.result).join(jobs, jobs.c.id == job_steps.c.job_id)
        result = connection.execute(
            query.where(job_steps.c.step_key == "save", jobs.c.id == record.job_id)
        ).scalar_one()
        connection.execute(update(documents).where(documents.c.id == record.id).values(status="processing"))
    about: dict[str, Any] = {"entity_id": record.id, "org_id": record.org_id, "job_id": record.job_id, "metadata": {}}
    return about, result


def complete(room: Mailroom, about: Any, result: Any, now: Any) -> None:
    with room.app.database.scoped(DEFAULT_ORG).write() as connection:
        document_rows.complete(SimpleNamespace(**about, db=AppliedDatabase(connection), now=now), result)


def test_a_value_fixed_in_the_earlier_item_meanwhile_is_not_lost(room: Mailroom) -> None:
    """Between the look of `save` and its commit: what it has written is void, and it is done again."""
    (first,) = room.process(room.put("bill.pdf", BILL))
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    about, result = late(room, second)
    with room.app.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == first.id).values(locked={"total": "99.00"}))
    with pytest.raises(Deferred, match="just decided"):
        complete(room, about, result, second.created_at)


def test_one_that_is_done_later_but_came_earlier_is_superseded_from_the_start(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    (second,) = room.process(room.put("again.pdf", BILL), order=other_version(room))
    about, result = late(room, first)
    with room.app.database.write() as connection:
        connection.execute(delete(review_items).where(review_items.c.document_id == first.id))
        connection.execute(delete(extracted_fields))
    complete(room, about, result, second.created_at)
    assert waiting(room) == [second.id]
    newest = room.app.review.get(ME, second.id).item.id
    assert room.app.review.get(ME, first.id).item.superseded_by == newest


def test_of_two_that_end_at_the_same_moment_one_waits(room: Mailroom) -> None:
    records = [
        *room.process(room.put("bill.pdf", BILL)),
        *room.process(room.put("again.pdf", BILL), order=other_version(room)),
    ]
    ends = [late(room, record) for record in records]
    with room.app.database.write() as connection:
        connection.execute(delete(review_items))
        connection.execute(delete(extracted_fields))
    start, wrong = Barrier(2), list[BaseException]()

    def end(about: Any, result: Any, record: DocumentRecord) -> None:
        start.wait(30)
        try:
            complete(room, about, result, record.created_at)
        except BaseException as error:
            wrong.append(error)

    threads = [
        Thread(target=end, args=(about, result, record)) for (about, result), record in zip(ends, records, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert waiting(room) == [records[1].id]
