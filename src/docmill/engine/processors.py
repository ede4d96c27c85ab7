"""Which processor applies a result: a fixed one, or the first branch whose condition holds."""

from collections.abc import Callable
from typing import Any

import orjson

from docmill.engine.batch import StepRun
from docmill.engine.loading import Loader
from docmill.model.errors import PermanentError
from docmill.plugin import Registry
from docmill.templates import conditions


async def choose_processor(registry: Registry, loader: Loader, run: StepRun, result: str) -> Callable[[Any, Any], None]:
    """The first whose condition holds; conditions may name the entity, results and metadata besides the result."""
    service = run.plan.service_name or ""
    needs = {name for choice in run.step.processor if choice.when for name in conditions.parse(choice.when).names}
    scope: dict[str, object] = {}
    if needs:
        loaded = await loader.scope(run, frozenset(needs - {"result"}))
        scope = {**loaded.names(), "result": orjson.loads(result)}
    for choice in run.step.processor:
        if choice.when is None or conditions.parse(choice.when).holds(scope):
            found = registry.processors.get((service, choice.method))
            if found is None:
                raise PermanentError(
                    f"This worker knows no processor {service}.{choice.method}; install the plug-in that has it."
                )
            return found.function
    return _no_processor


def _no_processor(context: Any, result: Any) -> None:
    """No branch of the choice holds: the step completes and changes nothing."""
