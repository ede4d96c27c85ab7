"""Confidence: what it may and may not say, and that fitting it gives what it promises."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.documents.reading import Box
from docmill.extraction.calibrating import Example, fit, predict
from docmill.extraction.combining import AGREEMENT
from docmill.extraction.confidence import (
    ANY,
    FAILED_CAP,
    UNGROUNDED_CAP,
    Calibration,
    Formula,
    calibrated,
    confidence,
    document_confidence,
    signals_of,
)
from docmill.extraction.ground_truth import Labelled
from docmill.extraction.judging import examples_of
from docmill.extraction.models import Models
from docmill.extraction.reliability import auroc, calibration_error
from docmill.extraction.result import Evidence, Extraction, FieldValue, Reader
from docmill.extraction.schema import load_schema

HERE = (Evidence(page=1, box=Box(0.1, 0.1, 0.2, 0.2)),)
SURE = Calibration(formulas={ANY: Formula(bias=6.0, weights={})})


def value(**more: object) -> FieldValue:
    return replace(FieldValue(value="5.00", raw="5,00", confidence=0.0, evidence=HERE), **more)  # type: ignore[arg-type]


def stated(found: FieldValue, calibration: Calibration = SURE) -> float:
    return confidence(found, schema="invoice", name="total", calibration=calibration)


def test_a_value_that_is_not_on_the_page_cannot_be_sure() -> None:
    assert stated(value()) > 0.99
    assert stated(value(evidence=())) == UNGROUNDED_CAP


def test_a_value_that_fails_a_check_of_its_own_cannot_be_sure() -> None:
    assert stated(value(failed=("pattern",))) < 0.7


def test_the_xml_of_an_e_invoice_needs_no_page() -> None:
    assert stated(value(reader=Reader.EINVOICE, evidence=()), Calibration()) > 0.99


def test_an_e_invoice_that_its_page_contradicts_is_doubted() -> None:
    plain = stated(value(reader=Reader.EINVOICE), Calibration())
    assert stated(value(reader=Reader.EINVOICE, failed=("page_agrees",)), Calibration()) < plain - 0.3


@pytest.mark.parametrize("reader", [Reader.MODEL, Reader.COMBINED])
def test_a_model_is_believed_more_when_the_local_reader_agrees_and_less_when_it_made_the_value_up(
    reader: Reader,
) -> None:
    alone = stated(value(reader=reader))
    agreed = stated(value(reader=reader, signals={"agrees": 1.0}))
    made_up = stated(value(reader=reader, evidence=()))
    assert made_up <= UNGROUNDED_CAP < alone < agreed


def test_the_score_of_the_ocr_alone_changes_nothing_by_default() -> None:
    assert stated(value(signals={"ocr": 0.99})) == stated(value(signals={"ocr": 0.3}))


@given(st.dictionaries(st.sampled_from(["score", "margin", "repeats"]), st.floats(allow_nan=True)))
def test_whatever_the_signals_it_is_a_probability(signals: dict[str, float]) -> None:
    names = ("score", "margin", "repeats")
    formula = Formula(
        bias=0.0, weights=dict.fromkeys(names, 3.0), mean=dict.fromkeys(names, 0.5), scale=dict.fromkeys(names, 0.1)
    )
    assert 0 <= stated(value(signals=signals), Calibration(formulas={ANY: formula})) <= 1


def test_a_value_that_is_hardly_better_than_none_stands_badly_however_far_the_others_are() -> None:
    alone = signals_of(value(signals={"score": 0.4, "margin": 0.4, "probability": 0.6}))
    best = signals_of(value(signals={"score": 7.0, "margin": 0.4, "probability": 0.6}))
    assert (alone["standing"], best["standing"]) == (0.4, 2.0)
    assert "standing" not in signals_of(value(signals={"score": 0.9}))


def test_a_value_is_contested_where_another_comes_close_and_no_label_decides() -> None:
    def contested(probability: float, label: float) -> float:
        return signals_of(value(signals={"score": 3.0, "probability": probability, "label": label}))["contested"]

    assert contested(0.5, 0.0) > contested(0.7, 0.0) > contested(0.99, 0.0) == 0.0
    assert contested(0.5, 0.0) > contested(0.5, 0.5) > contested(0.5, 1.0) == 0.0


def test_the_shipped_confidence_trusts_an_unlabelled_date_with_a_rival_less_than_one_without() -> None:
    shipped = Models().calibration

    def sure(**signals: float) -> float:
        told = value(signals={"repeats": 1.0, **signals})
        return confidence(told, schema="invoice", name="issue_date", calibration=shipped)

    labelled = sure(score=5.2, probability=0.99, label=1.0)
    alone = sure(score=3.0, probability=0.95, label=0.0)
    rival = sure(score=3.0, probability=0.5, label=0.0)
    assert labelled > alone > rival
    assert rival < 0.9


def test_more_is_doubted_of_a_schema_of_which_few_documents_are_labelled() -> None:
    for schema, name, doubt in (("receipt", "company", 0.0), ("invoice", "seller_name", 0.06)):
        fields = {name: value(value="Mill Ltd")}
        found = Extraction(schema=schema, schema_version="1", reader=Reader.LOCAL, document_type=schema, fields=fields)
        labelled = Labelled(file="a.pdf", fields={name: "Mill Ltd"})
        (example,) = examples_of(labelled, found, load_schema(schema), group="mill")
        assert (example.right, example.doubt) == (True, doubt)


def test_the_most_particular_formula_counts() -> None:
    low, middle, high = (Formula(bias=bias, weights={}) for bias in (-2.0, 0.0, 2.0))
    calibration = Calibration(formulas={ANY: low, "invoice.*": middle, "invoice.total": high})
    assert calibration.formula("invoice", "total") is high
    assert calibration.formula("invoice", "tax") is middle
    assert calibration.formula("receipt", "total") is low


def test_a_document_is_as_sure_as_all_its_required_fields_together() -> None:
    fields = {"a": value(confidence=0.9), "b": value(confidence=0.8), "c": value(confidence=0.1)}
    assert document_confidence(fields, {}, required=["a", "b"]) == pytest.approx(0.72)
    assert document_confidence(fields, {}, required=["a", "missing"]) < 0.1
    assert document_confidence(fields, {"rows": [{}]}, required=["a", "rows"]) == pytest.approx(0.9)
    assert document_confidence({}, {}, required=[]) == 0.0


def test_cells_of_tables_are_calibrated_too() -> None:
    extraction = Extraction(
        schema="invoice",
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="invoice",
        rows={"line_items": [{"amount": value()}]},
    )
    (row,) = calibrated(extraction, required=(), calibration=SURE).rows["line_items"]
    assert row["amount"].confidence > 0.99


def test_a_cell_of_a_column_whose_sum_breaks_a_rule_cannot_be_sure_and_a_field_is_weighed() -> None:
    broken = value(failed=("lines_add_up",))
    extraction = Extraction(
        schema="invoice",
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="invoice",
        fields={"subtotal": broken},
        rows={"line_items": [{"amount": broken, "quantity": value(failed=(AGREEMENT,))}]},
    )
    found = calibrated(extraction, required=(), calibration=SURE)
    (row,) = found.rows["line_items"]
    assert row["amount"].confidence == FAILED_CAP
    assert min(row["quantity"].confidence, found.fields["subtotal"].confidence) > 0.99


def examples(count: int, seed: int = 7) -> list[Example]:
    """Values whose chance of being right is known: one signal speaks for them, the other means nothing."""
    random = Random(seed)
    made = []
    for number in range(count):
        useful, noise = random.gauss(0, 1), random.gauss(0, 1)
        chance = 1 / (1 + 2.718 ** -(0.8 + 2.0 * useful))
        signals = {"odds": useful, "label": noise} if number % 7 else {"odds": useful}
        field = ("total", "date")[number % 2]
        made.append(
            Example(
                document=f"d{number // 2}",
                group=f"g{number // 4}",
                schema="receipt",
                field=field,
                signals=signals,
                right=random.random() < chance,
                required=True,
            )
        )
    return made


def held_out(known: list[Example], folds: int = 5) -> list[tuple[float, bool]]:
    """The outcomes that each example has under a calibration fitted on the groups of the other folds."""
    names = sorted({example.group for example in known})
    place = {name: number % folds for number, name in enumerate(names)}
    outcomes: list[tuple[float, bool]] = []
    for fold in range(folds):
        fitted = fit([example for example in known if place[example.group] != fold])
        outcomes += [(predict(fitted, example), example.right) for example in known if place[example.group] == fold]
    return outcomes


def test_what_is_fitted_ranks_and_is_calibrated_on_documents_it_has_not_seen() -> None:
    outcomes = held_out(examples(800))
    assert (auroc(outcomes) or 0) > 0.85
    assert (calibration_error(outcomes) or 1) < 0.05


def test_fitting_is_deterministic_and_survives_being_written_down() -> None:
    one, two = fit(examples(200)), fit(examples(200))
    assert one.as_json() == two.as_json()
    again = Calibration.from_json(one.as_json())
    for example in examples(20, seed=9):
        assert predict(again, example) == pytest.approx(predict(one, example), abs=1e-4)


def test_a_field_without_a_mistake_is_not_taken_to_make_none() -> None:
    some = examples(400)
    faultless = [replace(each, right=True) if each.field == "date" else each for each in some]
    fitted = fit(faultless)
    unsure = next(each for each in faultless if each.field == "date" and each.signals["odds"] < -2)
    assert predict(fitted, unsure) < 0.95


def test_a_few_examples_move_a_prior_only_a_little() -> None:
    prior = fit(examples(600))
    contrary = [replace(example, right=not example.right) for example in examples(8, seed=3)]
    moved = fit(contrary, prior)
    probe = examples(50, seed=5)
    assert max(abs(predict(moved, each) - predict(prior, each)) for each in probe) < 0.35


def test_a_calibration_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        Calibration.from_json({**SURE.as_json(), "version": 99})
