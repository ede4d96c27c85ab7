"""From a processed document to a decision and back: items, locks that survive every run, outputs that follow."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select, update

from docmill.db.tables import documents, job_steps, jobs, review_items
from docmill.documents.blobs import BlobDamaged
from docmill.documents.records import DocumentRecord
from docmill.engine.context import AppliedDatabase
from docmill.extraction.result import Extraction
from docmill.model.documents import DocumentStatus
from docmill.model.errors import Deferred
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.people import system_principal
from docmill.model.review import FieldState, ReviewStatus
from docmill.model.statuses import JobStatus
from docmill.review.fields import found_in
from docmill.review.rows import review
from docmill.services.jobs import Retry
from docmill.services.review_labels import reviewed_folder
from docmill.settings import ReviewSection
from docmill.steps import document_rows
from docmill.testing.waiting import until
from tests.contract.desk import ANN, BOSS, SLIP, Desk, extraction
from tests.contract.mailroom import Mailroom, letter, mailroom
from tests.contract.test_review_claims import overheard

BILL = letter("Invoice 4711\nTotal 12.50")
ME = system_principal(DEFAULT_ORG, "me")


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


def ended(room: Mailroom, job_id: str) -> None:
    """Wait for the end of a job, and make sure that it is a good one."""
    until(lambda: room.app.jobs.get(job_id).summary.status.finished)
    assert room.app.jobs.get(job_id).summary.status is JobStatus.COMPLETED


def again(room: Mailroom, record: DocumentRecord) -> None:
    """Process a document once more, from the start."""
    room.app.jobs.retry(str(record.job_id), Retry(everything=True, keep_checkpoints=False))
    ended(room, str(record.job_id))


def saved(room: Mailroom, record: DocumentRecord) -> dict[str, Any]:
    """The JSON file of a document."""
    (path,) = [path for path in room.outputs() if path.suffix == ".json" and path.stem == record.id]
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_processed_document_has_an_item_with_fields_evidence_and_checks(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    view = room.app.review.get(ME, record.id)
    assert (view.item.status, view.item.schema, view.item.round) == (ReviewStatus.PENDING, "slip", 1)
    assert view.item.due_at == view.item.created_at + timedelta(hours=24)
    total = next(each for each in view.fields if each.path == "total")
    assert (total.value, total.state) == ("12.50", FieldState.EXTRACTED)
    assert total.evidence[0]["page"] == 1
    assert "type" in total.passed
    assert view.item.priority.doubt == pytest.approx(1 - view.item.confidence)


def test_the_whole_way_of_a_correction(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    (copy,) = room.process(room.put("copy.pdf", BILL))
    item = room.app.review.claim(ME, record.id).id
    room.app.review.correct(ME, item, "total", "99.00")
    assert saved(room, record)["fields"]["total"]["value"] == "12.50", "not before it is approved"
    decided = room.app.review.approve(ME, item)
    for job_id in decided.job_ids:
        ended(room, job_id)
    for each in (record, copy):
        assert saved(room, each)["fields"]["total"]["value"] == "99.00"
        found = room.app.documents.extraction(room.app.documents.get(each.id))
        assert found is not None
        assert found.fields["total"].value == "99.00"
        assert "12.50" in found.fields["total"].alternatives
    # Processed once more, the person's value stands, and so does the decision; what the machine reads is beside it.
    before = saved(room, record)
    again(room, record)
    assert room.app.documents.get(record.id).locked == {"total": "99.00"}
    after = saved(room, record)
    assert after["fields"]["total"]["value"] == "99.00"
    assert "type" in after["fields"]["total"]["passed"], "rules are held against what the person said, again"
    assert (after["fields"]["total"], after["checks"]) == (before["fields"]["total"], before["checks"])
    view = room.app.review.get(ME, record.id)
    assert (view.item.id, view.item.status) == (item, ReviewStatus.CORRECTED)
    total = next(each for each in view.fields if each.path == "total")
    assert (total.value, total.differs, total.proposed) == ("99.00", True, "12.50")


@pytest.mark.parametrize("lost", [b"", b"x\x9c broken"], ids=["empty", "broken"])
def test_an_approval_as_it_stands_needs_nothing_that_the_disk_lost_and_one_by_the_rules_names_it(
    room: Mailroom, lost: bytes
) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    room.app.blobs.path_of(str(record.extraction_key)).write_bytes(lost)
    item = room.app.review.claim(ME, record.id)
    with pytest.raises(BlobDamaged, match="restore it from a backup"):
        room.app.review.approve(ME, item.id, anyway=False)
    assert room.app.review.list(ME)[0].status is ReviewStatus.IN_REVIEW
    decided = room.app.review.approve(ME, item.id)
    assert (decided.item.status, list(decided.failing)) == (ReviewStatus.APPROVED, [])


def test_a_run_while_somebody_reviews_keeps_their_values_and_their_claim(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    item = room.app.review.claim(ME, record.id).id
    seen = room.app.review.correct(ME, item, "total", "99.00")
    again(room, record)
    view = room.app.review.get(ME, item)
    assert (view.item.status, view.item.claimed_by) == (ReviewStatus.IN_REVIEW, "me")
    assert view.item.version > seen.version
    total = next(each for each in view.fields if each.path == "total")
    assert (total.value, total.extracted, total.proposed) == ("99.00", "12.50", "12.50")
    room.app.review.undo(ME, item)
    assert room.app.documents.get(record.id).locked == {}
    assert next(each for each in room.app.review.get(ME, item).fields if each.path == "total").value == "12.50"


def test_a_value_fixed_while_the_outputs_are_written_is_not_lost(room: Mailroom) -> None:
    """Between the look of `save` and its commit: what it has written is void, and it is done again."""
    (record,) = room.process(room.put("bill.pdf", BILL))
    with room.app.database.write() as connection:
        query = select(job_steps.c.result, jobs.c.id).join(jobs, jobs.c.id == job_steps.c.job_id)
        row = connection.execute(query.where(job_steps.c.step_key == "save", jobs.c.id == record.job_id)).one()
        connection.execute(update(documents).values(locked={"total": "99.00"}, status="processing"))
    about: dict[str, object] = {
        "entity_id": record.id,
        "org_id": record.org_id,
        "job_id": record.job_id,
        "metadata": {},
    }

    def complete() -> None:
        with room.app.database.write() as connection:
            late: Any = SimpleNamespace(**about, db=AppliedDatabase(connection), now=record.created_at)
            document_rows.complete(late, row.result)

    with pytest.raises(Deferred, match="just decided"):
        complete()
    again(room, record)
    assert saved(room, record)["fields"]["total"]["value"] == "99.00"
    assert room.app.documents.get(record.id).locked == {"total": "99.00"}


@pytest.mark.parametrize("wanted", ["link", "create"])
def test_a_duplicate_points_at_the_item_of_its_original_or_has_its_own(
    database_url: str, tmp_path: Path, wanted: str
) -> None:
    settings = ReviewSection(duplicates=wanted)  # type: ignore[arg-type]
    with mailroom(database_url, tmp_path, review=settings) as room:
        (first,) = room.process(room.put("bill.pdf", BILL))
        (second,) = room.process(room.put("copy.pdf", BILL))
        assert second.status is DocumentStatus.DUPLICATE
        items = {room.app.review.get(ME, each.id).item.document_id for each in (first, second)}
        assert items == ({first.id} if wanted == "link" else {first.id, second.id})


def test_what_needs_no_look_is_approved_by_itself_if_the_settings_say_so(database_url: str, tmp_path: Path) -> None:
    with mailroom(database_url, tmp_path, review=ReviewSection(auto_approve=True, sla=None)) as room:
        (record,) = room.process(room.put("bill.pdf", BILL), order=replace(room.order()))
        view = room.app.review.get(ME, record.id)
        assert view.item.due_at is None
        sure = not any(each.needs_review for each in view.fields)
        assert view.item.automatic is sure
        assert view.item.status is (ReviewStatus.APPROVED if sure else ReviewStatus.PENDING)


def test_decided_items_are_labelled_documents(room: Mailroom, tmp_path: Path) -> None:
    first, second = room.process(room.put("a.pdf", BILL), room.put("b.pdf", letter("Invoice 4712\nTotal 7.00")))
    item = room.app.review.claim(ME, first.id).id
    room.app.review.correct(ME, item, "total", "99.00")
    room.app.review.clear(ME, item, "number")
    room.app.review.approve(ME, item)
    with overheard(room.app.database) as one:
        folder = reviewed_folder(room.app.database, room.app.blobs, tmp_path / "labels")
    (row,) = folder.rows
    assert (row.fields["total"], row.fields["number"]) == ("99.00", None)
    assert folder.file(row).read_bytes() == BILL
    assert second.id not in {row.file.split(".")[0] for row in folder.rows}
    room.app.review.approve(ME, room.app.review.claim(ME, second.id).id)
    with overheard(room.app.database) as two:
        again = reviewed_folder(room.app.database, room.app.blobs, tmp_path / "again")
    assert {each.fields["total"] for each in again.rows} == {"99.00", "7.00"}
    # As many looks, however many items.
    assert len(two) == len(one)


def run(desk: Desk, item: str, found: Extraction, **policy: Any) -> None:
    """Let another run of the item's document find this."""
    told = {"auto_approve": False, "assign": False, "sla": 3600, **policy}
    with desk.database.write() as connection:
        row = connection.execute(select(review_items).where(review_items.c.id == item)).one()
        result = {
            "schema": "slip",
            "schema_version": "1",
            "document_type": "slip",
            "extraction": row.extraction_key,
            "confidence": found.confidence,
            "locked": {},
            "review": found_in(found, SLIP).as_json() | told,
        }
        about = {"org_id": DEFAULT_ORG, "document_id": row.document_id, "job_id": new_id(), "metadata": {}}
        review(connection, connection.dialect.name, **about, result=result, now=row.created_at + timedelta(hours=1))
    desk.extractions[row.extraction_key] = found


