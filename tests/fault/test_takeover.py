"""A killed worker's work goes on at once on the same host, long before its lease could run out."""

import time

import pytest

from docmill.testing import fault_steps
from docmill.testing.fleet import Lease
from docmill.testing.verdict import examine
from tests.fault.conftest import OpenFleet, volume

LONG = Lease(duration=60.0, heartbeat=20.0, sweep=0.3)
BOUND = 20.0
"""Seconds. The promise is 3 s on a machine that does nothing else; here it must only be far below the lease."""


def test_without_faults_everything_is_done_once(open_fleet: OpenFleet) -> None:
    with open_fleet() as fleet:
        fleet.start()
        fleet.submit("fault everything", 20)
        fleet.finish()
        assert examine(fleet.database, fleet.witness) == []
        assert set(fleet.witness.counts("asked").values()) == {1}


@pytest.mark.parametrize("round_", range(volume(1, 10)))
def test_a_restarted_worker_takes_over_at_once(open_fleet: OpenFleet, round_: int) -> None:
    with open_fleet(lease=LONG) as fleet:
        fleet.register(fault_steps.single("held", "fault.ask"))
        victim = fleet.start(ready=True, fresh=True)
        (job,) = fleet.submit("held", gate="take")
        fleet.witness.wait_for("asked")
        victim.kill()
        killed_at = time.monotonic()
        # A new interpreter, imports and all, as a supervisor would start it.
        successor = fleet.start(fresh=True)
        asked = fleet.witness.wait_for("asked", lambda notes: len(notes) == 2, BOUND)
        assert asked[1].pid == successor.pid
        print(f"taken over after {asked[1].at - killed_at:.2f} s on {fleet.database.kind}")
        fleet.witness.open_gate("take-2")
        fleet.finish()
        assert fleet.scalar("select crashes from processing_job_steps where job_id = :job", job=job) == 1
        assert examine(fleet.database, fleet.witness) == []


def test_a_worker_that_stands_by_takes_over_at_once(open_fleet: OpenFleet) -> None:
    with open_fleet(lease=LONG) as fleet:
        fleet.register(fault_steps.single("held", "fault.ask"))
        victim = fleet.start(ready=True)
        fleet.submit("held", gate="take")
        fleet.witness.wait_for("asked")
        fleet.start(ready=True)
        victim.kill()
        killed_at = time.monotonic()
        asked = fleet.witness.wait_for("asked", lambda notes: len(notes) == 2, BOUND)
        print(f"taken over after {asked[1].at - killed_at:.2f} s on {fleet.database.kind}")
        fleet.witness.open_gate("take-2")
        fleet.finish()
        assert examine(fleet.database, fleet.witness) == []
