"""Templates that come with Docmill are valid, named after their file, and say what they need."""

from dataclasses import replace

import pytest

from docmill.bootstrap import catalogue_of, load_registry
from docmill.model.errors import NotFound
from docmill.model.statuses import StepKind
from docmill.templates.catalogue import Catalogue, StepType
from docmill.templates.compile import CompiledTemplate, compile_template
from docmill.templates.export import export_template
from docmill.templates.shipped import missing, shipped_names, shipped_text

KNOWN_LATER = {
    "ai.generate": StepType(kind=StepKind.AI),
    "external.call": StepType(kind=StepKind.EXTERNAL),
    "human.task": StepType(kind=StepKind.HUMAN),
}
METHODS = {
    *("processOcrText", "processDocumentParsing", "processOcrExtraction", "processProjectRelationshipMatching"),
    *("processBudgetItemMatching", "processJustificationAnalysis", "finishTransactionProcessing"),
}
INSTALLED = catalogue_of(load_registry(()))
COMPLETE = replace(
    INSTALLED,
    step_types={**KNOWN_LATER, **(INSTALLED.step_types or {})},
    processors={**(INSTALLED.processors or {}), "transaction": frozenset(METHODS)},
)


def shipped(name: str) -> CompiledTemplate:
    return compile_template(shipped_text(name), catalogue=COMPLETE, source=name)


def test_the_transaction_import_is_on_offer() -> None:
    assert "transaction-import" in shipped_names()


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_template_is_valid_described_and_named_after_its_file(name: str) -> None:
    plan = shipped(name).plan
    assert plan.name == name
    assert plan.description
    assert missing(plan, COMPLETE) == ()


@pytest.mark.parametrize("name", shipped_names())
def test_the_export_of_a_shipped_template_compiles_to_the_same_digest(name: str) -> None:
    first = shipped(name)
    assert compile_template(export_template(first.plan, catalogue=COMPLETE), catalogue=COMPLETE).digest == first.digest


def test_the_transaction_import_has_the_structure_of_the_specification() -> None:
    plan = shipped("transaction-import").plan
    groups = [[plan.steps[position].step_key for position in group] for group in plan.groups]
    assert groups == [
        ["ocr"],
        ["document_parsing"],
        ["data_extraction"],
        ["total_check", "budget_linking", "vendor_matching"],
        ["justification_analysis"],
        ["finish_processing"],
    ]
    for key in groups[3]:
        assert plan.step(key).optional
        assert plan.step(key).depends_on == (plan.positions["data_extraction"],)
    assert plan.step("finish_processing").processor[0].method == "finishTransactionProcessing"


def test_what_an_installation_lacks_is_named_once() -> None:
    plan = shipped("transaction-import").plan
    nothing = Catalogue(step_types={}, processors={}, prompts=frozenset())
    lacking = missing(plan, nothing)
    assert lacking[:3] == ("step type ai.generate", "step type rule.check", "service transaction")
    assert "prompt TransactionOCR" in lacking
    assert len(set(lacking)) == len(lacking)
    half = replace(COMPLETE, processors={"transaction": frozenset(METHODS - {"processOcrText"})})
    assert missing(plan, half) == ("processor transaction.processOcrText",)
    assert missing(plan, Catalogue.permissive()) == ()


def test_a_template_that_is_not_shipped_is_not_found() -> None:
    with pytest.raises(NotFound, match="Did you mean 'transaction-import'"):
        shipped_text("transaction_import")
    with pytest.raises(NotFound, match="templates shipped"):
        shipped_text("../../secret")
