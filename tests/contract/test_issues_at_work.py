"""Issues with a real worker: raised by steps, answered by people, applied exactly once whatever dies.

Long because all stories are told with one plug-in and one worker.
"""

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
from sqlalchemy import select, text

import docmill.steps.finish
import docmill.steps.human
from docmill.db.tables import issues as table
from docmill.db.tables import jobs as jobs_table
from docmill.engine import failpoints
from docmill.engine.bell import open_bell
from docmill.engine.lease import LeaseSettings
from docmill.engine.worker import Worker, WorkerSettings
from docmill.model.issues import IssueAction, IssueSeverity
from docmill.plugin import (
    ApplyContext,
    FollowUp,
    Issue,
    PermanentError,
    Registry,
    RetryableError,
    StepContext,
    Wait,
    processor,
    step,
)
from docmill.services.issues import Issues, IssueView
from docmill.services.jobs import Jobs
from docmill.services.retrying import Retry
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.waiting import until
from docmill.testing.world import World

LEASE = LeaseSettings(duration=60.0, heartbeat=0.2, sweep=0.1)
MISMATCH = Issue(code="total_mismatch", title="The total is not the sum", blocking=True, details={"sum": 110})
computed: dict[str, int] = {}


def count(ctx: StepContext) -> int:
    computed[ctx.job_id] = computed.get(ctx.job_id, 0) + 1
    return computed[ctx.job_id]


@step("validate", kind="rule")
async def validate(ctx: StepContext) -> dict[str, object]:
    """Finds a total that is wrong, unless somebody has looked at it."""
    seen = await ctx.resolutions()
    if not seen:
        ctx.issue(MISMATCH)
    count(ctx)
    return {"total": 100, "lines": 2, "resolutions": [[each.code, each.action, each.data] for each in seen]}


@step("validate paid", kind="ai")
async def validate_paid(ctx: StepContext) -> dict[str, object]:
    """The same, for money; and wants a follow-up job."""
    count(ctx)
    ctx.follow_up(FollowUp(template="child", entity_type="document", entity_id=f"{ctx.entity_id}-child"))
    ctx.issue(MISMATCH)
    return {"total": 100, "lines": 2}


@step("undecided")
async def undecided(ctx: StepContext) -> dict[str, object]:
    """Wants another follow-up job each time, and always asks."""
    ctx.follow_up(FollowUp(template="child", entity_type="document", entity_id=f"{ctx.entity_id}-{count(ctx)}"))
    ctx.issue(MISMATCH)
    return {"total": 100}


@step("read pages")
async def read_pages(ctx: StepContext, item: str) -> str:
    """Doubts the second page until somebody has looked at it."""
    count(ctx)
    if item == "p2" and not await ctx.resolutions():
        ctx.issue(MISMATCH)
    return item


@step("remark", kind="ai")
async def remark(ctx: StepContext) -> dict[str, object]:
    """Says something nobody waits for."""
    count(ctx)
    ctx.issue(Issue(code="blurred", title="Page 2 is blurred", severity="warning"))
    return {"total": 100}


@step("fickle")
async def fickle(ctx: StepContext) -> dict[str, object]:
    """Doubts only what it finds at the first attempt."""
    if ctx.attempt == 1:
        ctx.issue(MISMATCH)
    return {"total": 100}


@step("two questions")
def two_questions(ctx: StepContext) -> dict[str, object]:
    ctx.issue(MISMATCH)
    ctx.issue(Issue(code="vendor_unknown", title="Who is this?", blocking=True, severity="critical"))
    return {"total": 100, "vendor": None}


@step("raises and fails")
async def raises_and_fails(ctx: StepContext) -> None:
    ctx.issue(MISMATCH)
    raise PermanentError("No.")


@step("unstorable issue")
async def unstorable_issue(ctx: StepContext) -> None:
    ctx.issue(Issue(code="odd", title="Odd", details={"thing": object()}))


@step("unanswerable issue")
async def unanswerable_issue(ctx: StepContext) -> None:
    ctx.issue(Issue(code="odd", title="Odd", blocking=True, answer_schema={"type": "banana"}))


@step("use", kind="rule")
async def use(ctx: StepContext, results: dict[str, dict[str, object]]) -> dict[str, object]:
    return {"seen": results["check"].get("total")}


@step("brief wait", kind="human")
async def brief_wait(ctx: StepContext) -> Wait:
    return Wait(within=0.0, issue=Issue(code="hurry", title="Quick!", blocking=True))


@processor("tests", "save")
def save(ctx: ApplyContext, result: dict[str, object]) -> None:
    ctx.db.execute("insert into saved values (:job, :total)", {"job": ctx.job_id, "total": result["total"]})


@processor("tests", "save and remark")
def save_and_remark(ctx: ApplyContext, result: dict[str, object]) -> None:
    save(ctx, result)
    ctx.issue(Issue(code="saved_twice", title="There was one like it", severity="info"))


