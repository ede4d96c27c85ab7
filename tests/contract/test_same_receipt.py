"""The same receipt photographed twice, and papers by which nothing is owed: what is compared, and what is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from docmill.documents.records import DocumentRecord
from docmill.extraction.result import Check
from docmill.extraction.same_paper import INVOICE, RECEIPT
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import system_principal
from tests.contract.mailroom import Mailroom, letter, mailroom

ME = system_principal(DEFAULT_ORG, "me")
TIMED = "HARBOUR CAFE\n1912 Pike Place\nSeattle\n{extra}06/07/2026{time}\nLatte 5.45\nTotal USD {total}\nCash 20.00"


def slip(*, time: str = " 08:14", total: str = "10.69", extra: str = "") -> bytes:
    return letter(TIMED.format(time=time, total=total, extra=extra))


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as opened:
        yield opened


def read(room: Mailroom, name: str, content: bytes, schema: str | None = "receipt") -> DocumentRecord:
    (record,) = room.process(room.put(name, content), order=room.order(schema=schema, schema_file=None))
    return record


def told(room: Mailroom, record: DocumentRecord) -> list[Check]:
    found = room.app.documents.extraction(record)
    assert found is not None
    return [check for check in found.checks if check.name in (INVOICE, RECEIPT)]


def test_the_second_photograph_names_the_first_and_comes_to_a_person(room: Mailroom) -> None:
    first = read(room, "first.pdf", slip())
    second = read(room, "again.pdf", slip(extra="CHK 712209\n"))
    assert told(room, first) == []
    (check,) = told(room, second)
    assert (check.name, check.passed, check.fields) == (RECEIPT, False, ("total",))
    assert check.message.endswith("count one of them.")
    assert first.id in check.message
    assert "first.pdf" in check.message
    rows = {row.path: row for row in room.app.review.get(ME, second.id).fields}
    assert RECEIPT in rows["total"].failed
    assert rows["total"].needs_review


def test_another_time_another_sum_are_other_receipts(room: Mailroom) -> None:
    read(room, "first.pdf", slip())
    assert told(room, read(room, "noon.pdf", slip(time=" 12:30"))) == []
    assert told(room, read(room, "more.pdf", slip(total="11.69"))) == []
    # Of those of one sum each is known by its own time, not only the first.
    assert len(told(room, read(room, "noon again.pdf", slip(time=" 12:30", extra="CHK 712209\n")))) == 1


def test_a_photograph_on_which_the_time_cannot_be_read_is_the_same_either_way(room: Mailroom) -> None:
    read(room, "first.pdf", slip())
    assert len(told(room, read(room, "no time.pdf", slip(time="")))) == 1
    read(room, "other sum.pdf", slip(time="", total="3.20"))
    assert len(told(room, read(room, "with time.pdf", slip(total="3.20")))) == 1


def corrected(room: Mailroom, record: DocumentRecord, total: str) -> DocumentRecord:
    """The document as it is once a person gave it this total and approved it."""
    item = room.app.review.claim(ME, record.id).id
    room.app.review.correct(ME, item, "total", total)
    decided = room.app.review.approve(ME, item)
    room.work_until(lambda: all(room.app.jobs.get(job_id).summary.status.finished for job_id in decided.job_ids))
    return room.app.documents.get(record.id)


def test_once_the_first_was_corrected_the_next_of_its_sum_is_named(room: Mailroom) -> None:
    noon = read(room, "noon.pdf", slip(time=" 12:30"))
    late = read(room, "late.pdf", slip(time=" 18:05"))
    corrected(room, noon, "16.90")
    (check,) = told(room, read(room, "no time.pdf", slip(time="")))
    assert late.id in check.message
    # And of the sum that it has now, the corrected one.
    (check,) = told(room, read(room, "16.90.pdf", slip(time="", total="16.90")))
    assert noon.id in check.message


STATEMENT = "Nordlicht GmbH\nKONTOAUSZUG\nRechnungsnummer: RE-4711\nRechnungsdatum: 31.03.2026\nGesamtbetrag 119,00 EUR"
BILL = "Nordlicht GmbH\nINVOICE\nInvoice Number: RE-4711\nInvoice Date: 03.03.2026\nVAT 19.00\nTotal EUR 119.00"


def test_a_statement_that_lists_an_invoice_accuses_nobody_and_is_not_accused(room: Mailroom) -> None:
    statement = read(room, "statement.pdf", letter(STATEMENT), None)
    assert statement.document_type == "statement"
    bill = read(room, "bill.pdf", letter(BILL), None)
    assert bill.document_type == "invoice"
    assert told(room, bill) == []
    assert told(room, read(room, "march.pdf", letter(STATEMENT.replace("31.03", "30.04")), None)) == []
    assert [check.name for check in told(room, read(room, "copy.pdf", letter(f"COPY\n{BILL}"), None))] == [INVOICE]
