"""Lane A survives what the database refuses: the step that brought it fails, and its neighbours never notice."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from docmill.engine.batch import Part, Report, StepRun
from docmill.engine.bell import open_bell
from docmill.engine.events import Completed
from docmill.engine.inflight import Inflight
from docmill.engine.known import KnownJobs
from docmill.engine.lane_a import Item, LaneA
from docmill.engine.lease import Lease, monotonic
from docmill.engine.pools import Slots
from docmill.testing.samples import single_step
from docmill.testing.world import ANN, World, lease


@contextmanager
def lane_of(world: World, *running: StepRun) -> Iterator[LaneA]:
    """Lane A of the worker ANN, which runs these steps and has no pool to claim for."""
    inflight = Inflight(on_lost=lambda keys: None)
    # Steps that nobody here knows of would be released after a while.
    inflight.add(running)
    held = Lease(3600.0)
    held.renewed(ANN, monotonic())
    bell = open_bell(world.database, world.run_dir)
    lane = LaneA(
        world.database,
        world.plans,
        KnownJobs(),
        lease=held,
        slots=Slots([]),
        inflight=inflight,
        bell=bell,
        on_started=lambda runs: None,
    )
    lane.start()
    try:
        yield lane
    finally:
        lane.close()
        bell.close()


def handed_in(lane: LaneA, entry: Report | Part) -> "Future[bool]":
    told: Future[bool] = Future()
    lane.put(Item(entry, None, told.set_result, 100))
    return told


def bad_part(run: StepRun) -> Part:
    return Part(job_id=run.job.id, **lease(run), name="a\0b" * 3000, value="1")


def bad_result(run: StepRun) -> Report:
    return Report(job_id=run.job.id, event=Completed(**lease(run), result="no JSON"))


def refuse_as_postgres_would(world: World) -> None:
    """SQLite takes any text for a part's name and for JSON."""
    if world.database.kind == "sqlite":
        refusal = "begin select raise(abort, 'refused'); end"
        with world.database.write() as connection:
            connection.exec_driver_sql(f"create trigger part before insert on processing_step_parts {refusal}")
            connection.exec_driver_sql(
                f"create trigger result before update on processing_job_steps when new.result = 'no JSON' {refusal}"
            )


@pytest.mark.parametrize("bad", [bad_part, bad_result], ids=["part", "result"])
def test_what_the_database_refuses_fails_its_own_step_alone(
    world: World, bad: Callable[[StepRun], Report | Part]
) -> None:
    refuse_as_postgres_would(world)
    culprit, neighbour = world.submit(single_step()), world.submit(single_step())
    runs = {run.job.id: run for run in world.claim(2)}
    with lane_of(world, *runs.values()) as lane:
        refused = handed_in(lane, bad(runs[culprit]))
        done = Report(job_id=neighbour, event=Completed(**lease(runs[neighbour]), result="1"))
        assert handed_in(lane, done).result(30)
        refused.result(30)
        assert lane.thread.is_alive()
    assert world.steps(culprit)["a"].error["code"] == "result_refused"
    assert world.steps(neighbour)["a"].status == "COMPLETED"


def test_a_step_whose_part_is_refused_learns_that_it_is_no_longer_its_own(world: World) -> None:
    refuse_as_postgres_would(world)
    world.submit(single_step())
    run = world.claim_one()
    with lane_of(world, run) as lane:
        assert handed_in(lane, bad_part(run)).result(30) is False
