"""Every transaction leaves one event on each job it changed, and the events of a job are a chain that verifies."""

from itertools import pairwise

import pytest
from sqlalchemy import delete, text, update

from docmill.db.tables import job_events, jobs
from docmill.engine.batch import Batch, Report
from docmill.engine.chain import verify_chain
from docmill.engine.events import Cancelled, Completed, Failed, Released, Rerun, Suspended
from docmill.model.ids import new_id
from docmill.testing.samples import Draft, chain, diamond, fan_out, make_plan, single_step
from docmill.testing.world import ANN, World, lease


def test_one_event_per_transaction_and_job(world: World) -> None:
    first, second = world.submit(chain(2)), world.submit(chain(2))
    runs = world.claim()
    world.commit(Batch(reports=[Report(job_id=run.job.id, event=Completed(**lease(run))) for run in runs]))
    for job_id in (first, second):
        assert [event.version for event in world.events(job_id)] == [1, 2, 3]
        assert world.job(job_id).version == 3


def test_a_transaction_that_changes_nothing_leaves_no_event(world: World) -> None:
    job_id = world.submit(chain(2))
    run = world.claim_one()
    world.complete(run)
    before = world.events(job_id)
    world.complete(run)
    world.report(job_id, Released(**lease(run)))
    world.claim(queue="nobody")
    assert world.events(job_id) == before


def test_an_event_tells_what_happened(world: World) -> None:
    job_id = world.submit(make_plan([Draft(key="a", max_attempts=1), Draft(key="b", group=2)]))
    run = world.claim_one()
    world.report(job_id, Failed(**lease(run), error='{"code": "x", "n": 1.50}'))
    assert [event.data for event in world.events(job_id)] == [
        {"steps": [["a", "PENDING", "READY"]]},
        {"job": ["PENDING", "IN_PROGRESS"], "steps": [["a", "READY", "IN_PROGRESS"]]},
        {
            "job": ["IN_PROGRESS", "FAILED"],
            "steps": [
                ["a", "IN_PROGRESS", "FAILED", "failed"],
                ["b", "PENDING", "SKIPPED", "job_failed"],
                ["finish", "PENDING", "SKIPPED", "job_failed"],
            ],
            "errors": {"a": {"code": "x", "n": 1.5}},
        },
    ]


def test_the_events_tell_the_status_of_the_job_without_a_gap(world: World) -> None:
    """Also where one transaction carries the job through several statuses."""
    job_id = world.submit(fan_out(2))
    first, second = world.claim()
    world.complete(first)
    # Waits, and goes on, in one transaction.
    world.report(job_id, Suspended(**lease(second), deadline=None), Completed(**lease(second)))
    world.report(job_id, Cancelled())
    # Begins again and is claimed at once.
    again = Report(job_id=job_id, event=Rerun(positions=frozenset({0})))
    assert world.commit(Batch(reports=[again], worker=ANN, reserve=lambda queue: True)).started
    told = [event.data["job"] for event in world.events(job_id) if "job" in event.data]
    assert told[0][0] == "PENDING"
    assert told[-1][1] == world.job(job_id).status == "IN_PROGRESS"
    assert all(before[1] == after[0] for before, after in pairwise(told)), told


def test_a_chain_that_nobody_touched_verifies(world: World) -> None:
    job_id = world.submit(diamond())
    world.run_to_end()
    world.report(job_id, Rerun(positions=frozenset({0})))
    world.run_to_end()
    with world.looking() as connection:
        assert verify_chain(connection, job_id) == []


TAMPERINGS = {
    "changed": update(job_events).values(data={"steps": []}).where(job_events.c.version == 2),
    "removed": delete(job_events).where(job_events.c.version == 2),
    "cut off": delete(job_events).where(job_events.c.version > 2),
    "all gone": delete(job_events),
    "moved": update(job_events).values(version=99).where(job_events.c.version == 1),
    "another head": update(jobs).values(chain=b"x" * 32),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_chain_that_somebody_touched_does_not(world: World, name: str) -> None:
    job_id = world.submit(single_step())
    world.run_to_end()
    with world.database.write() as connection:
        connection.execute(TAMPERINGS[name])
    with world.looking() as connection:
        assert verify_chain(connection, job_id)
    world.clear()


def test_a_job_that_is_not_there_has_no_chain(world: World) -> None:
    with world.looking() as connection:
        assert [fault.problem for fault in verify_chain(connection, new_id())] == ["there is no such job"]


def test_the_last_event_rewritten_with_its_head_is_found_by_the_one_before(world: World) -> None:
    """The hash covers job, version and text: an event copied from another job does not fit."""
    one, two = world.submit(single_step()), world.submit(single_step())
    with world.database.write() as connection:
        copied = text(
            "update processing_job_events set hash = (select hash from processing_job_events where job_id = :one)"
            " where job_id = :two"
        )
        connection.execute(copied, {"one": one, "two": two})
        connection.execute(
            text(
                "update processing_jobs set chain = (select chain from processing_jobs where id = :one) where id = :two"
            ),
            {"one": one, "two": two},
        )
    with world.looking() as connection:
        assert verify_chain(connection, one) == []
        assert [fault.version for fault in verify_chain(connection, two)] == [1]
    world.clear()
