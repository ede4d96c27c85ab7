"""Two readers of one document: agreement is believed, disagreement is doubted and shown."""

from dataclasses import replace
from typing import Any

import pytest

from docmill.documents.reading import Box
from docmill.extraction.combining import AGREES, combine, same
from docmill.extraction.result import Check, Evidence, Extraction, FieldValue, Reader
from docmill.extraction.suspicion import CHECK

PLACE = (Evidence(page=1, box=Box(0.1, 0.1, 0.2, 0.2)),)


def value(text: str, confidence: float = 0.85, *, grounded: bool = True, **more: Any) -> FieldValue:
    return FieldValue(value=text, raw=text, confidence=confidence, evidence=PLACE if grounded else (), **more)


def read(reader: Reader = Reader.MODEL, **fields: FieldValue) -> Extraction:
    return Extraction(schema="invoice", schema_version="1", reader=reader, document_type="invoice", fields=fields)


def both(model: FieldValue | None, local: FieldValue | None) -> FieldValue:
    ours = read(Reader.MODEL, **({} if model is None else {"total": model}))
    theirs = read(Reader.LOCAL, **({} if local is None else {"total": local}))
    return combine(ours, theirs).fields["total"]


def test_what_both_read_is_believed_more_than_either() -> None:
    found = both(value("12.00", 0.85), value("12.00", 0.8))
    assert found.confidence > 0.9
    assert (found.value, found.reader, found.signals[AGREES]) == ("12.00", Reader.COMBINED, 1.0)
    assert "readers_agree" in found.passed


def test_what_they_read_differently_is_doubted_and_the_other_value_shown() -> None:
    found = both(value("12.00", 0.85), value("21.00", 0.9, alternatives=("3.00",)))
    assert (found.value, found.alternatives) == ("12.00", ("21.00", "3.00"))
    assert found.confidence < 0.5
    assert found.signals[AGREES] == -1.0
    assert "readers_agree" in found.failed


def test_the_page_decides_between_them() -> None:
    assert both(value("12.00", grounded=False), value("21.00")).value == "21.00"
    assert both(value("12.00"), value("21.00")).value == "12.00"
    assert both(value("12.00", grounded=False), value("21.00", grounded=False)).value == "12.00"


def test_what_only_one_read_is_kept() -> None:
    ours = both(value("12.00", 0.85), None)
    assert (ours.value, ours.confidence) == ("12.00", 0.85)
    assert AGREES not in ours.signals
    theirs = both(None, value("12.00", 0.85))
    assert theirs.value == "12.00"
    assert theirs.confidence < 0.6
    assert theirs.signals[AGREES] == -1.0


def test_a_document_that_speaks_to_machines_is_read_by_the_reader_that_cannot_be_swayed() -> None:
    model = replace(read(total=value("0.00")), checks=(Check(name=CHECK, passed=False, message="!"),))
    found = combine(model, read(Reader.LOCAL, total=value("1119.00", 0.7)))
    assert found.fields["total"].value == "1119.00"
    assert found.fields["total"].alternatives == ("0.00",)
    assert [check.name for check in found.checks] == [CHECK]


def test_rows_are_compared_one_by_one_where_there_are_as_many() -> None:
    rows = [{"amount": value("5.00")}, {"amount": value("7.00")}]
    other = [{"amount": value("5.00")}, {"amount": value("9.00")}]
    model = replace(read(), rows={"line_items": rows})
    found = combine(model, replace(read(Reader.LOCAL), rows={"line_items": other})).rows["line_items"]
    assert [row["amount"].signals[AGREES] for row in found] == [1.0, -1.0]
    fewer = combine(model, replace(read(Reader.LOCAL), rows={"line_items": other[:1]}))
    assert [row["amount"].value for row in fewer.rows["line_items"]] == ["5.00", "7.00"]
    assert "2 rows" in fewer.notes[0]
    assert combine(read(), replace(read(Reader.LOCAL), rows={"line_items": other})).rows["line_items"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("12.00", "12.0", True),
        ("12.00", "-12.00", False),
        ("12.00", "1200", False),
        ("Muster GmbH", "MUSTER  GMBH", True),
        ("Muster GmbH", "Muster AG", False),
        ("RE-2026/0815", "RE 2026 0815", True),
        ("0815", "815", False),
        ("2026-11-16", "2026-11-17", False),
        ("!!", "??", False),
    ],
)
def test_values_are_the_same_when_they_mean_the_same(one: str, other: str, expected: bool) -> None:
    assert same(one, other) is expected
    assert same(other, one) is expected


def test_signals_of_both_readers_are_kept_for_calibration() -> None:
    found = both(value("1", signals={"grounded": 1.0, "repeats": 2.0}), value("1", signals={"margin": 0.4}))
    assert found.signals == {"grounded": 1.0, "repeats": 2.0, "margin": 0.4, AGREES: 1.0}


def test_what_an_e_invoice_says_is_not_put_to_a_vote() -> None:
    exact = read(Reader.EINVOICE, total=value("12.00"))
    assert combine(read(total=value("13.00")), exact) is exact
