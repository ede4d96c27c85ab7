"""Two ways to tell what becomes of a job: step by step without a worker, and all at once with a real one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType

from docmill.engine.batch import Batch, StepRun
from docmill.engine.events import Failed, Rerun
from docmill.model.ids import new_id
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.plan import Plan
from docmill.testing.serving import serving
from docmill.testing.waiting import until
from docmill.testing.world import World, lease

QUEUES = ("rule", "ai", "system")


def plan_of(text: str) -> Plan:
    return compile_template(text, catalogue=Catalogue.permissive()).plan


class Story:
    """A job whose steps begin and end when the test says so."""

    def __init__(self, world: World, template: str | Plan) -> None:
        self.world = world
        self.plan = plan_of(template) if isinstance(template, str) else template
        self.job_id = world.submit(self.plan)
        self._runs: dict[str, StepRun] = {}

    def claim(self) -> set[str]:
        """Begin whatever is due; the keys of what began."""
        runs = [run for queue in QUEUES for run in self.world.claim(queue=queue)]
        self._runs |= {run.step.step_key: run for run in runs}
        return {run.step.step_key for run in runs}

    def complete(self, *keys: str) -> None:
        for key in keys:
            assert self.world.complete(self._runs[key])

    def fail(self, *keys: str) -> None:
        for key in keys:
            error = '{"code":"broken","message":"The page is blank."}'
            failed = Failed(**lease(self._runs[key]), error=error, permanent=True, jitter=0.0)
            assert self.world.report(self.job_id, failed) == (True,)

    def run(self, *keys: str) -> None:
        """Begin and complete exactly these, all at once."""
        assert self.claim() == set(keys)
        self.complete(*keys)

    def finish(self) -> None:
        """Let everything that is left succeed."""
        while keys := self.claim():
            self.complete(*keys)

    def rerun(self, *keys: str) -> None:
        positions = frozenset(self.plan.positions[key] for key in keys or self.plan.positions)
        assert self.world.report(self.job_id, Rerun(positions=positions, keep_checkpoints=True)) == (True,)

    # Methods rather than properties, so that type checkers do not take their first answer for their last.

    def job(self) -> JobStatus:
        return self.world.states()[self.job_id].status

    def steps(self) -> Mapping[str, StepStatus]:
        states = self.world.states()[self.job_id].steps
        return {step.step_key: state.status for step, state in zip(self.plan.steps, states, strict=True)}

    def progress(self) -> float:
        row = self.world.job(self.job_id)
        return float(row.settled / row.total)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A job that a worker ran to its end."""

    job_id: str
    entity_id: str
    status: str
    steps: Mapping[str, str]
    results: Mapping[str, object]


def run_job(world: World, template: str | Plan, *modules: ModuleType, **fields: object) -> Ended:
    """Let a real worker that knows these modules run one job to its end."""
    plan = plan_of(template) if isinstance(template, str) else template
    entity_id = new_id()
    job = replace(world.new_job(plan), entity_type=plan.processable_type, entity_id=entity_id, **fields)  # type: ignore[arg-type]
    world.commit(Batch(submissions=[job]))
    with serving(world.database, world.run_dir, *modules):
        until(lambda: JobStatus(world.job(job.id).status).finished, 30.0, what="the job to end")
    rows = world.steps(job.id)
    return Ended(
        job_id=job.id,
        entity_id=entity_id,
        status=world.job(job.id).status,
        steps={key: row.status for key, row in rows.items()},
        results={key: row.result for key, row in rows.items()},
    )
