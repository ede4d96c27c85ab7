"""Compensation: what a job did is undone in reverse when it comes to a bad end and its template says so."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from docmill.db.tables import issues, job_steps, jobs, templates
from docmill.engine.batch import Batch, Report
from docmill.engine.events import Cancelled, Completed, Failed, Rerun
from docmill.model.errors import AlreadyActive
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.plan import Plan
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import World, lease


def saga(*, compensate: bool = True) -> Plan:
    return make_plan(
        [
            Draft(key="reserve", processor="reserve", compensation="release"),
            Draft(key="note", group=2),
            Draft(key="charge", group=3, processor="charge", compensation="refund"),
            Draft(key="ship", group=4, compensation="recall"),
        ],
        name="saga",
        compensate=compensate,
    )


def fail_at(world: World, key: str, plan: Plan | None = None) -> str:
    """A job that did everything before this step, and then failed there for good."""
    job_id = world.submit(plan or saga())
    while True:
        run = world.claim_one()
        if run.step.step_key == key:
            world.report(job_id, Failed(**lease(run), error='{"code":"no"}', permanent=True))
            return job_id
        world.complete(run, result=f'"{run.step.step_key} done"')


def undoing_of(world: World, job_id: str) -> str | None:
    with world.looking() as connection:
        return connection.execute(select(jobs.c.id).where(jobs.c.parent_job_id == job_id)).scalar()


def test_what_was_completed_is_undone_in_reverse_and_nothing_else(world: World) -> None:
    undo_id = undoing_of(world, fail_at(world, "ship"))
    assert undo_id is not None
    undone = []
    while runs := world.claim(100):
        (run,) = runs
        undone.append((run.step.step_key, [choice.method for choice in run.step.processor]))
        assert run.job.id == undo_id
        assert run.step.finish or run.state.checkpointed, "there is nothing to compute"
        world.complete(run, result=None)
    assert undone == [("charge", ["refund"]), ("reserve", ["release"]), ("undone", [])]
    assert world.state(undo_id).status is JobStatus.COMPLETED


def test_an_undoing_step_begins_with_the_result_it_undoes(world: World) -> None:
    undo_id = undoing_of(world, fail_at(world, "ship"))
    with world.looking() as connection:
        query = select(job_steps.c.step_key, job_steps.c.result).where(job_steps.c.job_id == undo_id)
        stored = {row.step_key: row.result for row in connection.execute(query)}
    assert stored["charge"] == "charge done"
    assert stored["reserve"] == "reserve done"


def test_a_cancelled_job_is_undone_too(world: World) -> None:
    job_id = world.submit(saga())
    world.complete(world.claim_one())
    world.report(job_id, Cancelled())
    undo_id = undoing_of(world, job_id)
    assert undo_id is not None
    assert [run.step.step_key for run in world.claim(100)] == ["reserve"]


@pytest.mark.parametrize("case", ["the template does not say so", "nothing was done", "it completed"])
def test_there_is_nothing_to_undo_when(world: World, case: str) -> None:
    if case == "the template does not say so":
        job_id = fail_at(world, "ship", saga(compensate=False))
    elif case == "nothing was done":
        job_id = fail_at(world, "reserve")
    else:
        job_id = world.submit(saga())
        world.run_to_end()
    assert undoing_of(world, job_id) is None


def test_nothing_of_the_template_happens_to_the_entity_before_it_is_undone(world: World) -> None:
    job_id = fail_at(world, "ship")
    undo_id = undoing_of(world, job_id)
    assert undo_id is not None
    entity = world.new_job(saga())
    with pytest.raises(AlreadyActive, match=undo_id):
        world.commit(Batch(submissions=[replace(entity, entity_id=job_id)]))


def test_a_follow_up_of_the_job_itself_gives_way_to_its_undoing(world: World) -> None:
    """A step completes, with a follow-up, after a sibling has failed the job: both would be about the same entity."""
    plan = make_plan(
        [Draft(key="book", compensation="unbook"), Draft(key="ask"), Draft(key="late")], name="wide", compensate=True
    )
    job_id = world.submit(plan)
    book, ask, late = world.claim(3)
    world.complete(book)
    world.report(job_id, Failed(**lease(ask), error='{"code":"no"}', permanent=True))
    again = replace(world.new_job(plan), entity_id=job_id, parent_job_id=job_id, unless_active=True)
    report = Report(job_id=job_id, event=Completed(**lease(late), result="1"), follow_ups=(again,))
    assert world.commit(Batch(reports=[report])).accepted == (True,)
    undo_id = undoing_of(world, job_id)
    assert undo_id is not None
    assert undo_id != again.id
    assert world.state(job_id).status is JobStatus.FAILED


def test_what_was_undone_is_done_again_when_the_job_runs_again(world: World) -> None:
    job_id = fail_at(world, "ship")
    world.run_to_end()
    world.report(job_id, Rerun(positions=frozenset({3})))
    again = [position for position, step in enumerate(world.state(job_id).steps) if not step.status.settled]
    assert again == [0, 2, 3, 4], "note was not undone, so it stays done"


def test_an_undoing_that_fails_opens_an_issue_that_says_what_is_left(world: World) -> None:
    undo_id = undoing_of(world, fail_at(world, "ship"))
    assert undo_id is not None
    run = world.claim_one()
    world.report(undo_id, Failed(**lease(run), error='{"code":"no"}', permanent=True))
    assert world.state(undo_id).status is JobStatus.FAILED
    with world.looking() as connection:
        issue = connection.execute(select(issues)).one()
    assert (issue.job_id, issue.code, issue.severity, issue.status) == (
        undo_id,
        "compensation_failed",
        "critical",
        "open",
    )
    assert issue.details["not_undone"] == ["charge", "reserve"]


def test_an_undoing_that_failed_goes_on_where_it_stopped(world: World) -> None:
    undo_id = undoing_of(world, fail_at(world, "ship"))
    assert undo_id is not None
    run = world.claim_one()
    world.report(undo_id, Failed(**lease(run), error='{"code":"no"}', permanent=True))
    world.report(undo_id, Rerun(positions=frozenset()))
    world.run_to_end()
    steps = world.state(undo_id).steps
    assert [step.status for step in steps] == [
        StepStatus.SKIPPED,
        StepStatus.COMPLETED,
        StepStatus.COMPLETED,
        StepStatus.COMPLETED,
    ]


def test_the_template_of_an_undoing_is_stored_once_per_version(world: World) -> None:
    for _ in range(2):
        fail_at(world, "ship")
        world.run_to_end()
    with world.looking() as connection:
        rows = connection.execute(select(templates).where(templates.c.undoes_id.is_not(None))).all()
    assert [row.name for row in rows] == ["saga (undo)"]


def test_a_new_version_that_undoes_as_the_old_one_did_is_undone_too(world: World) -> None:
    for attempts in (4, 3):
        plan = saga()
        plan = replace(plan, steps=(replace(plan.steps[0], timeout=100.0 * attempts), *plan.steps[1:]))
        world.template(plan)
        undo_id = undoing_of(world, fail_at(world, "ship", plan))
        assert undo_id is not None
        world.run_to_end()
        assert world.state(undo_id).status is JobStatus.COMPLETED


def test_a_new_version_that_undoes_otherwise_has_an_undoing_of_its_own(world: World) -> None:
    for method in ("release", "let_go"):
        plan = saga()
        plan = replace(plan, steps=(replace(plan.steps[0], compensation=method), *plan.steps[1:]))
        fail_at(world, "ship", plan)
        undone = [world.claim_one() for _ in range(1)]
        world.complete(undone[0], result=None)
        (run,) = world.claim(100)
        assert [choice.method for choice in run.step.processor] == [method]
        world.complete(run, result=None)
        world.run_to_end()
