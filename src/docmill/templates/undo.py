"""The plan that undoes what a job of another plan has done. Pure.

Each step that names a compensation method becomes a step here, in reverse and one after the other; it has nothing to
compute, because its result is that of the step it undoes, and its processor is the compensation method.
"""

from docmill.model.statuses import StepKind
from docmill.templates.catalogue import FINISH_TYPE
from docmill.templates.plan import Plan, PlanStep, ProcessorChoice

UNDO_TYPE = "Undo"


def undo_positions(plan: Plan) -> dict[int, int]:
    """Position of a step that can be undone -> position of its undoing."""
    undoable = [step.position for step in reversed(plan.steps) if step.compensation is not None]
    return {position: index for index, position in enumerate(undoable)}


def undo_plan(plan: Plan) -> Plan:
    """What runs after a job of this plan failed or was cancelled."""
    steps = [_undo_step(plan.steps[position], index) for position, index in undo_positions(plan).items()]
    finish = PlanStep(
        position=len(steps),
        step_key="undone",
        display_name="Undone",
        kind=StepKind.SYSTEM,
        step_type=FINISH_TYPE,
        pool=StepKind.SYSTEM.value,
        execution_group=len(steps) + 1,
        order=0,
        depends_on=tuple(range(len(steps))),
        max_crashes=plan.steps[plan.finish].max_crashes,
        finish=True,
    )
    return Plan(
        name=f"{plan.name} (undo)",
        processable_type=plan.processable_type,
        task_type=plan.task_type,
        service_name=plan.service_name,
        steps=(*steps, finish),
        description=f"Undoes what a job of {plan.name} has done, in reverse.",
        undoes=True,
    )


def _undo_step(step: PlanStep, position: int) -> PlanStep:
    assert step.compensation is not None
    return PlanStep(
        position=position,
        step_key=step.step_key if step.step_key != "undone" else "undone_step",
        display_name=f"Undo {step.display_name}",
        kind=StepKind.SYSTEM,
        step_type=UNDO_TYPE,
        pool=StepKind.SYSTEM.value,
        execution_group=position + 1,
        order=0,
        depends_on=() if position == 0 else (position - 1,),
        timeout=step.timeout,
        max_attempts=step.max_attempts,
        backoff=step.backoff,
        max_crashes=step.max_crashes,
        processor=(ProcessorChoice(when=None, method=step.compensation),),
    )
