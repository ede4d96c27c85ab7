"""What was asked survives what dies: failed applies, lost computes, attempts that end between."""

from collections.abc import Iterator
from threading import Event

import pytest
from sqlalchemy import select

from docmill.db.tables import issues as table
from docmill.engine import failpoints
from docmill.plugin import (
    Issue,
    PermanentError,
    RetryableError,
)
from docmill.services.retrying import Retry
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.waiting import until
from docmill.testing.world import World
from tests.contract.questioning import Mill, asked, child_template, computed, working


@pytest.fixture
def mill(world: World) -> Iterator[Mill]:
    mill = Mill(world)
    yield mill
    mill.close()


@pytest.mark.parametrize("step_type", ["remark", "validate paid"])
def test_what_a_compute_raised_survives_an_apply_that_fails(world: World, mill: Mill, step_type: str) -> None:
    """Each issue is opened once, and a question that was answered is not put again."""
    job_id = mill.submit(f"type: {step_type}\nprocessor_method: moody")
    world.template(
        compile_template(
            "name: child\nprocessable_type: document\nsteps:\n  - {step_key: finish, type: FinishProcessing}\n",
            catalogue=Catalogue.permissive(),
            source="child",
        ).plan
    )
    with working(world):
        if step_type == "validate paid":
            mill.reaches(job_id, "WAITING")
            mill.issues.resolve(mill.open_issues(job_id)[0].id, {"total": 9})
        mill.reaches(job_id, "COMPLETED")
    assert mill.saved() == [9 if step_type == "validate paid" else 100]
    assert computed[job_id] == 1
    assert len(mill.issues.list(status=None, job_id=job_id)) == 1


def test_an_attempt_that_ends_after_the_checkpoint_opens_the_issue_with_the_next(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: remark\nprocessor_method: save\nbackoff: 0")
    died = Event()

    def die(point: str) -> None:
        if point == "checkpoint.written" and not died.is_set():
            died.set()
            raise SystemExit("before anything is applied")

    failpoints.hook(die)
    try:
        with working(world):
            assert died.wait(30)
            mill.reaches(job_id, "COMPLETED")
    finally:
        failpoints.hook(None)
    assert computed[job_id] == 1
    assert mill.saved() == [100]
    assert [issue.code for issue in mill.issues.list(status=None, job_id=job_id)] == ["blurred"]


def test_a_question_about_a_paid_result_is_put_again_without_paying_again(world: World, mill: Mill) -> None:
    """Cancelled while it waited, and run again: the result is still there, and still in doubt."""
    child_template(world)
    job_id = mill.submit("type: validate paid\nprocessor_method: save")
    with working(world):
        mill.reaches(job_id, "WAITING")
        (first,) = mill.open_issues(job_id)
        mill.jobs.cancel(job_id)
        mill.jobs.retry(job_id, Retry(everything=True))
        mill.reaches(job_id, "WAITING")
        (second,) = mill.open_issues(job_id)
        assert second.id != first.id
        assert (computed[job_id], mill.saved()) == (1, [])
        mill.issues.resolve(second.id, {"total": 5})
        mill.reaches(job_id, "COMPLETED")
        mill.jobs.retry(job_id, Retry(everything=True))
        until(lambda: world.job(job_id).run == 3 and world.job(job_id).status == "COMPLETED", 30.0, what="the rerun")
    assert mill.open_issues(job_id) == [], "what was answered is not asked again"
    assert (computed[job_id], mill.saved()) == (1, [5, 5])


def test_the_doubts_of_a_compute_that_was_lost_are_lost_with_it(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: fickle\nprocessor_method: moody\nbackoff: 0")
    failed = Event()

    def fail(point: str) -> None:
        if point == "part.recorded" and not failed.is_set():
            failed.set()
            raise RetryableError("Between keeping the issue and asking.")

    failpoints.hook(fail)
    try:
        with working(world):
            mill.reaches(job_id, "COMPLETED")
    finally:
        failpoints.hook(None)
    assert failed.is_set()
    assert asked[job_id] == 3, "the second compute's result was kept, and applied after one refusal"
    assert mill.issues.list(status=None, job_id=job_id) == []


def test_a_failed_attempt_opens_nothing(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: raises and fails")
    with working(world):
        mill.reaches(job_id, "FAILED")
    assert mill.issues.list(status=None, job_id=job_id) == []


@pytest.mark.parametrize(
    ("step_type", "reason"), [("unstorable issue", "Cannot store the issue 'odd'"), ("unanswerable issue", "banana")]
)
def test_an_issue_that_cannot_be_stored_or_answered_fails_its_step_alone(
    world: World, mill: Mill, step_type: str, reason: str
) -> None:
    job_id = mill.submit(f"type: {step_type}")
    with working(world):
        mill.reaches(job_id, "FAILED")
    assert reason in world.steps(job_id)["check"].error["message"]


def test_a_question_nobody_answers_is_put_again_until_the_attempts_are_used_up(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: brief wait\nmax_attempts: 2\nbackoff: 0")
    with working(world):
        mill.reaches(job_id, "FAILED")
    assert world.steps(job_id)["check"].error["code"] == "deadline_passed"
    with world.looking() as connection:
        query = select(table.c.status).where(table.c.job_id == job_id)
        assert list(connection.execute(query).scalars()) == ["withdrawn", "withdrawn"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"severity": "awful"}, "severity is one of info, warning, error, critical"),
        ({"title": ""}, "code and title are texts"),
        ({"answer_schema": {}}, "nobody waits"),
        ({"details": 3}, "details is a mapping"),
    ],
)
def test_an_issue_that_makes_no_sense_is_refused_where_it_is_made(wrong: dict[str, object], reason: str) -> None:
    with pytest.raises(PermanentError, match=reason):
        Issue(**{"code": "odd", "title": "Odd", **wrong})  # type: ignore[arg-type]
