"""Steps whose result follows from what their job holds: they end in the transaction that makes them ready.

To run one as any other costs a transaction, a hand-over to the loop and back, and a look at the results: more than a
hundred times what it computes. Whatever stands in the way, or goes wrong, makes it a step like any other, whose attempt
then says what it is.
"""

import logging
from collections.abc import Callable, Mapping

from docmill.engine.batch import StepRun
from docmill.engine.computing import needs_of
from docmill.engine.context import Context, to_json
from docmill.engine.events import Completed, Skipped
from docmill.engine.loading import Scope
from docmill.engine.pools import Slots
from docmill.plugin import Registry, StepType
from docmill.templates import conditions
from docmill.templates.plan import PlanStep

log = logging.getLogger("docmill.engine")

_HELD = frozenset({"results", "metadata"})
"""What a job holds itself; an entity would have to be loaded."""


class StepsAtOnce:
    """Calls the functions of step types that were declared `at_once`; asked by the lanes, on their threads."""

    def __init__(self, registry: Registry, slots: Slots, context: Callable[[StepRun], Context]) -> None:
        self._registry = registry
        self._slots = slots
        self._context = context
        self._able: dict[int, tuple[StepType, frozenset[str]] | None] = {}

    def __call__(self, run: StepRun, results: Callable[[], Mapping[str, object]]) -> Completed | Skipped | None:
        """How the step ends that is claimed this moment; None: it is to be run."""
        state = run.state
        able = self._able_to(run.step)
        # One that failed before, or has a result, has a story that an attempt goes on with.
        if able is None or state.checkpointed or state.failures or state.crashes or self._slots.closed:
            return None
        step_type, needs = able
        # Outside of what is caught: a failure of the database is the transaction's.
        scope = Scope(results=results() if "results" in needs else {}, metadata=run.job.metadata)
        try:
            return self._ended(run, step_type, scope)
        except Exception as error:
            log.debug("step %s is run, since it could not end at once: %s", run.step.step_key, error)
            return None

    def _able_to(self, planned: PlanStep) -> tuple[StepType, frozenset[str]] | None:
        # Plans are kept for good, so their steps can be known by identity.
        if id(planned) not in self._able:
            self._able[id(planned)] = self._looked_up(planned)
        return self._able[id(planned)]

    def _looked_up(self, planned: PlanStep) -> tuple[StepType, frozenset[str]] | None:
        step_type = self._registry.steps.get(planned.step_type)
        if step_type is None or not step_type.at_once or planned.pool not in self._slots.pools:
            return None
        more = (planned.processor, planned.prompt, planned.not_before, planned.for_each, planned.output_schema)
        needs = needs_of(planned, step_type)
        # `input` is computed from what is in `needs`; to leave it to the runner keeps this small.
        if any(more) or "input" in step_type.needs or not needs <= _HELD:
            return None
        return step_type, needs

    def _ended(self, run: StepRun, step_type: StepType, scope: Scope) -> Completed | Skipped | None:
        position, epoch = run.step.position, run.state.epoch + 1
        condition = run.step.condition
        if condition is not None and not conditions.parse(condition).holds(scope.names()):
            return Skipped(position=position, epoch=epoch)
        context = self._context(run)
        value = step_type.function(context, **{need: getattr(scope, need) for need in step_type.needs})
        if context.issues or context.follow_ups:
            return None
        return Completed(position=position, epoch=epoch, result=to_json(value, f"the result of {run.step.step_key}"))
