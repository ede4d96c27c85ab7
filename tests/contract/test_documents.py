"""Documents in, data out: each once, by one template, on both databases."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from docmill.db.clock import database_now
from docmill.db.tables import documents, job_steps, jobs, processed_documents
from docmill.documents.blobs import BlobDamaged, Blobs
from docmill.extraction.schema import load_schema, schema_source
from docmill.model.documents import DocumentStatus
from docmill.model.statuses import JobStatus
from docmill.services.documents import Documents
from docmill.services.ordering import order_of, processing_template
from docmill.services.processing import TEMPLATE
from docmill.services.retries import RetryPolicy
from docmill.templates.compile import compile_template
from docmill.templates.shipped import shipped_text
from docmill.testing.papers import invoice_pdf
from tests.contract.mailroom import SCHEMA, Mailroom, letter, mailroom

BILL = letter("Invoice 4711\nTotal 12.50")
OTHER = letter("Invoice 4712\nTotal 7.00")


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


def _claim(room: Mailroom, document_id: str) -> None:
    """Let this document have the claim on its bytes."""
    with room.app.database.write() as connection:
        row = connection.execute(select(documents).where(documents.c.id == document_id)).one()
        connection.execute(
            processed_documents.insert().values(
                org_id=row.org_id,
                sha256=row.sha256,
                schema_name=row.schema_asked,
                schema_version=row.schema_asked_version,
                variant=row.variant,
                document_id=document_id,
                job_id=row.job_id,
                created_at=row.created_at,
            )
        )


def test_a_document_is_read_extracted_saved_and_its_job_completed(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    assert (record.status, record.schema_name, record.format) == (DocumentStatus.COMPLETED, "slip", "pdf")
    extraction = room.app.documents.extraction(record)
    assert extraction is not None
    assert extraction.fields["total"].value == "12.50"
    assert extraction.fields["total"].evidence[0].page == 1
    reading = room.app.documents.reading(record)
    assert reading is not None
    assert "4711" in reading.text
    assert room.app.jobs.get(str(record.job_id)).summary.status is JobStatus.COMPLETED
    assert sorted(path.suffix for path in room.outputs()) == [".json", ".parquet"]
    saved = json.loads(next(path for path in room.outputs() if path.suffix == ".json").read_text())
    assert saved["fields"]["total"]["value"] == "12.50"
    assert saved["document"]["id"] == record.id


def test_the_same_bytes_elsewhere_are_a_duplicate_with_the_result_of_the_original(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    (second,) = room.process(room.put("copy.pdf", BILL))
    assert (second.status, second.duplicate_of) == (DocumentStatus.DUPLICATE, first.id)
    assert second.id != first.id
    assert room.app.documents.extraction(second) == room.app.documents.extraction(first)
    assert room.app.documents.reading(second) is not None
    assert (room.steps_done("extract"), room.steps_done("read")) == (1, 1)
    # Outputs of its own, under its own id.
    assert {path.stem for path in room.outputs()} == {first.id, second.id}


def test_twins_that_arrive_together_are_extracted_once(room: Mailroom) -> None:
    paths = [room.put(f"twin-{number}.pdf", BILL) for number in range(5)]
    records = room.process(*paths)
    assert sorted(record.status for record in records) == ["completed", *["duplicate"] * 4]
    (original,) = [record for record in records if record.status is DocumentStatus.COMPLETED]
    assert {record.duplicate_of for record in records} == {None, original.id}
    assert room.steps_done("extract") == 1


def test_of_twins_in_one_run_the_first_is_the_original_though_a_later_one_could_begin_before_it(room: Mailroom) -> None:
    names = ("1.pdf", "2.pdf", "3.pdf")
    first, *_ = room.submit(*(room.put(name, BILL) for name in names))
    job_id = str(room.app.documents.get(first).job_id)
    with room.app.database.write() as connection:
        soon = database_now(connection) + timedelta(seconds=0.5)
        connection.execute(update(job_steps).where(job_steps.c.job_id == job_id).values(due_at=soon))
    records = room.process(*(str(room.folder / "in" / name) for name in names))
    assert [record.status for record in records] == ["completed", "duplicate", "duplicate"]
    assert [record.duplicate_of for record in records] == [None, first, first]
    assert room.steps_done("extract") == 1


def test_an_earlier_twin_that_never_began_holds_up_nobody(room: Mailroom) -> None:
    first, second = room.submit(room.put("1.pdf", BILL), room.put("2.pdf", BILL))
    room.app.jobs.cancel(str(room.app.documents.get(first).job_id))
    records = room.process(str(room.folder / "in" / "1.pdf"), str(room.folder / "in" / "2.pdf"))
    assert [(record.id, record.status) for record in records] == [(first, "failed"), (second, "completed")]


def test_a_later_twin_that_has_the_claim_goes_on_though_an_earlier_one_waits(room: Mailroom) -> None:
    first, second = room.submit(room.put("1.pdf", BILL), room.put("2.pdf", BILL))
    _claim(room, second)
    records = room.process(str(room.folder / "in" / "1.pdf"), str(room.folder / "in" / "2.pdf"))
    assert [(record.id, record.status) for record in records] == [(first, "duplicate"), (second, "completed")]


def test_another_schema_or_reader_is_not_the_same_question(room: Mailroom) -> None:
    path = room.put("bill.pdf", BILL)
    (first,) = room.process(path)
    (second,) = room.process(path, order=replace(room.order(), schema_version="another"))
    assert [first.status, second.status] == ["completed", "completed"]
    assert room.steps_done("extract") == 2
    # But the same bytes were read before.
    assert first.reading_key == second.reading_key


def test_when_the_first_twin_fails_the_next_takes_over(room: Mailroom) -> None:
    first, second = room.submit(room.put("1.pdf", BILL), room.put("2.pdf", BILL))
    # The first one holds the claim, and its job is at work, as far as anybody can tell.
    _claim(room, first)
    room.app.jobs.cancel(str(room.app.documents.get(first).job_id))
    records = room.process(str(room.folder / "in" / "1.pdf"), str(room.folder / "in" / "2.pdf"))
    assert [(record.id, record.status) for record in records] == [(first, "failed"), (second, "completed")]
    assert records[0].error_code == "cancelled"


def test_a_result_whose_time_is_up_answers_no_more(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    with room.app.database.write() as connection:
        connection.execute(update(processed_documents).values(expires_at=first.created_at))
    (second,) = room.process(room.put("copy.pdf", BILL))
    assert second.status is DocumentStatus.COMPLETED
    assert room.steps_done("extract") == 2


def test_a_result_whose_bytes_are_lost_is_made_anew(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    room.app.blobs.delete(str(first.extraction_key))
    (second,) = room.process(room.put("copy.pdf", BILL))
    assert second.status is DocumentStatus.COMPLETED
    assert room.app.documents.extraction(second) is not None


def test_a_result_whose_bytes_are_damaged_is_made_anew_for_all_who_have_it(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    for key in (first.extraction_key, first.reading_key):
        room.app.blobs.path_of(str(key)).write_bytes(b"")
    with pytest.raises(BlobDamaged, match=first.id):
        room.app.documents.extraction(first)
    (second,) = room.process(room.put("copy.pdf", BILL))
    assert second.status is DocumentStatus.COMPLETED
    assert room.app.documents.extraction(second) == room.app.documents.extraction(first)
    assert room.app.documents.reading(first) is not None


def test_of_two_processes_that_begin_the_same_run_one_opens_it(room: Mailroom) -> None:
    order = room.order()
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: room.app.processing.open_run(["/papers"], order), range(8)))
    assert len(set(runs)) == 1


def test_what_a_person_decided_stands_in_duplicates_too(room: Mailroom) -> None:
    (first,) = room.process(room.put("bill.pdf", BILL))
    with room.app.database.write() as connection:
        connection.execute(update(documents).values(locked={"total": "99.00"}))
    (second,) = room.process(room.put("copy.pdf", BILL))
    extraction = room.app.documents.extraction(second)
    assert extraction is not None
    assert extraction.fields["total"].value == "99.00"
    assert extraction.fields["total"].alternatives == ("12.50",)
    assert second.locked == {"total": "99.00"}
    assert second.duplicate_of == first.id


def test_what_a_person_decided_stands_however_the_same_bytes_are_read_again(room: Mailroom) -> None:
    room.process(room.put("bill.pdf", BILL))
    with room.app.database.write() as connection:
        connection.execute(update(documents).values(locked={"total": "99.00"}))
    # Another version of the schema: not a duplicate, and read anew.
    (second,) = room.process(room.put("copy.pdf", BILL), order=room.order(schema_version="another"))
    assert (second.status, second.duplicate_of, second.locked) == ("completed", None, {"total": "99.00"})
    extraction = room.app.documents.extraction(second)
    assert extraction is not None
    assert (extraction.fields["total"].value, extraction.fields["total"].alternatives) == ("99.00", ("12.50",))
    # What a field of another schema is, nobody has decided.
    (room.folder / "parcel.yaml").write_text(SCHEMA.replace("slip", "parcel"))
    other = order_of(schema=str(room.folder / "parcel.yaml"), model=None, out=None, blobs=room.app.blobs)
    (third,) = room.process(room.put("third.pdf", BILL), order=other)
    found = room.app.documents.extraction(third)
    assert found is not None
    assert (found.fields["total"].value, third.locked) == ("12.50", {})


def test_a_broken_document_fails_by_name_and_harms_no_other(room: Mailroom) -> None:
    records = room.process(
        room.put("a.pdf", BILL), room.put("b.pdf", b"%PDF-1.4 and nothing"), room.put("c.txt", b"words")
    )
    assert [record.status for record in records] == ["completed", "failed", "failed"]
    assert [record.error_code for record in records] == [None, "damaged_file", "unsupported_file"]
    assert all(record.error_message for record in records[1:])


def test_a_failure_stays_known_when_the_job_is_gone(room: Mailroom) -> None:
    (record,) = room.process(room.put("b.pdf", b"%PDF-1.4 and nothing"))
    with room.app.database.write() as connection:
        connection.execute(delete(jobs).where(jobs.c.id == record.job_id))
    again = room.app.documents.get(record.id)
    assert (again.status, again.error_code) == (DocumentStatus.FAILED, "damaged_file")


def test_a_document_stands_where_its_job_stands(room: Mailroom) -> None:
    (document_id,) = room.submit(room.put("bill.pdf", BILL))
    assert room.app.documents.get(document_id).status is DocumentStatus.QUEUED
    job_id = str(room.app.documents.get(document_id).job_id)
    room.app.jobs.cancel(job_id)
    failed = room.app.documents.get(document_id)
    assert (failed.status, failed.error_code) == (DocumentStatus.FAILED, "cancelled")
    assert room.app.documents.settle() == 1
    room.app.jobs.retry(job_id)
    assert room.app.documents.get(document_id).status is DocumentStatus.QUEUED
    (record,) = room.process(str(room.folder / "in" / "bill.pdf"))
    assert (record.id, record.status, record.error_code) == (document_id, DocumentStatus.COMPLETED, None)


def test_a_run_that_is_started_again_before_its_end_goes_on(room: Mailroom) -> None:
    paths = [room.put("a.pdf", BILL), room.put("b.pdf", OTHER)]
    ids = room.submit(*paths)
    records = room.process(*paths)
    assert [record.id for record in records] == ids
    assert [record.status for record in records] == ["completed", "completed"]
    # It has come to its end: the next one is a new run, and finds what was processed before.
    assert [record.status for record in room.process(*paths)] == ["duplicate", "duplicate"]


def test_a_run_started_again_tries_what_failed_for_a_reason_outside_of_the_file(room: Mailroom) -> None:
    paths = [room.put("a.pdf", BILL), room.put("b.pdf", b"%PDF-1.4 and nothing"), room.put("c.pdf", OTHER)]
    room.template = processing_template(room.app.templates, room.app.catalogue, RetryPolicy(max_retries=0))
    order = room.order()
    blocked = room.folder / "out"
    blocked.write_text("a file where the outputs should go")
    document_ids = room.submit(*paths, order=order)
    jobs_of = {path: str(room.app.documents.get(each).job_id) for path, each in zip(paths, document_ids, strict=True)}
    room.app.jobs.cancel(jobs_of[paths[2]])
    room.work_until(lambda: room.app.documents.ended(document_ids).keys() == set(document_ids))
    before = [room.app.documents.get(each) for each in document_ids]
    assert [each.error_code for each in before] == ["output_unwritable", "damaged_file", "cancelled"]
    runs = {job: room.app.jobs.get(job).summary.run for job in jobs_of.values()}
    # The person makes room, and gives the same command.
    blocked.unlink()
    records = room.process(*paths, order=order)
    assert [record.id for record in records] == document_ids
    assert [record.status for record in records] == ["completed", "failed", "failed"]
    again = [room.app.jobs.get(job).summary.run - runs[job] for job in jobs_of.values()]
    assert again == [1, 0, 0]


def test_a_schema_found_by_its_name_is_read_as_it_was_asked_for(room: Mailroom) -> None:
    folder = room.folder / "schemas"
    folder.mkdir()
    (folder / "slip.yaml").write_text((room.folder / "slip.yaml").read_text())
    order = order_of(schema="slip", model=None, out=room.folder / "out", blobs=room.app.blobs, folders=[folder])
    path = room.put("bill.pdf", BILL)
    room.submit(path, order=order)
    # Changed between the command and the job, as by somebody who works on it.
    (folder / "slip.yaml").write_text("name: slip\ntitle: Slip\nfields:\n  other: {type: text, labels: [Invoice]}\n")
    (record,) = room.process(path, order=order)
    assert record.schema_version == order.schema_version
    extraction = room.app.documents.extraction(record)
    assert extraction is not None
    assert sorted(extraction.fields) == ["number", "total"]


def test_an_upgrade_changes_no_schema_of_a_job_that_was_submitted_before(room: Mailroom) -> None:
    """The type of the document chooses among the schemas that there were then; and so does a name."""
    folder = room.folder / "before"
    folder.mkdir()
    older = schema_source("invoice").replace(b"title: ", b"title: Older ", 1)
    (folder / "invoice.yaml").write_bytes(older)
    expected = load_schema("invoice", [folder]).version
    assert expected != load_schema("invoice").version
    out = room.folder / "out"
    order = order_of(schema=None, model=None, out=out, blobs=room.app.blobs, folders=[folder])
    (waiting,) = room.submit(room.put("a.pdf", invoice_pdf(4).content), order=order)
    (folder / "invoice.yaml").unlink()
    room.work_until(lambda: room.app.documents.get(waiting).status.finished)
    record = room.app.documents.get(waiting)
    assert (record.status, record.schema_name) == (DocumentStatus.COMPLETED, "invoice")
    assert record.schema_version == expected
    named = order_of(schema="receipt", model=None, out=out, blobs=room.app.blobs)
    assert named.schema_file is not None
    assert room.app.blobs.read(named.schema_file) == schema_source("receipt")
    assert named.metadata["schema_file"] == named.schema_file


def test_an_upgrade_replaces_the_shipped_template_unless_somebody_changed_it(
    room: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shipped_text(TEMPLATE)
    newer = text.replace("description:", "description: Newer.", 1) if "description:" in text else None
    assert newer is not None
    first = processing_template(room.app.templates, room.app.catalogue)
    monkeypatch.setattr("docmill.templates.shipped.shipped_text", lambda name: newer)
    second = processing_template(room.app.templates, room.app.catalogue)
    assert (first.version, second.version) == (1, 2)
    assert processing_template(room.app.templates, room.app.catalogue).version == 2
    # Somebody makes it their own: from then on it stays.
    own = text.replace("description:", "description: Ours.", 1)
    kept = room.app.templates.register(compile_template(own, catalogue=room.app.catalogue, source="own"))
    monkeypatch.undo()
    assert processing_template(room.app.templates, room.app.catalogue).id == kept.id


def test_a_file_that_changed_meanwhile_is_another_document(room: Mailroom) -> None:
    path = room.put("a.pdf", BILL)
    (before,) = room.submit(path)
    room.put("a.pdf", OTHER)
    (after,) = room.process(path)
    assert after.id != before
    extraction = room.app.documents.extraction(after)
    assert extraction is not None
    assert extraction.fields["total"].value == "7.00"


def test_originals_expire_and_their_results_stay(database_url: str, tmp_path: Path) -> None:
    with mailroom(database_url, tmp_path, expire=timedelta(days=30)) as room:
        first, second = room.process(room.put("a.pdf", BILL), room.put("b.pdf", OTHER))
        (copy,) = room.process(room.put("c.pdf", BILL))
        assert first.original_expires_at is not None
        assert room.app.documents.expire() == 0
        with room.app.database.write() as connection:
            due = update(documents).where(documents.c.id.in_([first.id, second.id]))
            connection.execute(due.values(original_expires_at=database_now(connection)))
        assert room.app.documents.expire() == 2
        assert room.app.documents.get(first.id).original_expired_at is not None
        # The copy still needs the bytes of the first; nobody needs those of the second.
        assert room.app.blobs.has(str(copy.original_key))
        assert not room.app.blobs.has(str(second.original_key))
        assert room.app.documents.extraction(room.app.documents.get(second.id)) is not None
        # Its bytes may come in again, and its result still answers.
        (again,) = room.process(room.put("d.pdf", OTHER))
        assert (again.status, again.duplicate_of) == (DocumentStatus.DUPLICATE, second.id)


def test_ids_may_be_written_short(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    assert room.app.documents.find_id(record.id[:13]) == record.id
    assert [each.id for each in room.app.documents.list(status=DocumentStatus.COMPLETED)] == [record.id]
    assert room.app.documents.list(status=DocumentStatus.FAILED) == []


class Counting:
    """Blobs, and how often they are read."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.reads = 0

    def read(self, key: str) -> bytes:
        self.reads += 1
        return self._blobs.read(key)


def test_a_reading_is_looked_into_once_for_how_its_pages_are_turned(room: Mailroom) -> None:
    (record,) = room.process(room.put("bill.pdf", BILL))
    counting = Counting(room.app.blobs)
    found = Documents(room.app.database, lambda: counting)  # type: ignore[arg-type, return-value]
    reading = found.reading(record)
    assert reading is not None
    before = counting.reads
    for _ in range(3):
        assert found.turned(record) == {page.number: page.turned for page in reading.pages}
    assert counting.reads == before + 1
    assert found.turned(replace(record, reading_key=None)) is None