@processor("tests", "moody")
def moody(ctx: ApplyContext, result: dict[str, object]) -> None:
    """Refuses the first attempt, which asks it twice: the fast way and the full way."""
    asked[ctx.job_id] = asked.get(ctx.job_id, 0) + 1
    if asked[ctx.job_id] <= 2:
        raise RetryableError("Not in the mood.", retry_after=0.0)
    save(ctx, result)


asked: dict[str, int] = {}


@processor("tests", "mended")
def mended(ctx: ApplyContext, result: dict[str, object]) -> None:
    """Refuses for good, until somebody mends what is wrong."""
    asked[ctx.job_id] = asked.get(ctx.job_id, 0) + 1
    if asked[ctx.job_id] <= 2:
        raise PermanentError("Broken.")
    save(ctx, result)


@processor("tests", "block")
def block(ctx: ApplyContext, result: dict[str, object]) -> None:
    save(ctx, result)
    ctx.issue(MISMATCH)


class Mill:
    """A worker at work on one template, and the services people use."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._bell = open_bell(world.database, world.run_dir)
        self.issues = Issues(world.database, self._bell)
        self.jobs = Jobs(world.database, self._bell)
        with world.database.write() as connection:
            connection.execute(text("create table saved (job text, total integer)"))

    def submit(self, check: str) -> str:
        source = f"""
name: intake
processable_type: document
service_name: tests
steps:
  - step_key: check
{"".join(f"    {line}" + chr(10) for line in check.splitlines())}
  - {{step_key: after, type: use, depends_on: [check]}}
  - {{step_key: finish, type: FinishProcessing}}
"""
        plan = compile_template(source, catalogue=Catalogue.permissive(), source="intake").plan
        job = self.world.new_job(plan)
        self.jobs.submit([job])
        return job.id

    def reaches(self, job_id: str, status: str) -> None:
        until(lambda: self.world.job(job_id).status == status, 30.0, what=f"the job to be {status}")

    def open_issues(self, job_id: str) -> list[IssueView]:
        return list(self.issues.list(job_id=job_id, order="severity"))

    def saved(self) -> list[int]:
        with self.world.looking() as connection:
            return list(connection.execute(text("select total from saved order by total")).scalars())

    def result(self, job_id: str, key: str = "check") -> object:
        return self.world.steps(job_id)[key].result

    def close(self) -> None:
        for service in (self.issues, self.jobs, self._bell):
            service.close()


@pytest.fixture
def mill(world: World) -> Iterator[Mill]:
    mill = Mill(world)
    yield mill
    mill.close()


@contextmanager
def working(world: World) -> Iterator[None]:
    registry = Registry()
    for module in (sys.modules[__name__], docmill.steps.finish, docmill.steps.human):
        registry.add_module(module)
    worker = Worker(world.database, registry, WorkerSettings(run_dir=world.run_dir, lease=LEASE, drain_seconds=0.2))
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(lambda: asyncio.run(worker.run()))
        try:
            yield
        finally:
            worker.stop()
            end.result(60)


def test_a_corrected_value_reaches_the_next_step_and_is_applied_exactly_once(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: validate\nprocessor_method: save")
    with working(world):
        mill.reaches(job_id, "WAITING")
        (issue,) = mill.open_issues(job_id)
        assert (issue.code, issue.details, issue.step_key) == ("total_mismatch", {"sum": 110}, "check")
        assert (issue.severity, issue.blocking, issue.corrects) == (IssueSeverity.ERROR, True, True)
        assert mill.saved() == []
        mill.issues.resolve(issue.id, {"total": 110}, by="ann")
        mill.reaches(job_id, "COMPLETED")
    assert mill.saved() == [110]
    assert mill.result(job_id, "after") == {"seen": 110}
    assert computed[job_id] == 1
    assert mill.open_issues(job_id) == []


def test_without_a_processor_the_answer_completes_the_step_and_submits_what_it_wanted(world: World, mill: Mill) -> None:
    child = compile_template(
        "name: child\nprocessable_type: document\nsteps:\n  - {step_key: finish, type: FinishProcessing}\n",
        catalogue=Catalogue.permissive(),
        source="child",
    )
    world.template(child.plan)
    job_id = mill.submit("type: validate paid")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, {"total": 110})
        mill.reaches(job_id, "COMPLETED")
        with world.looking() as connection:
            children = select(jobs_table.c.entity_id).where(jobs_table.c.parent_job_id == job_id)
            assert list(connection.execute(children).scalars()) == [f"{job_id}-child"]
    assert mill.result(job_id) == {"total": 110, "lines": 2}


def child_template(world: World) -> None:
    source = "name: child\nprocessable_type: document\nsteps:\n  - {step_key: finish, type: FinishProcessing}\n"
    world.template(compile_template(source, catalogue=Catalogue.permissive(), source="child").plan)


def children(world: World, job_id: str) -> list[str]:
    with world.looking() as connection:
        query = select(jobs_table.c.entity_id).where(jobs_table.c.parent_job_id == job_id)
        return list(connection.execute(query).scalars())


def test_who_is_asked_about_an_item_can_have_it_done_again_and_the_others_stay_done(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: read pages\nfor_each: \"['p1', 'p2', 'p3']\"")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, action="retry")
        mill.reaches(job_id, "COMPLETED")
    assert computed[job_id] == 4


def test_follow_ups_are_those_of_the_compute_whose_result_was_answered(world: World, mill: Mill) -> None:
    child_template(world)
    job_id = mill.submit("type: undecided")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, action="retry")
        until(lambda: computed[job_id] == 2, 30.0, what="the second compute")
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id)
        mill.reaches(job_id, "COMPLETED")
        assert children(world, job_id) == [f"{job_id}-2"]


def test_follow_ups_of_a_result_that_is_applied_only_in_a_later_run_are_submitted_then_and_once(
    world: World, mill: Mill
) -> None:
    child_template(world)
    job_id = mill.submit("type: validate paid\nprocessor_method: mended")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id)
        mill.reaches(job_id, "FAILED")
        assert children(world, job_id) == []
        mill.jobs.retry(job_id)
        mill.reaches(job_id, "COMPLETED")
        assert children(world, job_id) == [f"{job_id}-child"]
        until(lambda: not mill.jobs.active("document", f"{job_id}-child"), 30.0, what="the follow-up to end")
        mill.jobs.retry(job_id, Retry(everything=True))
        until(
            lambda: world.job(job_id).run == 3 and world.job(job_id).status == "COMPLETED", 30.0, what="the third run"
        )
        assert children(world, job_id) == [f"{job_id}-child"]
    assert computed[job_id] == 1


def test_an_issue_that_does_not_block_does_not_stop_the_job(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: remark")
    with working(world):
        mill.reaches(job_id, "COMPLETED")
    (issue,) = mill.open_issues(job_id)
    assert (issue.code, issue.severity, issue.blocking) == ("blurred", IssueSeverity.WARNING, False)


def test_several_blocking_issues_are_all_answered_before_the_step_goes_on(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: two questions\nprocessor_method: save")
    with working(world):
        mill.reaches(job_id, "WAITING")
        worst, other = mill.open_issues(job_id)
        assert (worst.code, other.code) == ("vendor_unknown", "total_mismatch")
        mill.issues.resolve(worst.id, {"vendor": "ACME"})
        assert world.job(job_id).status == "WAITING"
        mill.issues.resolve(other.id, {"total": 7})
        mill.reaches(job_id, "COMPLETED")
    assert mill.result(job_id) == {"total": 7, "vendor": "ACME"}
    assert mill.saved() == [7]


def test_a_step_that_runs_again_knows_what_was_said(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: validate\nprocessor_method: save")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, {"hint": 3}, action=IssueAction.RETRY)
        mill.reaches(job_id, "COMPLETED")
    assert mill.result(job_id) == {
        "total": 100,
        "lines": 2,
        "resolutions": [["total_mismatch", "retry", {"hint": 3}]],
    }
    assert (computed[job_id], mill.saved()) == (2, [100])


def test_a_human_task_asks_for_what_its_schema_says(world: World, mill: Mill) -> None:
    job_id = mill.submit(
        """type: human.task
