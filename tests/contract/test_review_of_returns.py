"""Settings that are taken back ask an earlier question again: the reading that answers it stands again."""

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import select, update

from docmill.db.tables import documents, review_items
from docmill.documents.records import DocumentRecord
from docmill.model.documents import DocumentStatus
from docmill.model.errors import Deferred
from docmill.model.ids import DEFAULT_ORG
from docmill.model.review import ReviewStatus, Superseded
from docmill.services.processing import Order
from docmill.services.review_statuses import review_statuses
from docmill.settings import ReviewSection
from tests.contract.mailroom import SCHEMA, Mailroom, mailroom
from tests.contract.test_review_of_documents import again
from tests.contract.test_review_of_readings import BILL, BOB, ME, complete, late, other_version, value, waiting


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


def as_before(room: Mailroom) -> Order:
    """The schema asks what it asked first."""
    (room.folder / "slip.yaml").write_text(SCHEMA)
    return room.order()


def first(room: Mailroom) -> DocumentRecord:
    (record,) = room.process(room.put("a.pdf", BILL), order=as_before(room))
    return record


def changed(room: Mailroom) -> DocumentRecord:
    (record,) = room.process(room.put("b.pdf", BILL), order=other_version(room))
    return record


def back(room: Mailroom, of: DocumentRecord, name: str = "c.pdf") -> DocumentRecord:
    (record,) = room.process(room.put(name, BILL), order=as_before(room))
    assert (record.status, record.duplicate_of) == (DocumentStatus.DUPLICATE, of.id)
    return record


def locked(room: Mailroom, record: DocumentRecord) -> Any:
    with room.app.database.read() as connection:
        return connection.execute(select(documents.c.locked).where(documents.c.id == record.id)).scalar_one()


def test_the_item_of_the_reading_that_was_asked_for_last_waits_again(room: Mailroom) -> None:
    a, b = first(room), changed(room)
    due = room.app.review.get(ME, a.id).item.due_at
    c = back(room, a)
    assert waiting(room) == [a.id]
    old, new = room.app.review.get(ME, b.id), room.app.review.get(ME, c.id)
    assert (new.item.document_id, new.item.superseded_by, new.supersedes) == (a.id, None, [old.item.id])
    assert (old.item.superseded_by, new.item.due_at) == (new.item.id, due)
    stand = {row["document_id"]: row["review"] for row in review_statuses(room.app.database, DEFAULT_ORG)}
    assert stand == {a.id: "pending", b.id: None}
    with room.app.database.read() as connection:
        runs = select(review_items.c.sla_at).where(review_items.c.document_id == a.id)
        assert connection.execute(runs).scalar_one() is not None, "its time runs again"
    with pytest.raises(Superseded, match=new.item.id):
        room.app.review.claim(ME, old.item.id)
    claimed = room.app.review.claim_next(BOB)
    assert claimed is not None
    assert claimed.id == new.item.id
    assert room.app.review.approve(BOB, claimed.id).item.status is ReviewStatus.APPROVED


def test_to_and_fro_there_is_always_one(room: Mailroom) -> None:
    a, b = first(room), changed(room)
    for turn in range(2):
        back(room, a, f"c{turn}.pdf")
        assert waiting(room) == [a.id]
        (copy,) = room.process(room.put(f"d{turn}.pdf", BILL), order=other_version(room))
        assert copy.duplicate_of == b.id
        assert waiting(room) == [b.id]
    views = [room.app.review.get(ME, record.id) for record in (a, b)]
    assert (views[0].item.superseded_by, views[1].supersedes) == (views[1].item.id, [views[0].item.id])


def test_a_copy_of_what_stands_changes_nothing(room: Mailroom) -> None:
    a, _ = first(room), changed(room)
    back(room, a)
    before = room.app.review.get(ME, a.id).item
    back(room, a, "d.pdf")
    assert room.app.review.get(ME, a.id).item.version == before.version
    assert waiting(room) == [a.id]


def test_a_decision_stands_again_and_nothing_waits(room: Mailroom) -> None:
    a = first(room)
    room.app.review.claim(ME, a.id)
    room.app.review.approve(ME, a.id)
    b = changed(room)
    assert waiting(room) == [b.id]
    back(room, a)
    assert waiting(room) == []
    view = room.app.review.get(ME, a.id)
    assert (view.item.status, view.item.round) == (ReviewStatus.APPROVED, 1)
    assert room.app.review.get(ME, b.id).item.superseded_by == view.item.id


def test_a_person_goes_on_with_all_that_they_said_of_the_other_reading(room: Mailroom) -> None:
    a, b = first(room), changed(room)
    item = room.app.review.claim(ME, b.id)
    room.app.review.assign(ME, item.id, "me")
    room.app.review.correct(ME, item.id, "total", "99.00")
    room.app.review.comment(ME, item.id, "as on the phone", path="total")
    c = back(room, a)
    view = room.app.review.get(ME, a.id)
    assert (view.item.status, view.item.claimed_by, view.item.assigned_to) == (ReviewStatus.IN_REVIEW, "me", "me")
    total = next(each for each in view.fields if each.path == "total")
    assert (total.value, total.extracted, total.locked, total.changed_by) == ("99.00", "12.50", True, "me")
    assert locked(room, a) == locked(room, c) == {"total": "99.00"}
    assert [each.body for each in room.app.review.comments(ME, view.item.id)] == ["as on the phone"]
    assert [each.action for each in room.app.review.history(ME, view.item.id)] == ["correct"]
    # What is said of the one that stands now is the last word, also when the other comes back.
    room.app.review.correct(ME, view.item.id, "total", "100.00")
    room.process(room.put("d.pdf", BILL), order=other_version(room))
    assert waiting(room) == [b.id]
    assert value(room, b.id) == "100.00"
    assert room.app.review.approve(ME, b.id).item.status is ReviewStatus.CORRECTED


