"""How extractions are counted against labels."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from docmill.extraction.ground_truth import Labelled
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.extraction.schema import FieldSchema, load_schema
from docmill.extraction.scoring import DocumentScore, compare, summarise
from docmill.extraction.scoring import score_document as scored
from docmill.extraction.values import FieldType


def found(schema: str = "invoice", rows: int = 0, **values: str | tuple[str, float]) -> Extraction:
    pairs = {name: value if isinstance(value, tuple) else (value, 0.9) for name, value in values.items()}
    fields = {name: FieldValue(value=value, raw=value, confidence=sure) for name, (value, sure) in pairs.items()}
    items: list[Mapping[str, FieldValue]] = [
        {"description": FieldValue(value="x", raw="x", confidence=0.5)} for _ in range(rows)
    ]
    return Extraction(
        schema=schema,
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="invoice",
        fields=fields,
        rows={"line_items": items},
    )


def score_document(
    labelled: Labelled, extraction: Extraction | None, schema: str = "invoice", error: tuple[str, str] | None = None
) -> DocumentScore:
    known: FieldSchema = load_schema(schema)
    return scored(labelled, extraction, known if schema != "invoice" else _unrequiring(known), error=error)


def _unrequiring(schema: FieldSchema) -> FieldSchema:
    return replace(schema, fields={name: replace(field, required=False) for name, field in schema.fields.items()})


def label(file: str = "a.pdf", layout: str | None = None, **fields: str | None) -> Labelled:
    return Labelled(file=file, fields=fields, layout=layout)


@pytest.mark.parametrize(
    ("kind", "expected", "value", "exact", "loose"),
    [
        (FieldType.AMOUNT, "RM 22.90", "22.90", True, True),
        (FieldType.AMOUNT, "1,234.5", "1234.50", True, True),
        (FieldType.AMOUNT, "-1.73", "1.73", False, False),
        (FieldType.DATE, "14/JUN/2017", "2017-06-14", True, True),
        (FieldType.DATE, "05/03/2018", "2018-03-05", True, True),
        (FieldType.DATE, "2018-03-05", "2018-05-03", False, False),
        (FieldType.COUNT, "3", "3", True, True),
        (FieldType.TEXT, "Bei  Spiel\nGmbH", "BEI SPIEL GmbH", True, True),
        (FieldType.TEXT, "Mr. D.I.Y. (M) Sdn Bhd", "MR D.I.Y.(M) SDN BHD", False, True),
        (FieldType.TEXT, "ABC", "ABD", False, False),
        (FieldType.TEXT, "--", "..", False, False),
    ],
)
def test_values_are_compared_as_what_they_are(
    kind: FieldType, expected: str, value: str, exact: bool, loose: bool
) -> None:
    assert compare(expected, value, kind) == (exact, loose)


@pytest.mark.parametrize(
    ("expected", "value", "same"),
    [
        ("99.995", "99.9950", True),
        ("1296.29500", "1296.295", True),
        ("5.95", "5.95000", True),
        ("1000.000", "1000.00", True),
        ("1", "1.000", True),
        ("1.000", "1.00", True),
        ("1000", "1.000", False),
        ("1296295", "1296.295", False),
        ("1.000,00", "1000.00", True),
        ("1,000", "1000.00", True),
    ],
)
def test_amounts_are_compared_by_value_whatever_zeros_end_them(expected: str, value: str, same: bool) -> None:
    assert compare(expected, value, FieldType.AMOUNT) == (same, same)


def test_rates_and_counts_are_compared_by_value_too() -> None:
    assert compare("19.00000", "19", FieldType.PERCENT) == (True, True)
    assert compare("19,5 %", "19.5", FieldType.PERCENT) == (True, True)
    assert compare("3.0", "3", FieldType.COUNT) == (True, True)


def test_a_label_of_nothing_is_right_when_nothing_was_found() -> None:
    assert compare(None, None, FieldType.DATE) == (True, True)
    assert compare(None, "2020-01-01", FieldType.DATE) == (False, False)
    assert compare("2020-01-01", None, FieldType.DATE) == (False, False)


def test_names_of_labels_map_onto_the_fields_of_the_schema() -> None:
    score = score_document(
        label(seller_name="ACME", issue_date="1/2/2020", total="5.00"),
        found("receipt", company="Acme", date="2020-02-01", total="5.00"),
        "receipt",
    )
    assert all(field.exact for field in score.fields)


def test_the_line_count_is_that_of_the_rows_and_has_no_confidence() -> None:
    score = score_document(label(line_count="2"), found(rows=2))
    assert [(field.exact, field.confidence) for field in score.fields] == [(True, None)]


def test_f1_weighs_what_was_found_against_what_is_there() -> None:
    # Three labels, two found of which one right; a value where there is none counts against precision.
    one = score_document(
        label(total="5.00", tax="1.00", seller_name="A", due_date=None),
        found(total="5.00", tax="2.00", due_date="2020-01-01"),
    )
    assert summarise([one]).exact_f1 == pytest.approx(2 * 1 / (3 + 3))


def test_micro_is_the_share_of_right_labels_and_visible_only_those_marked() -> None:
    marked = Labelled(
        file="a", fields={"total": "5.00", "tax": "1.00", "due_date": None}, visible={"total": True, "tax": False}
    )
    summary = summarise([score_document(marked, found(total="5.00"))])
    assert summary.micro == pytest.approx(2 / 3)
    assert summary.micro_visible == 1.0


def test_a_document_that_could_not_be_read_counts_with_all_its_labels() -> None:
    good = score_document(label("a", total="5.00"), found(total="5.00"))
    bad = score_document(label("b", total="5.00"), None, error=("encrypted", "…"))
    summary = summarise([good, bad])
    assert (summary.documents, summary.failed, summary.micro) == (2, 1, 0.5)
    assert summary.straight_through_99 == 0.5


def test_layouts_are_also_counted_apart() -> None:
    scores = [
        score_document(label("a", "natural", total="5.00"), found(total="5.00")),
        score_document(label("b", "scanned", total="5.00"), found(total="6.00")),
    ]
    assert {name: part.micro for name, part in summarise(scores).by_layout.items()} == {"natural": 1.0, "scanned": 0.0}


def test_what_is_required_and_missing_keeps_a_document_from_passing() -> None:
    score = scored(label(total="5.00"), found(total="5.00"), load_schema("invoice"))
    assert summarise([score]).straight_through_99 == 0.0


def test_the_answer_has_the_keys_that_programs_rely_on() -> None:
    answer = summarise([score_document(label(total="5.00"), found(total="5.00"))]).as_json()
    wanted = "documents exact_f1 loose_mean micro micro_visible by_field by_layout auroc ece straight_through_99"
    assert set(wanted.split()) <= set(answer)
    assert answer["by_field"] == {"total": {"n": 1, "exact": 1.0, "loose": 1.0}}
