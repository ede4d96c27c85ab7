"""What kills its worker is stopped after three deaths; its neighbours complete; nothing recorded is computed again."""

import pytest

from docmill.testing import fault_steps
from docmill.testing.fleet import Fleet
from docmill.testing.verdict import examine
from tests.fault.conftest import OpenFleet, volume


def keep(fleet: Fleet, workers: int) -> None:
    """Start again whoever died, as a supervisor would."""
    fleet.reap()
    while len(fleet.workers) < workers:
        fleet.start()


def test_a_poison_step_ends_as_worker_died_and_takes_nobody_along(open_fleet: OpenFleet) -> None:
    with open_fleet() as fleet:
        fleet.register(
            fault_steps.single("poison", "fault.poison"),
            fault_steps.single("innocent", "fault.plain", processor_method="record"),
            fault_steps.single("innocent model", "fault.ask", processor_method="record"),
        )
        (poison,) = fleet.submit("poison")
        fleet.submit("innocent", 15)
        fleet.submit("innocent model", 15)

        def done() -> bool:
            keep(fleet, 2)
            return fleet.unfinished() == 0

        fleet.until(done, "all jobs to end")
        assert fleet.witness.count("poisoned") == 3
        step = fleet.app.jobs.get(poison).steps[0]
        assert (step.status, step.crashes, (step.error or {})["code"]) == ("FAILED", 3, "worker_died")
        spoilt = "select count(*) from processing_jobs where status <> 'COMPLETED' and id <> :id"
        assert fleet.scalar(spoilt, id=poison) == 0
        assert examine(fleet.database, fleet.witness) == []


@pytest.mark.parametrize("round_", range(volume(1, 5)))
def test_no_recorded_part_of_a_long_compute_is_computed_again(open_fleet: OpenFleet, round_: int) -> None:
    with open_fleet() as fleet:
        fleet.register(fault_steps.single("book", "fault.parts", max_crashes=100))
        (job,) = fleet.submit("book", parts=500)
        for death in range(10):
            assert fleet.start(f"part.recorded:{41 + death + round_}:kill").wait() < 0
        fleet.start()
        fleet.finish()
        computed = fleet.witness.counts("part")
        assert len(computed) == 500
        assert set(computed.values()) == {1}
        assert fleet.app.jobs.get(job).steps[0].crashes == 10
        assert examine(fleet.database, fleet.witness) == []
