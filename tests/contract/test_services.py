"""Jobs and templates as people use them; every refusal has a name."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from sqlalchemy import select, text

from docmill.db.tables import jobs as jobs_table
from docmill.engine.bell import CONTROL
from docmill.engine.events import Completed
from docmill.engine.sql.postgres import PostgresSql
from docmill.engine.sql.rows import Beginning
from docmill.model.errors import Conflict, DatabaseUnavailable, InvalidInput, NotFound
from docmill.model.ids import derived_id, new_id
from docmill.model.statuses import JobStatus, StepStatus
from docmill.services.jobs import JobFilter, Jobs, Retry
from docmill.services.templates import Templates, TemplateVersion
from docmill.testing.samples import Draft, chain, make_plan, single_step
from docmill.testing.world import OTHER_ORG, World, compiled, lease
from tests.contract.bells import CountingBell


@pytest.fixture
def jobs(world: World, bell: CountingBell) -> Iterator[Jobs]:
    jobs = Jobs(world.database, bell)
    yield jobs
    jobs.close()


@pytest.fixture
def templates(world: World) -> Templates:
    return Templates(world.database)


def test_submitting_wakes_the_workers_and_counts_what_was_new(world: World, jobs: Jobs, bell: CountingBell) -> None:
    job = world.new_job(make_plan([Draft(key="a", pool="ocr")]))
    assert jobs.submit([job, job]) == 1
    assert jobs.submit([job]) == 0
    assert bell.rung == [{"ocr"}, frozenset()]


def test_a_job_is_shown_with_all_its_steps(world: World, jobs: Jobs) -> None:
    job_id = world.submit(chain(2), priority=3)
    world.complete(world.claim_one(), '{"total": 7}')
    view = jobs.get(job_id)
    assert (view.summary.status, view.summary.progress, view.summary.priority) == (JobStatus.IN_PROGRESS, 1 / 3, 3)
    assert [(step.step_key, step.status) for step in view.steps] == [
        ("s0", StepStatus.COMPLETED),
        ("s1", StepStatus.READY),
        ("finish", StepStatus.PENDING),
    ]
    assert view.steps[0].result == {"total": 7}
    assert view.version == 3


def test_jobs_are_listed_newest_first_and_by_status(world: World, jobs: Jobs) -> None:
    ids = [world.submit(single_step()) for _ in range(3)]
    jobs.cancel(ids[1])
    assert [job.id for job in jobs.list()] == ids[::-1]
    assert [job.id for job in jobs.list(limit=1)] == [ids[2]]
    assert [job.id for job in jobs.list(JobFilter(status=JobStatus.CANCELLED))] == [ids[1]]


def test_events_are_followed_from_a_version(world: World, jobs: Jobs) -> None:
    job_id = world.submit(single_step())
    world.run_to_end()
    versions = [event.version for event in jobs.events(job_id)]
    assert versions == list(range(1, len(versions) + 1))
    assert [event.version for event in jobs.events(job_id, after=2)] == versions[2:]


def test_cancelling_ends_the_job_and_tells_the_workers(world: World, jobs: Jobs, bell: CountingBell) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    jobs.cancel(job_id)
    assert bell.rung[-1] == {CONTROL}
    assert jobs.get(job_id).summary.status is JobStatus.CANCELLED
    assert not world.complete(run)
    with pytest.raises(Conflict, match="nothing left to cancel"):
        jobs.cancel(job_id)


def test_a_finished_job_runs_again_from_the_start_or_from_a_step(world: World, jobs: Jobs) -> None:
    job_id = world.submit(chain(2))
    with pytest.raises(Conflict, match="still running"):
        jobs.retry(job_id)
    world.run_to_end()
    jobs.retry(job_id, Retry(steps=["s1"]))
    assert [step.status for step in jobs.get(job_id).steps] == ["COMPLETED", "READY", "PENDING"]
    world.run_to_end()
    jobs.retry(job_id, Retry(everything=True, keep_checkpoints=False))
    assert jobs.get(job_id).summary.run == 3
    assert [step.status for step in jobs.get(job_id).steps] == ["READY", "PENDING", "PENDING"]


def test_a_step_that_the_job_does_not_have_is_named(world: World, jobs: Jobs) -> None:
    job_id = world.submit(chain(2))
    with pytest.raises(NotFound, match="no step s9; its steps are s0, s1, finish"):
        jobs.retry(job_id, Retry(steps=["s9"]))


@pytest.mark.parametrize("job_id", [new_id(), "nonsense", "", "00000000"], ids=["unknown", "word", "empty", "short"])
def test_an_unknown_job_is_not_found_whatever_is_asked(jobs: Jobs, job_id: str) -> None:
    for ask in (jobs.get, jobs.cancel, jobs.retry, jobs.events):
        with pytest.raises(NotFound, match="jobs list"):
            ask(job_id)


def test_the_job_of_another_organisation_is_not_found(world: World, jobs: Jobs) -> None:
    job_id = world.submit(single_step(), org_id=OTHER_ORG)
    for ask in (jobs.get, jobs.cancel, jobs.retry, jobs.events):
        with pytest.raises(NotFound):
            ask(job_id)
    assert jobs.list() == []


def test_a_job_of_an_unknown_template_is_refused(world: World, jobs: Jobs) -> None:
    job = world.new_job(single_step())
    for template_id in (new_id(), "nonsense"):
        with pytest.raises((NotFound, InvalidInput)):
            jobs.submit([replace(job, template_id=template_id)])


def test_an_id_that_is_none_is_refused(world: World, jobs: Jobs) -> None:
    with pytest.raises(InvalidInput, match="UUID"):
        jobs.submit([world.new_job(single_step(), id="job-1")])


@pytest.mark.parametrize("count", [1, 50])
def test_the_same_jobs_submitted_by_many_at_once_are_there_once(world: World, count: int) -> None:
    """In one order by one, in the opposite by the other: neither error nor deadlock, on either database."""
    submissions = [world.new_job(single_step(), id=derived_id("same", n)) for n in range(count)]
    barrier = Barrier(4)

    def submit(number: int) -> int:
        barrier.wait()
        jobs = Jobs(world.database, CountingBell())
        try:
            return jobs.submit(submissions[:: -1 if number % 2 else 1])
        finally:
            jobs.close()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(submit, range(4))) == count
    assert world.count() == count


def test_a_look_at_a_job_is_of_one_moment(world: World) -> None:
    """What is read twice within one look is the same, whoever writes in between."""
    job_id = world.submit(single_step())
    run = world.claim_one()
    with world.database.read() as connection:
        query = select(jobs_table.c.version).where(jobs_table.c.id == job_id)
        before = connection.execute(query).scalar_one()
        world.report(job_id, Completed(**lease(run)))
        assert connection.execute(query).scalar_one() == before
    with world.database.read() as connection:
        assert connection.execute(query).scalar_one() == before + 1


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("losses", [1, 99])
def test_a_lost_connection_is_mended_or_named(
    world: World, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, losses: int
) -> None:
    original, job = PostgresSql.begin, world.new_job(single_step())
    left = [losses]

    def cut(self: PostgresSql, ids: Sequence[str], *, wait: bool, queues: Sequence[str] = ()) -> Beginning:
        if left[0]:
            left[0] -= 1
            with world.database.write() as other:
                other.execute(text("select pg_terminate_backend(:pid)"), {"pid": self._raw.info.backend_pid})
        return original(self, ids, wait=wait, queues=queues)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresSql, "begin", cut)
        if losses == 1:
            assert jobs.submit([job]) == 1
            return
        with pytest.raises(DatabaseUnavailable, match="Cannot reach the database"):
            jobs.submit([job])
    assert jobs.submit([job]) == 1


def test_the_same_content_is_the_same_version(templates: Templates) -> None:
    first = templates.register(compiled(single_step()))
    assert templates.register(compiled(single_step())) == first
    changed = templates.register(compiled(make_plan([Draft(key="a", backoff=1.0)], name="single-step")))
    assert (first.version, changed.version) == (1, 2)
    assert templates.find("single-step") == changed
    assert templates.find("single-step", 1) == first
    assert [each.template for each in templates.list()] == [changed]


def test_an_older_text_stored_again_is_the_newest_version(templates: Templates) -> None:
    """That is how a change is taken back, as often as people change their minds."""
    old = compiled(single_step())
    new = compiled(make_plan([Draft(key="a", backoff=1.0)], name="single-step"))
    for version, each in enumerate([old, new, old, new, old], start=1):
        assert templates.register(each).version == version
        assert templates.register(each).version == version, "the same again is no news"
    assert templates.plan(templates.find("single-step").id) == old.plan


def test_a_plan_comes_back_as_it_was_compiled(templates: Templates) -> None:
    plan = make_plan([Draft(key="a", model={"x": [1, 2.5, "ü"]}, condition="entity.a > 1")])
    assert templates.plan(templates.register(compiled(plan)).id) == plan


def test_an_unknown_template_is_not_found(templates: Templates) -> None:
    templates.register(compiled(single_step()))
    for name, says in (("nothing", "'nothing'. `docmill templates list`"), ("singel-step", "mean 'single-step'")):
        with pytest.raises(NotFound, match=says):
            templates.find(name)
    with pytest.raises(NotFound, match="no version 9 of the template 'single-step'"):
        templates.find("single-step", 9)
    for template_id in (new_id(), "nonsense"):
        with pytest.raises(NotFound):
            templates.plan(template_id)


def test_templates_of_two_organisations_do_not_meet(world: World, templates: Templates) -> None:
    mine = templates.register(compiled(single_step()))
    theirs = Templates(world.database, OTHER_ORG).register(compiled(single_step()))
    assert (mine.version, theirs.version) == (1, 1)
    with pytest.raises(NotFound):
        templates.plan(theirs.id)


def versions_of(world: World, plans: list[str]) -> Iterator[TemplateVersion]:
    barrier = Barrier(len(plans))

    def register(key: str) -> TemplateVersion:
        template = compiled(make_plan([Draft(key=key)]))
        barrier.wait()
        return Templates(world.database).register(template)

    with ThreadPoolExecutor(len(plans)) as threads:
        yield from threads.map(register, plans)


def test_the_same_template_registered_by_many_at_once_is_one_version(world: World) -> None:
    assert len({version.id for version in versions_of(world, ["a"] * 8)}) == 1


def test_templates_of_one_name_registered_at_once_get_a_version_each(world: World) -> None:
    versions = versions_of(world, [f"s{n}" for n in range(8)])
    assert sorted(version.version for version in versions) == list(range(1, 9))


def test_the_events_of_a_job_are_found_however_its_id_is_written(world: World, jobs: Jobs) -> None:
    job_id = world.submit(single_step())
    assert jobs.events(job_id.upper()) == jobs.events(job_id) != []
