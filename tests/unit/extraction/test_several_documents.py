"""Several papers in one file are told, and what is one paper is not taken for several."""

import re
from pathlib import Path

import pytest

from docmill.documents.limits import Limits
from docmill.documents.parsing import read_whole
from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word
from docmill.extraction.confidence import FAILED_CAP
from docmill.extraction.extracting import extract
from docmill.extraction.result import Check, Extraction
from docmill.extraction.same_paper import identity, named
from docmill.extraction.schema_text import parse_schema
from docmill.extraction.several_documents import CHECK
from docmill.review.fields import found_in
from docmill.testing.papers import LAYOUTS, invoice_pdf
from tests.unit.extraction.typed_pages import typed_reading

FORGE = """
Byte Forge Ltd                                                          INVOICE
60 Harbour Street, Leeds LS1 4DY          VAT GB123456789

                                          Invoice number: BF-0091
                                          Invoice date: 28 Feb 2026
Bill to:
Kern Consulting Ltd

Development, February                                                £9,600.00

                                          Subtotal                   £9,600.00
                                          VAT 20%                    £1,920.00
                                          Total due                 £11,520.00
"""
OUTBACK = """
Outback Electrical Pty Ltd                                          TAX INVOICE
ABN 51 824 753 556     12 Bourke St, Melbourne VIC 3000

                                          Invoice No: 4412
                                          Date: 03/04/2026
Bill To:
Yarra Cafe

Call-out                                                               $150.00
Labour 2h                                                              $220.00
                                          Subtotal                     $370.00
                                          GST 10%                       $37.00
                                          Total                        $407.00
"""
NEXT_OF_FORGE = FORGE.replace("BF-0091", "BF-0092").replace("28 Feb", "28 Mar")
SECOND_PAGE = """
Byte Forge Ltd                                                          INVOICE
                                          Invoice number: BF-0091        Page 2
Travel, 2 days                                                         £400.00
                                          Total due                 £11,920.00
"""
CALLS = "\n".join(
    ["Itemised calls"]
    + [f"{day:02}.02.2026  {8 + day % 12:02}:1{day % 10}  0171 55 01 {day:03}  00:31  0,15" for day in range(1, 21)]
)
TERMS = """
TERMS AND CONDITIONS

1. All invoices are payable within 30 days of the date of the invoice, in the currency named on it.
2. Goods stay ours until they are paid. Interest of 8 % a year is due on sums that are paid late.
"""
DELIVERY = """
Byte Forge Ltd                                                    DELIVERY NOTE
                                          Delivery note no: DN-7788
                                          Date: 27 Feb 2026
Laptop stands                             12
Received by: ____________
"""
SLIP = """
Please detach and pay with this slip
To: Byte Forge Ltd      IBAN GB33BUKB20201555555555
Reference BF-0091                                                   £11,520.00
"""
LETTER = """
Dear Mr Kern,

please find our invoice enclosed. It was a pleasure to work with you, and we look forward to doing so again.

Yours sincerely,
Ada Smith
"""


def told(extraction: Extraction) -> list[Check]:
    return [check for check in extraction.checks if check.name == CHECK]


def said(*pages: str) -> str | None:
    """What the check says of a file with these pages."""
    found = told(extract(typed_reading(*pages)))
    assert len(found) <= 1
    assert not any(check.passed for check in found)
    return found[0].message if found else None


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ((FORGE, OUTBACK), "2 invoices (pages 1 and 2)"),
        ((FORGE, TERMS, OUTBACK), "2 invoices (pages 1 and 3)"),
        ((FORGE, SECOND_PAGE, OUTBACK, NEXT_OF_FORGE), "3 invoices (pages 1, 3 and 4)"),
        ((LETTER, FORGE, OUTBACK), "2 invoices (pages 2 and 3)"),
        ((FORGE, NEXT_OF_FORGE), "2 invoices (pages 1 and 2)"),
    ],
)
def test_whose_pages_open_other_papers_is_told_with_the_pages(pages: tuple[str, ...], message: str) -> None:
    assert said(*pages) == f"This file seems to hold {message}: split it and process each."


@pytest.mark.parametrize(
    "pages",
    [
        (FORGE,),
        (FORGE, SECOND_PAGE),
        (FORGE, TERMS),
        (FORGE, DELIVERY),
        (FORGE, SLIP),
        (FORGE, CALLS),
        (LETTER, FORGE),
        (FORGE, FORGE.replace("INVOICE", "INVOICE COPY")),
    ],
    ids=["alone", "second page", "terms", "delivery note", "slip of the bank", "list of calls", "cover letter", "copy"],
)
def test_what_goes_with_an_invoice_is_no_other_paper(pages: tuple[str, ...]) -> None:
    assert said(*pages) is None


