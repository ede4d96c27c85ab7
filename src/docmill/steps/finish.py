"""The step every template ends with: its processor, if any, is the template's own way to finish."""

from docmill.plugin import FINISH_TYPE, StepContext, step


@step(FINISH_TYPE, kind="system", at_once=True)
def finish_processing(ctx: StepContext) -> dict[str, object]:
    """Nothing to compute: that it runs at all means that every other step has settled."""
    return {}
