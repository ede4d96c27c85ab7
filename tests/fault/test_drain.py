"""SIGTERM: running steps finish or are given back without being counted as failed or crashed; the exit code is 0."""

import signal

from docmill.testing import fault_steps
from docmill.testing.verdict import examine
from tests.fault.conftest import OpenFleet


def test_a_drained_worker_finishes_what_ends_in_time_and_gives_back_the_rest(open_fleet: OpenFleet) -> None:
    with open_fleet(DOCMILL_DRAIN_SECONDS="2") as fleet:
        fleet.register(fault_steps.single("held", "fault.held", processor_method="record"))
        worker = fleet.start()
        (listening,) = fleet.submit("held", gate="held", listens=True)
        (deaf,) = fleet.submit("held", gate="held")
        fleet.witness.wait_for("holding", lambda notes: len(notes) == 2)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
        steps = {job: fleet.app.jobs.get(job).steps[0] for job in (listening, deaf)}
        assert steps[listening].status == "COMPLETED"
        assert (steps[deaf].status, steps[deaf].crashes, steps[deaf].attempt) == ("READY", 0, 0)
        assert fleet.scalar("select count(*) from workers where status <> 'stopped'") == 0
        fleet.witness.open_gate("held")
        fleet.start()
        fleet.finish()
        assert fleet.app.jobs.get(deaf).steps[0].crashes == 0
        assert examine(fleet.database, fleet.witness) == []


def test_an_idle_worker_ends_at_once(open_fleet: OpenFleet) -> None:
    with open_fleet() as fleet:
        worker = fleet.start(ready=True)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
