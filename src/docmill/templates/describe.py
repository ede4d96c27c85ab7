"""A plan as plain text: groups from top to bottom, in each its steps with what a reader must know of them."""

from collections.abc import Iterator

from docmill.model.statuses import FailureAction
from docmill.templates.plan import Plan, PlanStep
from docmill.templates.times import written

WIDTH = 78


def draw(plan: Plan) -> str:
    """The drawing `docmill templates show` prints."""
    lines = [_clean(_title(plan))]
    lines += [_clean(line) for line in plan.description.splitlines()]
    for index, group in enumerate(plan.groups):
        steps = [plan.steps[position] for position in group]
        lines += ["", *_box(plan, steps)] if index == 0 else ["  │", "  ▼", *_box(plan, steps)]
    return "\n".join(lines) + "\n"


def _title(plan: Plan) -> str:
    facts = [f"processes {plan.processable_type}", f"task {plan.task_type}"]
    if plan.service_name:
        facts.append(f"service {plan.service_name}")
    if plan.compensate:
        facts.append("compensates on failure")
    return f"{plan.name} ({', '.join(facts)})"


def _box(plan: Plan, steps: list[PlanStep]) -> Iterator[str]:
    together = f", {len(steps)} steps in parallel" if len(steps) > 1 else ""
    heading = f"┌─ group {steps[0].execution_group}{together} "
    yield heading.ljust(WIDTH, "─")
    for number, step in enumerate(steps):
        if number:
            yield "│"
        yield f"│ {_clean(_heading(step))}"
        yield from (f"│     {name:<10} {_clean(value)}" for name, value in _facts(plan, step))
    yield "└".ljust(WIDTH, "─")


def _heading(step: PlanStep) -> str:
    optional = " (optional)" if step.optional else ""
    return f"{step.step_key}: {step.display_name}{optional} · {step.kind} {step.step_type}"


def _facts(plan: Plan, step: PlanStep) -> Iterator[tuple[str, str]]:
    """Label and text of whatever a reader must know about the step."""
    if step.finish:
        yield "after", "all previous steps"
    elif step.depends_on:
        yield "after", ", ".join(plan.steps[need].step_key for need in step.depends_on)
    if step.condition is not None:
        yield "if", step.condition
    if step.not_before is not None:
        yield "not before", step.not_before
    if step.delay:
        yield "delay", written(step.delay)
    if step.answer_within is not None:
        yield "answer", f"within {written(step.answer_within)}"
    yield "pool", f"{step.pool}, timeout {written(step.timeout)}"
    if step.executor is not None:
        yield "executor", step.executor
    yield "retry", _retry(step)
    if step.on_failure is not FailureAction.FAIL_JOB:
        yield "on failure", step.on_failure.value
    if step.prompt is not None:
        yield "prompt", step.prompt
    if step.model:
        yield "model", ", ".join(f"{key}={value}" for key, value in step.model.items())
    if step.for_each is not None:
        fate = ", items may fail" if step.for_each.may_fail else ""
        yield "for each", f"{step.for_each.items}, {step.for_each.parallel} at a time{fate}"
    for name, expression in step.input.items():
        yield "input", f"{name} = {expression}"
    for choice in step.processor:
        default = " otherwise" if len(step.processor) > 1 else ""
        yield (
            "finish by" if step.finish else "processor",
            choice.method + (default if choice.when is None else f" if {choice.when}"),
        )
    if step.compensation is not None:
        yield "undo", step.compensation
    if step.recovery is not None:
        yield "recovery", step.recovery


def _retry(step: PlanStep) -> str:
    text = f"up to {step.max_attempts} attempts, backoff {written(step.backoff)}" if step.max_attempts > 1 else "none"
    if step.on_retry.switch_models:
        text += f", then models {' → '.join(step.on_retry.switch_models)}"
    if step.on_retry.raise_max_tokens_by:
        text += f", max_tokens +{step.on_retry.raise_max_tokens_by} each"
    return text


def _clean(text: str) -> str:
    """One printable line: a template may not move the cursor of whoever looks at it."""
    return "".join(char if char.isprintable() else " " for char in text)
