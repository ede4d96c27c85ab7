"""The stored form of a plan: plain JSON-able data with every default written out.

A job pinned to an old version loads its plan from here, with no catalogue and no validation: what was valid when it was
stored stays runnable when a step type is renamed or a default changes. Readers of old documents rely on these names.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from docmill.model.errors import InvalidInput
from docmill.model.statuses import FailureAction, StepKind
from docmill.templates.plan import ALL_PREVIOUS, ForEach, Plan, PlanStep, ProcessorChoice, RetryAction

FORMAT = 2
"""The newest. A document carries the oldest that can say what it says: older releases read what they can run."""
Document = dict[str, Any]
_NEWER = {"answer_within", "executor", "for_each"}
"""Keys of a step that the first format did not have; they are written only where they are used."""


def document_from_plan(plan: Plan) -> Document:
    """The plan as plain data."""
    newer: Document = {"undoes": True} if plan.undoes else {}
    steps = [_step_document(plan, step) for step in plan.steps]
    return {
        "format": 2 if newer or any(_NEWER & step.keys() for step in steps) else 1,
        "name": plan.name,
        "description": plan.description,
        "processable_type": plan.processable_type,
        "task_type": plan.task_type,
        "service_name": plan.service_name,
        "compensate": plan.compensate,
        "steps": steps,
        **newer,
    }


def _step_document(plan: Plan, step: PlanStep) -> Document:
    newer = {"answer_within": step.answer_within, "executor": step.executor}
    return {
        "step_key": step.step_key,
        "display_name": step.display_name,
        "kind": step.kind.value,
        "type": step.step_type,
        "pool": step.pool,
        "group": step.execution_group,
        "order": step.order,
        "depends_on": ALL_PREVIOUS if step.finish else [plan.steps[need].step_key for need in step.depends_on],
        "condition": step.condition,
        "optional": step.optional,
        "timeout": step.timeout,
        "max_attempts": step.max_attempts,
        "backoff": step.backoff,
        "max_crashes": step.max_crashes,
        "on_failure_action": step.on_failure.value,
        "on_retry_action": {
            "switch_models": list(step.on_retry.switch_models),
            "raise_max_tokens_by": step.on_retry.raise_max_tokens_by,
        },
        "prompt": step.prompt,
        "model_config": dict(step.model),
        "output_schema": None if step.output_schema is None else dict(step.output_schema),
        "processor_method": [{"when": choice.when, "method": choice.method} for choice in step.processor],
        "compensation_method": step.compensation,
        "recovery": step.recovery,
        "input": dict(step.input),
        "not_before": step.not_before,
        "delay": step.delay,
        "finish": step.finish,
        **{key: value for key, value in newer.items() if value is not None},
        **_for_each_document(step.for_each),
    }


def _for_each_document(for_each: ForEach | None) -> Document:
    if for_each is None:
        return {}
    return {"for_each": for_each.items, "parallel": for_each.parallel, "items_may_fail": for_each.may_fail}


def digest(document: Mapping[str, object]) -> str:
    """SHA-256 over the document written one way: sorted keys, no spaces, ASCII."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def plan_from_document(document: Mapping[str, Any]) -> Plan:
    """The plan a stored document stands for; InvalidInput if a newer Docmill wrote it."""
    if document.get("format") not in range(1, FORMAT + 1):
        raise InvalidInput(
            f"Stored template has format {document.get('format')!r}; this Docmill reads up to {FORMAT}. "
            "Upgrade Docmill.",
            format=document.get("format"),
        )
    steps = document["steps"]
    positions = {step["step_key"]: position for position, step in enumerate(steps)}
    return Plan(
        name=document["name"],
        processable_type=document["processable_type"],
        task_type=document["task_type"],
        service_name=document["service_name"],
        steps=tuple(_plan_step(step, position, positions) for position, step in enumerate(steps)),
        compensate=document["compensate"],
        description=document["description"],
        undoes=document.get("undoes", False),
    )


def _plan_step(step: Mapping[str, Any], position: int, positions: Mapping[str, int]) -> PlanStep:
    needs = step["depends_on"]
    retry = step["on_retry_action"]
    return PlanStep(
        position=position,
        step_key=step["step_key"],
        display_name=step["display_name"],
        kind=StepKind(step["kind"]),
        step_type=step["type"],
        pool=step["pool"],
        execution_group=step["group"],
        order=step["order"],
        depends_on=tuple(range(position)) if needs == ALL_PREVIOUS else tuple(positions[need] for need in needs),
        condition=step["condition"],
        optional=step["optional"],
        timeout=float(step["timeout"]),
        max_attempts=step["max_attempts"],
        backoff=float(step["backoff"]),
        max_crashes=step["max_crashes"],
        on_failure=FailureAction(step["on_failure_action"]),
        on_retry=RetryAction(
            switch_models=tuple(retry["switch_models"]), raise_max_tokens_by=retry["raise_max_tokens_by"]
        ),
        prompt=step["prompt"],
        model=step["model_config"],
        output_schema=step["output_schema"],
        processor=tuple(ProcessorChoice(when=c["when"], method=c["method"]) for c in step["processor_method"]),
        compensation=step["compensation_method"],
        recovery=step["recovery"],
        input=step["input"],
        not_before=step["not_before"],
        delay=float(step["delay"]),
        answer_within=step.get("answer_within"),
        finish=step["finish"],
        for_each=_for_each(step),
        executor=step.get("executor"),
    )


def _for_each(step: Mapping[str, Any]) -> ForEach | None:
    if "for_each" not in step:
        return None
    return ForEach(items=step["for_each"], parallel=step["parallel"], may_fail=step["items_may_fail"])
