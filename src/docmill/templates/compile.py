"""YAML text into a compiled template: plan, stored document, digest; or every fault at once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from docmill.templates.catalogue import Catalogue
from docmill.templates.document import Document, digest, document_from_plan
from docmill.templates.faults import Faults
from docmill.templates.fields import MAX_TEXT, Fields
from docmill.templates.ordering import Ordering, order
from docmill.templates.plan import Plan, PlanStep
from docmill.templates.source import MappingNode, Node, SequenceNode, load
from docmill.templates.steps import Draft, read_step

MAX_STEPS = 1000
DEFAULT_TASK = "process"
KEYS = ("name", "description", "processable_type", "task_type", "service_name", "compensate", "steps")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 _.-]{0,98}[A-Za-z0-9_.-])?", re.ASCII)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTemplate:
    """What is stored of a template version."""

    plan: Plan
    document: Document
    """Plain JSON-able data with every default written out; `plan_from_document` gives the plan back."""
    digest: str
    """SHA-256 of the canonical document: equal digests, equal templates."""


def compile_template(text: str, *, catalogue: Catalogue, source: str = "<template>") -> CompiledTemplate:
    """Read, check and compile a template; TemplateInvalid lists everything that is wrong with it."""
    faults = Faults()
    root = load(text, faults)
    if root is None:
        faults.raise_if_any(source)
    plan = _compile(root, faults, catalogue) if root is not None else None
    faults.raise_if_any(source)
    assert plan is not None, "no plan without a fault"
    document = document_from_plan(plan)
    return CompiledTemplate(plan=plan, document=document, digest=digest(document))


def _compile(root: Node, faults: Faults, catalogue: Catalogue) -> Plan | None:
    if not isinstance(root, MappingNode):
        if not faults:
            message = "A template is a mapping; begin with 'name: …', 'processable_type: …' and 'steps:'."
            faults.add(root.mark, "", "wrong_type", message)
        return None
    # Keys beginning with x- are the author's own: a place for anchors.
    entries = {key: entry for key, entry in root.entries.items() if not key.startswith("x-")}
    fields = Fields(replace(root, entries=entries), "", faults, known=KEYS, what="a template")
    fields.require("name", "give the template a name")
    fields.require("processable_type", "say what it processes, such as document")
    name = fields.pattern(
        "name", _NAME, "begin with a letter or digit; use up to 100 letters, digits, spaces and _ . -"
    )
    word = "write a word of letters, digits and _ . -"
    processable_type = fields.pattern("processable_type", _WORD, word)
    task_type = fields.pattern("task_type", _WORD, word)
    service = _service(fields, catalogue)
    description = fields.text("description", limit=MAX_TEXT)
    compensate = fields.flag("compensate", False)
    drafts = _drafts(fields, catalogue, service)
    if not drafts:
        return None
    ordering = order(drafts, faults)
    if faults:
        return None
    return Plan(
        name=name or "",
        processable_type=processable_type or "",
        task_type=task_type or DEFAULT_TASK,
        service_name=service,
        steps=_steps(drafts, ordering),
        compensate=compensate,
        description=description or "",
    )


def _service(fields: Fields, catalogue: Catalogue) -> str | None:
    service = fields.pattern("service_name", _WORD, "write a word of letters, digits and _ . -")
    if service is not None and catalogue.processors is not None and service not in catalogue.processors:
        hint = fields.faults.suggest(service, catalogue.processors) or " Register its processors with @processor."
        fields.fault("service_name", "unknown_service", f"There is no service '{service}'.{hint}")
    return service


def _drafts(fields: Fields, catalogue: Catalogue, service: str | None) -> list[Draft]:
    """The steps as written; empty if what follows would make no sense."""
    fields.require("steps", "list the steps, the finish step last")
    node = fields.get("steps")
    items = list(fields.items("steps", what="one '- step_key: …' per step"))
    if isinstance(node, SequenceNode) and not items:
        fields.fault("steps", "no_steps", "There are no steps; write at least one and a finish step.")
    if len(items) > MAX_STEPS:
        message = f"{len(items):,} steps; a template has at most {MAX_STEPS:,}. Split it and submit follow-up jobs."
        fields.fault("steps", "too_many_steps", message)
        return []
    drafts = [read_step(item, place, fields.faults, catalogue, service) for place, (_, item) in enumerate(items)]
    found = [draft for draft in drafts if draft is not None]
    # Places must match indexes; a step that is no mapping leaves nothing to relate the others to.
    return found if len(found) == len(drafts) else []


def _steps(drafts: Sequence[Draft], ordering: Ordering) -> tuple[PlanStep, ...]:
    position_of = {place: position for position, place in enumerate(ordering.running)}
    steps = []
    for position, place in enumerate(ordering.running):
        draft = drafts[place]
        settings: dict[str, Any] = dict(draft.settings)
        steps.append(
            PlanStep(
                position=position,
                step_key=draft.key or "",
                execution_group=ordering.groups[place],
                order=draft.order,
                depends_on=tuple(sorted(position_of[need] for need in ordering.dependencies[place])),
                **settings,
            )
        )
    return tuple(steps)