answer_within: 2d
input: {title: "'Enter the total of ' + metadata.name", severity: "'critical'", assigned_to: "'ann'", page: 3}
output_schema: {type: object, properties: {total: {type: number}}, required: [total]}
processor_method: save"""
    )
    with working(world):
        mill.reaches(job_id, "WAITING")
        (issue,) = mill.open_issues(job_id)
        granted = world.steps(job_id)["check"].deadline_at - issue.created_at
        assert abs(granted.total_seconds() - 2 * 86400) < 60
        assert (issue.code, issue.assigned_to, issue.details) == ("task", "ann", {"page": 3})
        assert (issue.severity, issue.corrects) == (IssueSeverity.CRITICAL, False)
        assert issue.title.startswith("Check"), "no title came of the expression: the step's key and what it is about"
        mill.issues.resolve(issue.id, {"total": 12})
        mill.reaches(job_id, "COMPLETED")
    assert (mill.result(job_id), mill.saved()) == ({"total": 12}, [12])


def test_a_processor_opens_an_issue_with_what_it_writes(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: remark\nprocessor_method: save and remark")
    with working(world):
        mill.reaches(job_id, "COMPLETED")
    assert [issue.code for issue in mill.open_issues(job_id)] == ["blurred", "saved_twice"]
    assert mill.saved() == [100]


def test_a_processor_cannot_wait_for_a_person(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: remark\nprocessor_method: block")
    with working(world):
        mill.reaches(job_id, "FAILED")
    error = world.steps(job_id)["check"].error
    assert error["code"] == "permanent"
    assert "a processor cannot wait for a person" in error["message"]
    assert mill.saved() == []


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