def test_a_stack_is_told_by_its_first_papers() -> None:
    stack = [
        FORGE.replace("BF-0091", f"BF-{number}").replace("Feb 2026", f"Feb {number}") for number in range(1990, 2010)
    ]
    assert said(*stack) == (
        "This file seems to hold 12 invoices or more (pages 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 12): "
        "split it and process each."
    )


def test_no_value_that_may_be_of_another_paper_is_sure_and_each_comes_to_a_person() -> None:
    found = extract(typed_reading(FORGE, OUTBACK))
    (check,) = told(found)
    assert {"seller_name", "invoice_number", "issue_date", "total"} <= set(check.fields)
    for name in check.fields:
        assert found.fields[name].confidence <= FAILED_CAP
        assert CHECK in found.fields[name].failed
    cells = [cell for table in found.rows.values() for row in table for cell in row.values()]
    assert cells
    assert all(cell.confidence <= FAILED_CAP for cell in cells)
    assert all(cell.failed.count(CHECK) == 1 for cell in cells)
    alone = extract(typed_reading(FORGE))
    assert alone.fields["total"].confidence > FAILED_CAP
    assert found.confidence < alone.confidence
    rows = {row.path: row for row in found_in(found, None).rows}
    assert all(rows[name].needs_review for name in check.fields)


def test_a_paper_that_was_split_off_is_not_accused_of_being_the_stack() -> None:
    assert identity(named(extract(typed_reading(FORGE, OUTBACK))), {}) is None
    assert identity(named(extract(typed_reading(FORGE))), {}) is not None


def test_a_schema_of_ones_own_is_told_too() -> None:
    own = parse_schema("name: bill\nfields:\n  sum: {type: amount, labels: [Total, Total due]}\n")
    found = extract(typed_reading(FORGE, OUTBACK), own)
    assert [check.fields for check in told(found)] == [("sum",)]
    assert found.fields["sum"].confidence <= FAILED_CAP


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_an_invoice_of_many_pages_is_one(layout: str, tmp_path: Path) -> None:
    paper = invoice_pdf(3, language="en-GB", layout=layout, items=80)
    reading = read_whole(str(paper.write(tmp_path)), Limits())
    assert len(reading.pages) > 1
    assert told(extract(reading)) == []


CAFE = """
HARBOUR CAFE Store 2231
1912 Pike Place
Seattle, WA 98101
CHK 712209
06/07/2026 08:14 AM
Gr Latte         5.45
Croissant        4.25
Subtotal        $9.70
Tax 10.25%      $0.99
Total          $10.69
Visa           $10.69
"""
MARKET = """
GREENS MARKET
CHARLOTTE NC
01/02/2026 07:12 PM
PAPER TOWEL    $12.99
RETURN         -$5.00
SUBTOTAL        $7.99
TAX 7.25%       $0.58
TOTAL           $8.57
CASH           $20.00
CHANGE         $11.43
"""


def photograph(left: str, right: str) -> Reading:
    """A picture of two slips that lie beside each other."""
    lines = []
    for start, text in ((0.05, left), (0.55, right)):
        for row, line in enumerate(text.strip().splitlines()):
            top = 0.1 + row * 0.05
            for piece in re.finditer(r"\S+(?: \S+)*", line):
                words = []
                for word in re.finditer(r"\S+", piece[0]):
                    at = start + (piece.start() + word.start()) * 0.015
                    box = Box(at, top, at + len(word[0]) * 0.015 - 0.002, top + 0.04)
                    words.append(Word(text=word[0], box=box, score=0.97))
                lines.append(Line(words=tuple(words)))
    page = Page(number=1, width=1400, height=1000, source=TextSource.OCR, lines=tuple(lines))
    return Reading(sha256="0" * 64, format=Format.JPEG, pages=(page,))


def test_two_receipts_on_one_photograph_are_told() -> None:
    found = extract(photograph(CAFE, MARKET))
    (check,) = told(found)
    assert check.message == ("This file seems to hold 2 receipts (side by side on page 1): split it and process each.")
    assert found.fields["total"].confidence <= FAILED_CAP
    # The slip of the terminal says the same sum: it is no other paper.
    assert told(extract(photograph(CAFE, CAFE))) == []
