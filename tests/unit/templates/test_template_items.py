"""`for_each`: what a template says about the items of a list, checked, stored and drawn."""

import pytest

from docmill.model.statuses import StepKind
from docmill.templates.catalogue import Catalogue, StepType
from docmill.templates.compile import CompiledTemplate, compile_template
from docmill.templates.describe import draw
from docmill.templates.document import plan_from_document
from docmill.templates.faults import TemplateInvalid
from docmill.templates.plan import ForEach

CATALOGUE = Catalogue(
    step_types={"Read": StepType(kind=StepKind.RULE), "ReadOne": StepType(kind=StepKind.RULE, takes_item=True)}
)


def compiled(fields: str, *, finish: str = "") -> CompiledTemplate:
    text = f"""
name: many
processable_type: document
steps:
  - {{step_key: read, {fields}}}
  - {{step_key: finish, type: FinishProcessing{finish}}}
"""
    return compile_template(text, catalogue=CATALOGUE, source="many.yaml")


def faults(fields: str, *, finish: str = "") -> list[tuple[str, str]]:
    with pytest.raises(TemplateInvalid) as caught:
        compiled(fields, finish=finish)
    return [(fault.path, fault.code) for fault in caught.value.faults]


def test_a_list_ten_at_a_time_unless_said_otherwise() -> None:
    assert compiled("type: ReadOne, for_each: metadata.documents").plan.steps[0].for_each == ForEach(
        items="metadata.documents", parallel=10, may_fail=False
    )
    written = "type: Read, for_each: entity.pages, parallel: 3, items_may_fail: true"
    assert compiled(written).plan.steps[0].for_each == ForEach(items="entity.pages", parallel=3, may_fail=True)


def test_it_comes_back_from_the_stored_form_which_older_releases_refuse() -> None:
    template = compiled("type: Read, for_each: metadata.documents, parallel: 3")
    assert template.document["format"] == 2
    assert plan_from_document(template.document) == template.plan
    assert compiled("type: Read").document["format"] == 1
    assert "for_each" not in compiled("type: Read").document["steps"][0]


def test_the_drawing_tells_what_a_step_runs_for_and_how_many_at_a_time() -> None:
    drawing = draw(compiled("type: Read, for_each: metadata.documents, items_may_fail: true").plan)
    assert "for each   metadata.documents, 10 at a time, items may fail" in drawing


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ("type: ReadOne", ("steps[0].type", "for_each_missing")),
        ("type: Read, parallel: 3", ("steps[0].parallel", "for_each_missing")),
        ("type: Read, items_may_fail: true", ("steps[0].items_may_fail", "for_each_missing")),
        ("type: Read, for_each: 'metadata.'", ("steps[0].for_each", "bad_expression")),
        ("type: Read, for_each: documents", ("steps[0].for_each", "bad_expression")),
        ("type: Read, for_each: [a, b]", ("steps[0].for_each", "wrong_type")),
        ("type: Read, for_each: results.later.x", ("steps[0].for_each", "unknown_result")),
        ("type: Read, for_each: metadata.d, parallel: 0", ("steps[0].parallel", "bad_number")),
        ("type: Read, for_each: metadata.d, items_may_fail: 3", ("steps[0].items_may_fail", "wrong_type")),
    ],
)
def test_a_mistake_is_a_fault_at_its_place(fields: str, fault: tuple[str, str]) -> None:
    assert faults(fields) == [fault]


def test_the_finish_step_runs_once() -> None:
    assert faults("type: Read", finish=", for_each: metadata.d") == [("steps[1].for_each", "finish_for_each")]
