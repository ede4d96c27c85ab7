"""What a compensation job is made of. Its results are given from the start, so it never computes."""

from docmill.plugin import PermanentError, StepContext, step
from docmill.templates.undo import UNDO_TYPE


@step(UNDO_TYPE, kind="system")
async def undo(ctx: StepContext) -> None:
    """Reached only in a job that somebody wrote by hand, or ran again without its stored results."""
    raise PermanentError(
        f"There is no result of {ctx.step_key} to undo. Compensation jobs are made by Docmill; run them again with "
        "their checkpoints kept."
    )
