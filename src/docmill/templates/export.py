"""A plan as the YAML a person would have written: what is a default is left out, the rest stands in a fixed order.

Compiled again (with the same step types installed) the text gives the same plan and the same digest. Comments, anchors
and `x-` keys are not part of a plan and do not come back.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from docmill.model.statuses import FailureAction
from docmill.templates import conditions, times
from docmill.templates.catalogue import FINISH_TYPE, Catalogue
from docmill.templates.compile import DEFAULT_TASK
from docmill.templates.plan import ALL_PREVIOUS, ForEach, Plan, PlanStep, ProcessorChoice, RetryAction
from docmill.templates.source import plain_value
from docmill.templates.steps import display_name
from docmill.templates.syntax import Literal
from docmill.templates.yaml_text import to_yaml

Entries = dict[str, object]

_DEFAULTS: Mapping[str, object] = {field.name: field.default for field in fields(PlanStep)}


def export_template(plan: Plan, *, catalogue: Catalogue) -> str:
    """The template file of this plan. `catalogue` tells which kinds a reader would know by themselves."""
    head: Entries = {"name": plan.name}
    if plan.description:
        head["description"] = plan.description
    head["processable_type"] = plan.processable_type
    if plan.task_type != DEFAULT_TASK:
        head["task_type"] = plan.task_type
    if plan.service_name is not None:
        head["service_name"] = plan.service_name
    if plan.compensate:
        head["compensate"] = True
    steps = [_item(to_yaml(_step(plan, step, catalogue))) for step in plan.steps]
    return to_yaml(head) + "\nsteps:\n" + "\n".join(steps)


def _item(text: str) -> str:
    """A mapping's text as an element of the list of steps. Empty lines stay empty."""
    first, *rest = text.split("\n")
    return "\n".join([f"  - {first}", *(f"    {line}" if line else "" for line in rest)])


def _step(plan: Plan, step: PlanStep, catalogue: Catalogue) -> Entries:
    entries: Entries = {"step_key": step.step_key}
    if step.display_name != display_name(step.step_key):
        entries["display_name"] = step.display_name
    entries["type"] = step.step_type
    if not _is_usual_kind(step, catalogue):
        entries["kind"] = step.kind.value
    if step.pool != step.kind.value:
        entries["pool"] = step.pool
    entries |= _place(plan, step)
    if step.condition is not None:
        entries["condition"] = _expression(step.condition)
    if step.not_before is not None:
        entries["not_before"] = _not_before(step.not_before)
    entries |= _lengths(step, "delay", "timeout", "answer_within")
    entries |= _trouble(step)
    entries |= _work(step)
    return entries


def _is_usual_kind(step: PlanStep, catalogue: Catalogue) -> bool:
    """Whether whoever reads the file knows the kind from the type; of an unknown type nobody does."""
    known = step.step_type == FINISH_TYPE or step.step_type in (catalogue.step_types or {})
    return known and catalogue.kind_of(step.step_type) is step.kind


def _place(plan: Plan, step: PlanStep) -> Entries:
    """`group`, `order` and `depends_on`, as far as they do not follow from what stands above."""
    entries: Entries = {}
    above = plan.steps[: step.position]
    earlier = [other.position for other in plan.steps if other.execution_group < step.execution_group]
    after_all = step.finish or (len(earlier) > 1 and list(step.depends_on) == earlier)
    needs = above if after_all else [plan.steps[need] for need in step.depends_on]
    if step.execution_group != 1 + max((need.execution_group for need in needs), default=0):
        entries["group"] = step.execution_group
    if step.order:
        entries["order"] = step.order
    if after_all and not step.finish:
        entries["depends_on"] = ALL_PREVIOUS
    elif not step.finish and step.depends_on:
        entries["depends_on"] = [plan.steps[need].step_key for need in step.depends_on]
    return entries


def _trouble(step: PlanStep) -> Entries:
    """What happens when it fails."""
    entries: Entries = {"optional": True} if step.optional else {}
    usual = FailureAction.SKIP_DEPENDENTS if step.optional else FailureAction.FAIL_JOB
    if step.on_failure is not usual and not step.finish:
        entries["on_failure_action"] = step.on_failure.value
    if step.max_attempts != _DEFAULTS["max_attempts"]:
        entries["max_attempts"] = step.max_attempts
    entries |= _lengths(step, "backoff")
    if step.max_crashes != _DEFAULTS["max_crashes"]:
        entries["max_crashes"] = step.max_crashes
    if step.on_retry != RetryAction():
        entries["on_retry_action"] = _retry(step.on_retry)
    if step.recovery is not None:
        entries["recovery"] = step.recovery
    return entries


def _work(step: PlanStep) -> Entries:
    """What it works with, and what becomes of its result."""
    entries: Entries = {}
    if step.executor is not None:
        entries["executor"] = step.executor
    if step.for_each is not None:
        entries |= _items(step.for_each)
    if step.prompt is not None:
        entries["prompt"] = step.prompt
    if step.model:
        entries["model_config"] = dict(step.model)
    if step.input:
        entries["input"] = {name: _expression(text) for name, text in step.input.items()}
    if step.output_schema is not None:
        entries["output_schema"] = dict(step.output_schema)
    if step.processor:
        entries["processor_method"] = _processor(step.processor)
    if step.compensation is not None:
        entries["compensation_method"] = step.compensation
    return entries


def _items(for_each: ForEach) -> Entries:
    usual = ForEach(items=for_each.items)
    entries: Entries = {"for_each": _expression(for_each.items)}
    if for_each.parallel != usual.parallel:
        entries["parallel"] = for_each.parallel
    if for_each.may_fail:
        entries["items_may_fail"] = True
    return entries


def _lengths(step: PlanStep, *names: str) -> Entries:
    found = {name: getattr(step, name) for name in names if getattr(step, name) != _DEFAULTS[name]}
    return {name: _length(value) for name, value in found.items()}


def _length(seconds: float) -> str | float:
    """`5m` rather than 300, where that is exactly the same."""
    text = times.written(seconds)
    return text if times.seconds(text) == seconds else seconds


def _retry(action: RetryAction) -> Entries:
    entries: Entries = {}
    if action.switch_models:
        entries["switch_models"] = list(action.switch_models)
    if action.raise_max_tokens_by:
        entries["raise_max_tokens_by"] = action.raise_max_tokens_by
    return entries


def _processor(choices: tuple[ProcessorChoice, ...]) -> object:
    if len(choices) == 1 and choices[0].when is None:
        return choices[0].method
    return [
        ({} if choice.when is None else {"when": _expression(choice.when)}) | {"method": choice.method}
        for choice in choices
    ]


def _expression(text: str) -> Any:
    """A number, true or false stands for itself, without quotes, where that means the same expression."""
    value = plain_value(text)
    return value if value is not None and conditions.literal(value) == text else text


def _not_before(text: str) -> str:
    """The instant itself if the expression is nothing else."""
    node = conditions.parse(text, names=conditions.STEP_NAMES).node
    if isinstance(node, Literal) and isinstance(node.value, str):
        at = times.instant(node.value)
        if at is not None and conditions.literal(at.isoformat()) == text:
            return node.value
    return text
