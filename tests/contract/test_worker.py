"""A whole worker in this process: what it begins it finishes or gives back, and it can always be stopped."""

import asyncio
import sys
from collections import Counter
from threading import Event, current_thread

import pytest
from sqlalchemy import select

from docmill.db.tables import jobs
from docmill.engine import failpoints
from docmill.model.errors import DatabaseUnavailable
from docmill.plugin import ApplyContext, FollowUp, RetryableError, StepContext, processor, step
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.samples import Draft, make_plan
from docmill.testing.serving import serving
from docmill.testing.waiting import until
from docmill.testing.world import World


@step("endless")
async def endless(ctx: StepContext) -> None:
    """Runs until it is cancelled."""
    await asyncio.Event().wait()


@step("begets", kind="ai")
async def begets(ctx: StepContext) -> dict[str, object]:
    """Wants a follow-up job."""
    ctx.follow_up(FollowUp(template="child", entity_type="document", entity_id="d2"))
    return {}


@step("begets unpaid")
async def begets_unpaid(ctx: StepContext) -> dict[str, object]:
    """The same, with a result that is kept only because its apply failed."""
    return await begets(ctx)


@processor("tests", "moody")
def moody(ctx: ApplyContext, result: object) -> None:
    """Refuses at the first attempt, which asks it twice: the fast way and the full way."""
    _asked[ctx.job_id] += 1
    if _asked[ctx.job_id] <= 2:
        raise RetryableError("Not in the mood.", retry_after=0.0)


_asked: Counter[str] = Counter()

PARENT = """
name: parent
processable_type: document
service_name: tests
steps:
  - {step_key: a, type: TYPE, processor_method: moody}
  - {step_key: finish, type: FinishProcessing}
"""


HERE = sys.modules[__name__]


def test_a_step_being_claimed_when_the_drain_begins_is_given_back_uncounted(world: World) -> None:
    job_id = world.submit(make_plan([Draft(key="a", step_type="endless")]))
    asked, begun = Event(), Event()

    with serving(world.database, world.run_dir, HERE) as (worker, end):

        def meddle(point: str) -> None:
            if point == "drain.begun":
                begun.set()
            elif point == "commit.inside" and current_thread().name == "docmill-lane-a" and not asked.is_set():
                # The claim is about to be committed; the drain begins before it is.
                asked.set()
                worker.stop()
                begun.wait(30)

        failpoints.hook(meddle)
        try:
            end.result(60)
        finally:
            failpoints.hook(None)
    world.sweep()
    found = world.steps(job_id)["a"]
    assert asked.is_set()
    assert (found.status, found.crashes, found.failures) == ("READY", 0, 0)


def test_a_worker_can_be_stopped_while_its_database_is_away(world: World) -> None:
    world.submit(make_plan([Draft(key="a", step_type="endless")]))
    failing = Event()

    def away(point: str) -> None:
        if point == "commit.inside" and current_thread().name == "docmill-lane-a":
            failing.set()
            raise DatabaseUnavailable("The server is away.")

    failpoints.hook(away)
    try:
        with serving(world.database, world.run_dir, HERE) as (worker, end):
            assert failing.wait(30)
            worker.stop()
            with pytest.raises(DatabaseUnavailable):
                end.result(60)
    finally:
        failpoints.hook(None)


@pytest.mark.parametrize("step_type", ["begets", "begets unpaid"])
def test_a_follow_up_that_the_compute_wanted_survives_a_failed_apply(world: World, step_type: str) -> None:
    source = PARENT.replace("TYPE", step_type)
    world.template(make_plan([], name="child", finish=Draft(key="finish", step_type="FinishProcessing")))
    job_id = world.submit(compile_template(source, catalogue=Catalogue.permissive(), source="parent").plan)
    with serving(world.database, world.run_dir, HERE):
        until(lambda: world.job(job_id).status == "COMPLETED", 30.0, what="the job to complete")
        with world.looking() as connection:
            query = select(jobs.c.parent_job_id).where(jobs.c.id != job_id)
            assert list(connection.execute(query).scalars()) == [job_id]