def test_what_was_said_after_a_decision_is_asked_in_a_new_item(room: Mailroom) -> None:
    a = first(room)
    room.app.review.claim(ME, a.id)
    room.app.review.approve(ME, a.id)
    b = changed(room)
    room.app.review.claim(ME, b.id)
    room.app.review.correct(ME, b.id, "total", "99.00")
    back(room, a)
    assert waiting(room) == [a.id]
    view = room.app.review.get(ME, a.id)
    assert (view.item.round, view.item.status, view.item.claimed_by) == (2, ReviewStatus.IN_REVIEW, "me")
    assert value(room, a.id) == "99.00"
    assert room.app.review.get(ME, b.id).item.superseded_by == view.item.id
    assert room.app.review.approve(ME, a.id).item.status is ReviewStatus.CORRECTED
    back(room, a, "d.pdf")
    assert waiting(room) == [], "said and decided"


def test_a_decision_about_the_other_reading_is_left_as_it_is(room: Mailroom) -> None:
    a, b = first(room), changed(room)
    room.app.review.claim(ME, b.id)
    room.app.review.correct(ME, b.id, "total", "99.00")
    room.app.review.approve(ME, b.id)
    back(room, a)
    other = room.app.review.get(ME, b.id).item
    assert (other.status, other.superseded_by) == (ReviewStatus.CORRECTED, None)
    assert waiting(room) == [a.id]
    assert value(room, a.id) == "99.00"


def test_one_that_is_processed_once_more_keeps_the_place_it_has(room: Mailroom) -> None:
    a, b = first(room), changed(room)
    c = back(room, a)
    for record in (b, c, a):
        again(room, record)
        assert waiting(room) == [a.id]


def test_an_original_that_does_not_stand_though_it_was_asked_for_last_does_when_it_is_processed_again(
    room: Mailroom,
) -> None:
    """As an earlier release has left it."""
    a, b = first(room), changed(room)
    back(room, a)
    items = [room.app.review.get(ME, record.id).item.id for record in (a, b)]
    with room.app.database.write() as connection:
        for item, by in zip(items, (items[1], None), strict=True):
            connection.execute(update(review_items).where(review_items.c.id == item).values(superseded_by=by))
    room.app.review.claim(ME, b.id)
    room.app.review.correct(ME, b.id, "total", "99.00")
    again(room, a)
    assert waiting(room) == [a.id]
    assert (value(room, a.id), room.app.review.get(ME, a.id).item.claimed_by) == ("99.00", "me")


def test_with_an_item_for_each_copy_the_original_waits_again_beside_it(database_url: str, tmp_path: Path) -> None:
    with mailroom(database_url, tmp_path, review=ReviewSection(duplicates="create")) as room:
        a, b = first(room), changed(room)
        c = back(room, a)
        assert sorted(waiting(room)) == sorted([a.id, c.id])
        assert room.app.review.get(ME, b.id).item.superseded_by == room.app.review.get(ME, a.id).item.id


def test_a_value_fixed_in_the_other_item_meanwhile_is_not_lost(room: Mailroom) -> None:
    """Between the look of `save` and its commit: what it has written is void, and it is done again."""
    a, b = first(room), changed(room)
    c = back(room, a)
    about, result = late(room, c)
    with room.app.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == b.id).values(locked={"total": "99.00"}))
    with pytest.raises(Deferred, match="just decided"):
        complete(room, about, result, c.created_at)


def test_a_copy_that_came_before_the_other_reading_and_is_done_later_brings_nothing_back(room: Mailroom) -> None:
    a = first(room)
    c = back(room, a)
    b = changed(room)
    about, result = late(room, c)
    complete(room, about, result, b.created_at)
    assert waiting(room) == [b.id]


@pytest.mark.parametrize("later", ["copy", "reading"])
def test_of_a_copy_and_a_reading_that_end_at_the_same_moment_the_later_stands(room: Mailroom, later: str) -> None:
    a = first(room)
    # Which of them came in last is all that tells them apart.
    b, c = (changed(room), back(room, a)) if later == "copy" else reversed((back(room, a), changed(room)))
    ends = [(late(room, record), record) for record in (b, c)]
    with room.app.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == c.id).values(duplicate_of=None))
        connection.execute(update(review_items).values(superseded_by=None))
    start, wrong = Barrier(2), list[BaseException]()

    def end(about: Any, result: Any, record: DocumentRecord) -> None:
        start.wait(30)
        try:
            complete(room, about, result, record.created_at)
        except BaseException as error:
            wrong.append(error)

    threads = [Thread(target=end, args=(*given, record)) for given, record in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert waiting(room) == [a.id if later == "copy" else b.id]
