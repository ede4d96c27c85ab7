"""A batch whose workers are killed on the way: never more active jobs than its limit, each effect once, one end."""

import signal

import pytest
from sqlalchemy import func, select

from docmill.db.tables import batches, jobs
from docmill.model.statuses import JobStatus
from docmill.testing import fault_steps
from docmill.testing.verdict import Verdict, examine
from tests.fault import shelling
from tests.fault.conftest import OpenFleet, volume

JOBS = volume(420, 10_000)
DEATHS = volume(9, 60)


def test_a_batch_keeps_its_limit_and_ends_once_however_its_workers_die(open_fleet: OpenFleet) -> None:
    with open_fleet() as fleet:
        assert shelling.shelled(fleet, jobs=JOBS, deaths=DEATHS, patience=volume(180, 3600)) == []
        assert fleet.deaths >= DEATHS
        # Steps were lost and given back: somebody was hurt.
        assert Verdict(fleet.database, fleet.witness).crashes > 0
        (view,) = fleet.app.batches.list()
        assert (view.status, view.counts) == (JobStatus.COMPLETED, {JobStatus.COMPLETED: JOBS})
        assert fleet.scalar("select count(*) from effects") == JOBS
        with fleet.database.read() as connection:
            last = connection.execute(select(func.max(jobs.c.finished_at))).scalar()
            ended = connection.execute(select(batches.c.finished_at)).scalar()
        # Written by the transaction that ended the last job, and by none after it.
        assert ended == last


@pytest.mark.parametrize("point", shelling.POINTS)
def test_a_worker_that_dies_while_counting_leaves_the_count_right(open_fleet: OpenFleet, point: str) -> None:
    with open_fleet() as fleet:
        fleet.register(fault_steps.BUSY)
        batch_id = fleet.submit_batch("fault busy", 20, limit=3)
        victim = fleet.start(f"{point}:4:kill")
        assert victim.wait() == -signal.SIGKILL
        assert shelling.accounts(fleet, batch_id) == []
        fleet.start()
        fleet.finish()
        assert shelling.accounts(fleet, batch_id) == []
        assert examine(fleet.database, fleet.witness) == []
