"""A job submitted under an id or key of the caller's own is submitted once, whoever repeats the call."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from docmill.engine.batch import NewJob
from docmill.engine.bell import SocketBell
from docmill.model.errors import IdempotencyConflict, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.services.jobs import Jobs, Submission
from docmill.services.submission import new_job
from docmill.services.templates import Templates, TemplateVersion
from docmill.templates.plan import Plan
from docmill.testing.samples import Draft, make_plan, single_step
from docmill.testing.world import OTHER_ORG, World, compiled


@pytest.fixture
def jobs(world: World) -> Iterator[Jobs]:
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell)) as jobs:
        yield jobs


def template(world: World, plan: Plan | None = None, org_id: str = DEFAULT_ORG) -> TemplateVersion:
    return Templates(world.database, org_id).register(compiled(plan or single_step()))


def keyed(world: World, key: str = "upload-7", **changes: Any) -> NewJob:
    """A job as a person describes it, all of it."""
    given: dict[str, Any] = {
        "title": "Receipt Processing",
        "metadata": {"uploadedVia": "whatsapp", "pages": [1, 2.5, None]},
        "file_type": "application/pdf",
        "priority": 3,
    }
    version = changes.pop("template", None) or template(world)
    return new_job(version, changes.pop("entity", "document:42"), idempotency_key=key, **(given | changes))


def test_the_same_call_again_is_the_same_job_whatever_became_of_it(world: World, jobs: Jobs) -> None:
    first = jobs.submit_one(keyed(world))
    assert first.new
    assert jobs.submit_one(keyed(world)) == Submission(job_id=first.job_id, new=False)
    world.run_to_end()
    assert jobs.submit_one(keyed(world)) == Submission(job_id=first.job_id, new=False)
    assert world.count() == 1


def test_a_newer_version_of_the_template_makes_it_no_other_job(world: World, jobs: Jobs) -> None:
    first = jobs.submit_one(keyed(world))
    newer = template(world, make_plan([Draft(key="a", backoff=1.0)], name="single-step"))
    assert newer.version == 2
    assert jobs.submit_one(keyed(world, template=newer)) == Submission(job_id=first.job_id, new=False)


DIFFERENT: dict[str, Any] = {
    "entity": {"entity": "document:43"},
    "title": {"title": "Another"},
    "metadata": {"metadata": {"uploadedVia": "mail"}},
    "file type": {"file_type": "image/png"},
    "priority": {"priority": 4},
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_another_job_under_the_same_key_is_refused_and_told_what_differs(world: World, jobs: Jobs, what: str) -> None:
    first = jobs.submit_one(keyed(world))
    with pytest.raises(IdempotencyConflict, match=f"another {what}") as caught:
        jobs.submit_one(keyed(world, **DIFFERENT[what]))
    assert caught.value.code == "idempotency_conflict"
    assert caught.value.details == {"job_id": first.job_id, "differs": [what]}


def test_another_template_under_the_same_key_is_refused(world: World, jobs: Jobs) -> None:
    jobs.submit_one(keyed(world))
    other = template(world, make_plan([Draft(key="a")], name="another"))
    with pytest.raises(IdempotencyConflict, match="another template, another title"):
        jobs.submit_one(keyed(world, template=other, title="Another"))


def test_an_id_of_ones_own_is_held_to_the_same(world: World, jobs: Jobs) -> None:
    job = world.new_job(single_step())
    assert jobs.submit([job]) == 1
    with pytest.raises(IdempotencyConflict, match="another title"):
        jobs.submit([replace(job, title="Another")])


def test_a_refusal_leaves_nothing_of_what_was_submitted_with_it(world: World, jobs: Jobs) -> None:
    jobs.submit_one(keyed(world))
    with pytest.raises(IdempotencyConflict):
        jobs.submit([world.new_job(single_step()), keyed(world, title="Another")])
    assert world.count() == 1


def test_two_organisations_may_use_one_key(world: World, jobs: Jobs) -> None:
    mine = jobs.submit_one(keyed(world))
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell, OTHER_ORG)) as theirs:
        other = keyed(world, template=template(world, org_id=OTHER_ORG), org_id=OTHER_ORG)
        submitted = theirs.submit_one(other)
    assert submitted.new
    assert submitted.job_id != mine.job_id


def test_of_many_who_submit_under_one_key_at_once_all_get_the_one_job(world: World) -> None:
    job, barrier = keyed(world), Barrier(6)

    def submit(number: int) -> Submission:
        with closing(SocketBell(world.run_dir / str(number))) as bell, closing(Jobs(world.database, bell)) as jobs:
            barrier.wait()
            return jobs.submit_one(job)

    with ThreadPoolExecutor(6) as threads:
        submissions = list(threads.map(submit, range(6)))
    assert {submission.job_id for submission in submissions} == {job.id}
    assert sum(submission.new for submission in submissions) == 1
    assert world.count() == 1


@pytest.mark.parametrize("key", ["", "  ", "x" * 256, "a\0b"])
def test_a_key_that_is_none_is_refused(world: World, key: str) -> None:
    with pytest.raises(InvalidInput, match="idempotency key"):
        keyed(world, key)


def test_a_job_has_an_id_of_its_own_or_a_key(world: World) -> None:
    with pytest.raises(InvalidInput, match="not by both"):
        keyed(world, job_id=world.new_job(single_step()).id)


def test_what_belongs_to_another_organisation_cannot_be_submitted(world: World, jobs: Jobs) -> None:
    theirs = world.new_job(single_step(), org_id=OTHER_ORG)
    with pytest.raises(InvalidInput, match="its own organisation"):
        jobs.submit([theirs])
    with pytest.raises(NotFound, match="no process template"):
        jobs.submit([replace(theirs, org_id=DEFAULT_ORG)])
    assert world.count() == 0
