"""A task for a person: opens a blocking issue and waits; the data of its resolution is the result of the step."""

from collections.abc import Mapping

from docmill.plugin import Issue, StepContext, Wait, step

_OWN = frozenset({"title", "code", "severity", "assigned_to"})


@step("human.task", kind="human")
async def human_task(ctx: StepContext, input: Mapping[str, object]) -> Wait:
    """Ask for what the step's `output_schema` describes.

    Of the step's `input`, `title`, `code`, `severity` and `assigned_to` say how the issue looks; all else is shown to
    the person as its details.
    """
    assigned_to = input.get("assigned_to")
    return Wait(
        issue=Issue(
            code=str(input.get("code") or "task"),
            title=str(input.get("title") or _title(ctx)),
            severity=str(input.get("severity") or "warning"),
            blocking=True,
            details={name: value for name, value in input.items() if name not in _OWN},
            answer_schema=ctx.output_schema,
            assigned_to=None if assigned_to is None else str(assigned_to),
        )
    )


def _title(ctx: StepContext) -> str:
    task = ctx.step_key.replace("_", " ").capitalize()
    return f"{task}: {ctx.title or f'{ctx.entity_type} {ctx.entity_id}'}"