LINES = ({"description": "Paper", "amount": "5.00"}, {"description": "Ink", "amount": "7.50"})


def decided(desk: Desk) -> str:
    item = desk.slip(extraction(LINES, number="4711", total="12.50"))
    desk.review.claim(ANN, item)
    desk.review.correct(ANN, item, "total", "13.00")
    desk.review.approve(ANN, item)
    return item


def test_a_run_that_agrees_with_a_decision_leaves_it(desk: Desk) -> None:
    item = decided(desk)
    run(desk, item, extraction(LINES, number="4711", total="14.00"))
    view = desk.review.get(ANN, desk.review.get(ANN, item).item.document_id)
    assert (view.item.id, view.item.status) == (item, ReviewStatus.CORRECTED)
    total = next(each for each in view.fields if each.path == "total")
    assert (total.value, total.proposed) == ("13.00", "14.00")


def test_a_run_that_reads_otherwise_what_nobody_fixed_opens_a_new_item(desk: Desk) -> None:
    item = decided(desk)
    run(desk, item, extraction(LINES, number="4712", total="14.00"))
    view = desk.review.get(ANN, desk.review.get(ANN, item).item.document_id)
    assert view.item.id != item
    assert (view.item.round, view.item.status) == (2, ReviewStatus.PENDING)
    values = {each.path: (each.value, each.locked, each.proposed) for each in view.fields}
    assert values["number"] == ("4712", False, None)
    assert values["total"] == ("13.00", True, "14.00")
    assert desk.review.get(ANN, item).item.status is ReviewStatus.CORRECTED, "the first decision stays what it was"
    assert desk.locked(item) == {"total": "13.00"}


