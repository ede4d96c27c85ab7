"""A plug-in whose steps ask people, and a worker at work on it, for tests."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from docmill.engine.bell import open_bell
from docmill.plugin import (
    ApplyContext,
    FollowUp,
    Issue,
    PermanentError,
    RetryableError,
    StepContext,
    Wait,
    processor,
    step,
)
from docmill.services.issues import Issues, IssueView
from docmill.services.jobs import Jobs
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.serving import serving
from docmill.testing.waiting import until
from docmill.testing.world import World

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


@contextmanager
def working(world: World) -> Iterator[None]:
    with serving(world.database, world.run_dir, sys.modules[__name__]) as (worker, end):
        try:
            yield
        finally:
            worker.stop()
            end.result(60)


def child_template(world: World) -> None:
    source = "name: child\nprocessable_type: document\nsteps:\n  - {step_key: finish, type: FinishProcessing}\n"
    world.template(compile_template(source, catalogue=Catalogue.permissive(), source="child").plan)
