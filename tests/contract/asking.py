"""Steps that ask people, claimed and reported by hand, for tests."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from docmill.engine.batch import Batch, Report, StepRun
from docmill.engine.events import Suspended
from docmill.engine.issues import NewIssue
from docmill.model.ids import derived_id, new_id
from docmill.model.statuses import StepKind
from docmill.templates.plan import Plan
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import World, lease


def plan(*, processor: str | None = None, schema: Mapping[str, object] | None = None, attempts: int = 4) -> Plan:
    made = make_plan([Draft(key="check", kind=StepKind.RULE, processor=processor, max_attempts=attempts)])
    first, finish = made.steps
    return replace(made, steps=(replace(first, output_schema=schema), finish))


def blocking(n: int = 0, **more: Any) -> NewIssue:
    values: dict[str, Any] = {"code": "total_mismatch", "title": "Is this right?", "corrects": True, **more}
    return NewIssue(id=derived_id(new_id(), n), blocking=True, **values)


def ask(world: World, *asked: NewIssue, of: Plan | None = None, result: str = '{"total": 1, "tax": 2}') -> StepRun:
    """A job whose first step waits for these issues."""
    world.submit(of or plan())
    run = world.claim_one(queue="rule")
    deadline = world.job(run.job.id).created_at + timedelta(days=1)
    event = Suspended(**lease(run), deadline=deadline, result=result)
    outcome = world.commit(Batch(reports=[Report(job_id=run.job.id, event=event, issues=asked)]))
    assert outcome.accepted == (True,)
    return run


def step(world: World, run: StepRun) -> Any:
    return world.steps(run.job.id)["check"]
