"""Calling a step's function: with what it asks for, and once for each item where the template says so."""

from typing import Any

import orjson

from docmill.engine.batch import StepRun
from docmill.engine.context import Context, to_json
from docmill.engine.gathering import Gathering
from docmill.engine.items import ItemContext, run_items
from docmill.engine.loading import Scope
from docmill.engine.thread_call import in_thread
from docmill.plugin import StepType, Wait
from docmill.templates import conditions
from docmill.templates.output import check_output
from docmill.templates.plan import PlanStep


def needs_of(planned: PlanStep, step_type: StepType) -> frozenset[str]:
    """What must be loaded before the compute: what the function asks for, what its expressions and its prompt name."""
    names = set(step_type.needs)
    if planned.prompt is not None:
        names.add("entity")
    expressions = [planned.condition, planned.not_before, planned.for_each and planned.for_each.items]
    if "input" in names:
        expressions.extend(planned.input.values())
    for expression in expressions:
        if expression is not None:
            names |= conditions.parse(expression).names
    return frozenset(names - {"input", "item"})


async def compute(
    run: StepRun, context: Context, step_type: StepType, scope: Scope, gathering: Gathering | None = None
) -> Any:
    """What the function returns, or the results of all items together; each held against the schema.

    A step of a gathering has its part of a call that is made for several.
    """
    arguments: dict[str, object] = {}
    for need in step_type.needs:
        if need == "input":
            names = scope.names()
            arguments["input"] = {
                name: conditions.parse(expression).evaluate(names) for name, expression in run.step.input.items()
            }
        elif need != "item":
            arguments[need] = getattr(scope, need)
    if gathering is not None:
        return await gathering.join(run.key, context, arguments)
    if run.step.for_each is None:
        value = await _call(step_type, context, arguments)
        check_result(run.step, step_type, value)
        return value

    async def call(item_context: ItemContext, item: object) -> Any:
        given = {**arguments, "item": item} if "item" in step_type.needs else arguments
        value = await _call(step_type, item_context, given)
        check_result(run.step, step_type, value)
        return value

    return await run_items(run, context, run.step.for_each, scope.names(), call)


async def _call(step_type: StepType, context: Context | ItemContext, arguments: dict[str, object]) -> Any:
    if step_type.is_async:
        return await step_type.function(context, **arguments)
    if step_type.at_once:
        return step_type.function(context, **arguments)
    return await in_thread(lambda: step_type.function(context, **arguments))


def check_result(planned: PlanStep, step_type: StepType, value: object) -> None:
    """Hold a result against the template's schema before it is kept: what is stored is never computed again."""
    if planned.output_schema is None or isinstance(value, Wait):
        return
    stored = orjson.loads(to_json(value, f"the result of {planned.step_key}"))
    if step_type.output is not None:
        stored = stored.get(step_type.output) if isinstance(stored, dict) else None
    check_output(planned.output_schema, stored, f"The result of {planned.step_key}")
