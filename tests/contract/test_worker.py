"""A whole worker in this process: what it begins it finishes or gives back, and it can always be stopped."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from threading import Event, current_thread

import pytest
from sqlalchemy import select

from docmill.db.tables import jobs, workers
from docmill.engine import failpoints
from docmill.engine.batch import Batch
from docmill.engine.lease import LeaseSettings
from docmill.model.errors import DatabaseUnavailable
from docmill.plugin import (
    ApplyContext,
    FollowUp,
    RetryableError,
    StepContext,
    entity_loader,
    processor,
    step,
)
from docmill.plugin import Database as PluginDatabase
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.plan import Plan
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

STEPS = sys.modules[__name__]


def test_a_step_being_claimed_when_the_drain_begins_is_given_back_uncounted(world: World) -> None:
    job_id = world.submit(make_plan([Draft(key="a", step_type="endless")]))
    asked, begun = Event(), Event()

    with serving(world.database, world.run_dir, STEPS) as (worker, end):

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
        with serving(world.database, world.run_dir, STEPS) as (worker, end):
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
    with serving(world.database, world.run_dir, STEPS):
        until(lambda: world.job(job_id).status == "COMPLETED", 30.0, what="the job to complete")
        with world.looking() as connection:
            query = select(jobs.c.parent_job_id).where(jobs.c.id != job_id)
            assert list(connection.execute(query).scalars()) == [job_id]


@step("blocks")
async def blocks(ctx: StepContext) -> dict[str, object]:
    """Stops the loop until it may go on, as a computation would."""
    _running.set()
    _go_on.wait(60)
    return {}


@step("blocks a thread")
def blocks_a_thread(ctx: StepContext) -> dict[str, object]:
    """The same, where it harms nobody."""
    _running.set()
    _go_on.wait(60)
    return {}


_running, _go_on = Event(), Event()
SHORT = LeaseSettings(duration=0.8, heartbeat=0.1, sweep=0.1, loop_patience=0.5)


@entity_loader("document")
def load(db: PluginDatabase, entity_id: str) -> dict[str, object]:
    """Hangs for some, and never looks at the database."""
    if entity_id in _hanging:
        _asked[entity_id] += 1
        _go_on.wait(60)
    return {"id": entity_id}


@step("looks")
async def looks(ctx: StepContext, entity: dict[str, object]) -> object:
    """Needs its entity."""
    return entity["id"]


_hanging: set[str] = set()


@pytest.fixture
def going() -> Iterator[None]:
    """The steps above are held until the test lets them go on."""
    _hanging.clear()
    for event in (_running, _go_on):
        event.clear()
    yield
    _go_on.set()


@pytest.mark.usefixtures("going")
def test_a_worker_whose_loop_is_blocked_gives_up_its_steps_until_it_turns_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = world.submit(_plan("blocks"))
    with serving(world.database, world.run_dir, STEPS, lease=SHORT):
        assert _running.wait(30)

        def given_back() -> bool:
            # By whoever sweeps first once the lease has run out: this sweep, or the worker's own.
            world.sweep(queues=())
            return bool(world.steps(job_id)["a"].crashes == 1)

        until(given_back, 30.0, what="the step to be given back")
        assert "stood still" in caplog.text
        _go_on.set()
        until(lambda: world.job(job_id).status == "COMPLETED", 30.0, what="the worker to serve again")


@pytest.mark.usefixtures("going")
def test_a_worker_is_not_given_up_for_a_step_that_blocks_a_thread(world: World) -> None:
    job_id = world.submit(_plan("blocks a thread"))
    with serving(world.database, world.run_dir, STEPS, lease=SHORT):
        assert _running.wait(30)
        began = _lease_ends(world)
        until(lambda: _lease_ends(world) - began > timedelta(seconds=3), 30.0, what="several leases to pass")
        assert world.sweep(queues=()).dead == ()
        _go_on.set()
        until(lambda: world.job(job_id).status == "COMPLETED", 30.0, what="the job to complete")
    assert world.steps(job_id)["a"].crashes == 0


@pytest.mark.usefixtures("going")
def test_loaders_that_hang_fail_their_own_steps_and_hold_up_no_others(world: World) -> None:
    hanging = [world.new_job(_plan("looks")) for _ in range(3)]
    _hanging.update(job.entity_id for job in hanging)
    world.commit(Batch(submissions=hanging))
    with serving(world.database, world.run_dir, STEPS, lease=SHORT, read_patience=0.3):
        # More of them than there are threads that read.
        until(lambda: all(_asked[job.id] for job in hanging), 30.0, what="all of them to hang")
        healthy = world.submit(_plan("looks"))
        until(lambda: world.job(healthy).status == "COMPLETED", 30.0, what="the healthy one to complete")
        until(lambda: all(_error(world, job.id) for job in hanging), 30.0, what="the others to fail")
        assert "was given up" in _error(world, hanging[0].id)
        _go_on.set()
        until(lambda: {world.job(job.id).status for job in hanging} == {"COMPLETED"}, 30.0, what="a new attempt")


def _error(world: World, job_id: str) -> str:
    found = world.steps(job_id)["a"]
    return str(found.error["message"]) if found.failures else ""


def _plan(step_type: str) -> Plan:
    first = Draft(key="a", step_type=step_type, backoff=0.5, max_attempts=100)
    return make_plan([first], finish=Draft(key="finish", step_type="FinishProcessing"))


def _lease_ends(world: World) -> datetime:
    with world.looking() as connection:
        ends: datetime = connection.execute(select(workers.c.expires_at).where(workers.c.pid > 1)).scalar_one()
    return ends