def test_a_table_that_a_person_touched_is_theirs_whatever_later_runs_read(desk: Desk) -> None:
    item = desk.slip(extraction(LINES, number="4711", total="12.50"))
    desk.review.claim(ANN, item)
    desk.review.correct(ANN, item, "line_items[1].amount", "8.00")
    other = ({"description": "Stamps", "amount": "1.00"}, *LINES)
    run(desk, item, extraction(other, number="4711", total="12.50"))
    assert desk.locked(item)["line_items"][1] == {"description": "Ink", "amount": "8.00"}
    values = {each.path: (each.value, each.proposed) for each in desk.review.get(ANN, item).fields}
    assert values["line_items[0].description"] == ("Paper", "Stamps")
    assert values["line_items[1].amount"] == ("8.00", "5.00")
    assert values["line_items[2].amount"] == (None, "7.50"), "a row that the person's table does not have"
    desk.review.correct(ANN, item, "number", "4712")
    assert len(desk.locked(item)["line_items"]) == 2


def test_the_sla_of_the_schema_comes_before_that_of_the_organisation_and_of_the_settings(desk: Desk) -> None:
    def due(**policy: Any) -> timedelta | None:
        item = decided(desk)
        run(desk, item, extraction(number="another"), **policy)
        latest = desk.review.get(ANN, desk.review.get(ANN, item).item.document_id).item
        return None if latest.due_at is None else latest.due_at - latest.created_at

    assert due(sla=600) == timedelta(minutes=10)
    assert due(sla=0) is None
    desk.review.set_sla(BOSS, timedelta(hours=5))
    assert due(sla=600) == timedelta(hours=5)
    desk.review.set_sla(BOSS, timedelta(hours=2), schema="slip")
    assert due(sla=600) == timedelta(hours=2)
    desk.review.set_sla(BOSS, None, schema="slip")
    assert due(sla=600) is None
    assert desk.review.slas(BOSS) == {None: timedelta(hours=5), "slip": None}


def test_new_items_go_to_reviewers_if_the_settings_say_so(desk: Desk) -> None:
    for name in ("ann", "bob"):
        desk.review.enroll(BOSS, name)
    for _ in range(4):
        run(desk, decided(desk), extraction(number="another"), assign=True)
    given = [each.assigned_to for each in desk.review.list(BOSS)]
    assert sorted(map(str, given)) == ["ann", "ann", "bob", "bob"]


def test_fields_that_an_earlier_release_had_found_are_taken_as_they_are(desk: Desk) -> None:
    item = desk.slip(extraction(LINES, number="4711", total="12.50"))
    again = extraction(LINES, number="4712", total="12.50")
    found = found_in(again, SLIP)
    run(desk, item, again, fields=[row.packed() for row in found.rows])
    assert [(field.path, field.value) for field in desk.review.get(ANN, item).fields] == [
        (row.path, row.value) for row in found.rows
    ]
