"""The same paper in other bytes: sums can leave out the second, whatever lies in the folder and was decided."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from docmill.extraction.result import Extraction
from docmill.extraction.same_paper import INVOICE, identity
from docmill.extraction.same_paper import named as known_by
from docmill.extraction.several_documents import CHECK as SEVERAL
from docmill.outputs.gathering import Known
from docmill.outputs.places import OutputSettings
from docmill.outputs.querying import Outputs
from docmill.outputs.writing import write
from tests.unit.outputs.samples import CAME_IN, RECEIPT, Facts, extraction, found

TWINS = "SELECT id, same_as FROM documents WHERE same_as IS NOT NULL ORDER BY id"
SUM = "SELECT count(*) FROM {} WHERE same_as IS NULL"


class Folder:
    """Outputs that are asked as they stand."""

    def __init__(self, root: Path) -> None:
        self._settings = OutputSettings(root=root)
        self._count = 0

    def put(self, name: str, read: Extraction, sha256: str | None = None) -> None:
        """One more, with bytes of its own."""
        self._count += 1
        facts = Facts(id=name, sha256=sha256 or name * 16, created_at=CAME_IN + timedelta(minutes=self._count))
        write(read, facts, self._settings, facts.created_at)

    def ask(self, sql: str, known: Known | None = None) -> list[tuple[object, ...]]:
        with Outputs(self._settings, known=known or Known()) as outputs:
            return list(outputs.ask(sql).rows)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def numbered(number: str) -> Extraction:
    return extraction(invoice_number=found(number))


SPELLINGS = (
    *("Groß Bau GmbH", "GROSS BAU GMBH", "groß-bau, gmbh", "GROẞ BAU GMBH", "Gros Bau GmbH"),
    *("Gärtnerei", "Ga\u0308rtnerei", "GÄRTNEREI", "Gartnerei", "Société", "SOCIE\u0301TE\u0301", "Societe"),
    *("ＡＢＣ　１２", "abc12", "ABC-12", "A_B_C 12", "Oﬃce", "OFFICE", "ﬁ & Co", "FI&CO.", "№ 7", "No 7", "x²", "X2"),
    *(
        "İstanbul",
        "istanbul",
        "I\u0307STANBUL",
        "ISTANBUL",
        "ı",
        "ΟΔΟΣ",
        "οδός",
        "ΟΔΌΣ",
        "οδοσ",
        "Łódź",
        "ŁÓDŹ",
        "Ŀ",
        "l·",
    ),
    *(
        "日本",
        "㈱日本",
        "(株)日本",
        "ｶﾞ",
        "ガ",
        "हिन्दी",
        "हनद",
        "Ⅷ",
        "viii",
        "١٢",
        "12",
        "½",
        "1/2",
        "1⁄2",
        "ŉ",
        "ʼn",
        "ﬅ",
        "st",
    ),
    *("--", "„“", "_", " ", "é", "e", "\u0345", "ͅα", "ᾳ", "ΑΙ"),
)


def groups(folder: Folder, reads: Mapping[str, Extraction]) -> tuple[list[set[str]], list[set[str]]]:
    """Papers that are the same, by the check and by the column."""
    said: dict[tuple[str, ...], set[str]] = {}
    for name, read in reads.items():
        folder.put(name, read)
        if (mine := identity(known_by(read), {})) is not None:
            said.setdefault(mine.claims, set()).add(name)
    marked: dict[object, set[str]] = {}
    for other, first in folder.ask(TWINS):
        marked.setdefault(first, {str(first)}).add(str(other))
    return sorted((each for each in said.values() if len(each) > 1), key=min), sorted(marked.values(), key=min)


@pytest.mark.parametrize("field", ["seller_name", "invoice_number", "company"])
def test_a_spelling_is_that_of_another_exactly_where_the_check_says_so(folder: Folder, field: str) -> None:
    def spelled(text: str) -> Extraction:
        read = slip(time="12:30") if field == "company" else extraction()
        return replace(read, fields={**read.fields, field: found(text)})

    checked, marked = groups(folder, {f"{place:04}": spelled(text) for place, text in enumerate(SPELLINGS)})
    assert marked == checked
    assert {"0000", "0001", "0002", "0003"} in marked
    assert len(marked) > 10


def test_a_total_is_another_exactly_where_the_check_says_so(folder: Folder) -> None:
    totals = ("99.9", "99.90", "99.91", "-99.90", "0", "0.00", "100", "1E+2", "100.00")
    reads = {f"{place:04}": slip(total=text, time="12:30") for place, text in enumerate(totals)}
    checked, marked = groups(folder, reads)
    assert marked == checked == [{"0000", "0001"}, {"0006", "0007", "0008"}]


@pytest.mark.parametrize("kind", ["invoice", "credit_note", "other", "receipt"])
def test_invoices_that_were_read_as_receipts_are_not_lost_from_a_sum(folder: Folder, kind: str) -> None:
    one = replace(slip(time="12:30"), document_type=kind)
    two = replace(one, fields={**one.fields, "receipt_number": found("4712")})
    checked, marked = groups(folder, {"one1": one, "two2": two})
    assert marked == checked == ([{"one1", "two2"}] if kind == "receipt" else [])
    assert folder.ask(SUM.format("receipts")) == [(1 if kind == "receipt" else 2,)]


def slip(**more: str) -> Extraction:
    read = extraction(RECEIPT)
    fields = {**read.fields, **{name: found(value) for name, value in more.items()}}
    return replace(read, fields={name: value for name, value in fields.items() if value.value})


def failing(read: Extraction, field: str, check: str) -> Extraction:
    value = read.fields[field]
    return replace(read, fields={**read.fields, field: value.judged(value.passed, (check,))})


def test_the_scan_of_an_invoice_names_the_invoice_and_a_sum_can_leave_it_out(folder: Folder) -> None:
    folder.put("pdf1", numbered("RE-4711"))
    folder.put("scan", numbered("re 4711"))
    folder.put("next", numbered("RE-4712"))
    assert folder.ask(TWINS) == [("scan", "pdf1")]
    assert folder.ask(SUM.format("invoices")) == [(2,)]
    assert folder.ask("SELECT count(DISTINCT document_id) FROM line_items WHERE same_as IS NULL") == [(2,)]


def test_whom_the_check_accuses_is_the_other_one(folder: Folder) -> None:
    folder.put("pdf1", failing(numbered("RE-4711"), "invoice_number", INVOICE))
    folder.put("scan", numbered("RE-4711"))
    assert folder.ask(TWINS) == [("pdf1", "scan")]


def test_what_was_rejected_leaves_the_other_to_be_counted(folder: Folder) -> None:
    folder.put("pdf1", numbered("RE-4711"))
    folder.put("scan", numbered("RE-4711"))
    known = Known(reviews=lambda: [{"document_id": "pdf1", "round": 1, "review": "rejected"}])
    assert folder.ask(TWINS, known) == []
    assert folder.ask(SUM.format("invoices"), known) == [(1,)]


def test_a_file_of_several_papers_is_none_of_them(folder: Folder) -> None:
    folder.put("pile", failing(numbered("RE-4711"), "total", SEVERAL))
    folder.put("page", numbered("RE-4711"))
    assert folder.ask(TWINS) == []


def test_a_statement_that_lists_an_invoice_is_not_its_twin(folder: Folder) -> None:
    folder.put("list", replace(numbered("RE-4711"), document_type="statement"))
    folder.put("bill", numbered("RE-4711"))
    assert folder.ask(TWINS) == []


def test_an_invoice_without_a_number_has_no_twin(folder: Folder) -> None:
    for name in ("one1", "two2"):
        read = extraction()
        folder.put(name, replace(read, fields={k: v for k, v in read.fields.items() if k != "invoice_number"}))
    assert folder.ask(TWINS) == []


def test_of_a_receipt_company_date_and_total_and_the_minute_if_both_say_it(folder: Folder) -> None:
    folder.put("noon", slip(time="12:30:00"))
    folder.put("copy", slip(time="12:30:41"))
    folder.put("late", slip(time="18:05:00"))
    folder.put("dark", slip(time=""))
    folder.put("more", slip(time="12:30:00", total="99.95"))
    folder.put("zero", slip(time="12:30:00", total="0.00"))
    folder.put("nil0", slip(time="12:30:00", total="0.00"))
    assert folder.ask(TWINS) == [("copy", "noon"), ("dark", "noon")]
    assert folder.ask(SUM.format("receipts")) == [(5,)]
