"""The same invoice in two files: the second is processed, told of the first, and comes to a person."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from docmill.documents.records import DocumentRecord
from docmill.extraction.result import Check
from docmill.extraction.same_paper import INVOICE as CHECK
from docmill.extraction.same_paper import Identity
from docmill.model.documents import DocumentStatus
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import system_principal
from docmill.model.review import ChecksFail
from docmill.steps import document_rows, document_save
from docmill.steps.document_extract import extracted
from docmill.steps.document_work import DocumentWork
from tests.contract.mailroom import Mailroom, letter, mailroom

ME = system_principal(DEFAULT_ORG, "me")
SCHEMA = """
name: bill
title: Bill
fields:
  seller_name: {type: text, labels: [Seller], threshold: 0}
  invoice_number: {type: identifier, labels: [Invoice], threshold: 0}
  total: {type: amount, labels: [Total], threshold: 0}
"""
FIRST = letter("Seller: Nordlicht GmbH\nInvoice: RE-4711\nTotal: 12.50")
SCAN = letter("Copy\nSeller: NORDLICHT  GmbH\nInvoice: RE/4711\nTotal: 12.50")
NEXT = letter("Seller: Nordlicht GmbH\nInvoice: RE-4712\nTotal: 12.50")
OTHER = letter("Seller: Suedlicht GmbH\nInvoice: RE-4711\nTotal: 12.50")


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as opened:
        (tmp_path / "slip.yaml").write_text(SCHEMA)
        yield opened


def told(room: Mailroom, record: DocumentRecord) -> list[Check]:
    found = room.app.documents.extraction(record)
    assert found is not None
    return [check for check in found.checks if check.name == CHECK]


def written(room: Mailroom, record: DocumentRecord) -> dict[str, Any]:
    path = next(path for path in room.outputs() if path.name == f"{record.id}.json")
    saved: dict[str, Any] = json.loads(path.read_text())
    return saved


def test_the_second_file_names_the_first_and_comes_to_a_person(room: Mailroom) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    (second,) = room.process(room.put("scan.pdf", SCAN))
    assert (first.status, second.status) == (DocumentStatus.COMPLETED, DocumentStatus.COMPLETED)
    assert told(room, first) == []
    (check,) = told(room, second)
    assert not check.passed
    assert first.id in check.message
    assert "first.pdf" in check.message
    assert written(room, second)["fields"]["invoice_number"]["failed"] == [CHECK]
    for record, needed in ((first, False), (second, True)):
        rows = {row.path: row for row in room.app.review.get(ME, record.id).fields}
        assert rows["invoice_number"].needs_review is needed
        assert rows["total"].needs_review is False


def test_another_number_another_seller_and_the_same_bytes_are_not_told(room: Mailroom) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    for name, content in (("next.pdf", NEXT), ("other.pdf", OTHER), ("copy.pdf", FIRST)):
        (record,) = room.process(room.put(name, content))
        assert told(room, record) == []
    assert told(room, first) == []


def test_of_two_that_arrive_together_one_is_told(room: Mailroom) -> None:
    records = room.process(room.put("first.pdf", FIRST), room.put("scan.pdf", SCAN))
    checks = [check for record in records for check in told(room, record)]
    assert len(checks) == 1
    assert [record.status for record in records] == [DocumentStatus.COMPLETED] * 2


def test_whoever_was_quicker_between_the_look_and_the_commit_is_not_overlooked(
    room: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    looks: list[str] = []
    look = DocumentWork.same_paper

    async def late(work: DocumentWork, org_id: str, identity: Identity | None, document_id: str) -> Any:
        looks.append(document_id)
        return None if len(looks) == 1 else await look(work, org_id, identity, document_id)

    monkeypatch.setattr(DocumentWork, "same_paper", late)
    (second,) = room.process(room.put("scan.pdf", SCAN))
    assert looks == [second.id, second.id]
    assert [first.id in check.message for check in told(room, second)] == [True]


def corrected(room: Mailroom, record: DocumentRecord, number: str) -> DocumentRecord:
    """The document as it is once a person gave it this number and approved it."""
    item = room.app.review.claim(ME, record.id).id
    room.app.review.correct(ME, item, "invoice_number", number)
    decided = room.app.review.approve(ME, item)
    room.work_until(lambda: all(room.app.jobs.get(job_id).summary.status.finished for job_id in decided.job_ids))
    return room.app.documents.get(record.id)


def test_a_corrected_number_is_told_no_more(room: Mailroom) -> None:
    room.process(room.put("first.pdf", FIRST))
    (second,) = room.process(room.put("scan.pdf", SCAN))
    assert told(room, corrected(room, second, "RE-4713")) == []
    assert [check["name"] for check in written(room, second)["checks"] if check["name"] == CHECK] == []


def test_a_number_is_told_as_used_until_a_person_makes_it_another_and_then_nothing_stands_in_the_way(
    room: Mailroom,
) -> None:
    room.process(room.put("first.pdf", FIRST))
    (second,) = room.process(room.put("scan.pdf", SCAN))
    review = room.app.review
    item = review.claim(ME, second.id).id

    def failing() -> list[str]:
        return [str(check["name"]) for check in review.get(ME, item).checks if not check["passed"]]

    review.correct(ME, item, "total", "13.00")
    assert failing() == [CHECK]
    review.correct(ME, item, "invoice_number", "re 4711")
    assert failing() == [CHECK], "it is the same number, written otherwise"
    with pytest.raises(ChecksFail, match=CHECK):
        review.approve(ME, item, anyway=False)
    review.correct(ME, item, "invoice_number", "RE-4713")
    assert failing() == []
    review.undo(ME, item)
    assert failing() == [CHECK]
    review.correct(ME, item, "invoice_number", "RE-4713")
    assert review.approve(ME, item, anyway=False).failing == []


def test_a_document_has_the_invoice_that_a_person_made_it(room: Mailroom) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    corrected(room, first, "RE-4712")
    # What it was read as is free, and what it was corrected to is taken.
    (scan,) = room.process(room.put("scan.pdf", SCAN))
    assert told(room, scan) == []
    (following,) = room.process(room.put("next.pdf", NEXT))
    assert [first.id in check.message for check in told(room, following)] == [True]


def test_whoever_corrects_a_number_to_one_that_is_taken_is_told(room: Mailroom) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    (following,) = room.process(room.put("next.pdf", NEXT))
    assert [first.id in check.message for check in told(room, corrected(room, following, "RE-4711"))] == [True]


def test_once_the_first_was_corrected_the_second_has_the_invoice(room: Mailroom) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    (scan,) = room.process(room.put("scan.pdf", SCAN))
    corrected(room, first, "RE-4799")
    (third,) = room.process(room.put("third.pdf", SCAN.replace(b"Copy", b"Twin")))
    assert [scan.id in check.message for check in told(room, third)] == [True]
    # Approved with its own number, it is not accused of the one behind it.
    assert told(room, corrected(room, scan, "RE-4711")) == []


def test_whoever_has_the_invoice_is_not_told_of_those_behind_it(room: Mailroom) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    room.process(room.put("scan.pdf", SCAN))
    assert told(room, corrected(room, first, "RE 4711")) == []
    # The same bytes by another schema are the same paper, also with another behind it.
    (room.folder / "slip.yaml").write_text(SCHEMA.replace("name: bill", "name: other_bill"))
    (again,) = room.process(room.put("again.pdf", FIRST))
    assert (again.status, again.schema_name) == (DocumentStatus.COMPLETED, "other_bill")
    assert told(room, again) == []


def as_before(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """What `step` was done with says it as the release before did: seller and number, or one hash, as `invoice`."""
    if step == "extract":
        monkeypatch.setattr(document_save, "extracted", lambda results: older(extracted(results)))
        return
    paper = document_rows._paper

    def checkpoint(result: Mapping[str, Any]) -> Mapping[str, Any]:
        kept = {name: value for name, value in result.items() if name != "paper"}
        return paper({**kept, "invoice": result["paper"] and result["paper"]["claims"][0]})

    monkeypatch.setattr(document_rows, "_paper", checkpoint)


def older(said: Mapping[str, Any]) -> dict[str, Any]:
    return {("invoice" if name == "known_by" else name): value for name, value in said.items()}


@pytest.mark.parametrize("step", ["extract", "save"])
def test_a_document_in_flight_during_an_upgrade_still_has_its_invoice(
    room: Mailroom, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as before:
        as_before(before, step)
        (first,) = room.process(room.put("first.pdf", FIRST))
    (scan,) = room.process(room.put("scan.pdf", SCAN))
    assert [first.id in check.message for check in told(room, scan)] == [True]


def test_a_correction_in_flight_during_an_upgrade_still_has_its_invoice(
    room: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = room.process(room.put("first.pdf", FIRST))
    with monkeypatch.context() as before:
        as_before(before, "save")
        corrected(room, first, "RE-4712")
    (scan,) = room.process(room.put("scan.pdf", SCAN))
    assert told(room, scan) == []
    (following,) = room.process(room.put("next.pdf", NEXT))
    assert [first.id in check.message for check in told(room, following)] == [True]
