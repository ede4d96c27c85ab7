"""A worker that is paused beyond its lease loses its steps, and when it wakes it can change nothing."""

import signal
import time

import pytest

from docmill.testing.fleet import Fleet, Lease, WorkerProcess
from docmill.testing.verdict import examine
from tests.fault.conftest import OpenFleet, volume

LEASE = Lease(duration=1.0, heartbeat=0.25, sweep=0.2)
PAUSES = (1.5, 2.0, 3.0, 4.0, 5.0)
"""In leases."""
POINTS = ("claim.taken", "compute.after", "checkpoint.written", "part.recorded", "heartbeat.renewed")


@pytest.mark.parametrize("round_", range(volume(1, 20)))
def test_a_paused_worker_loses_its_steps_and_wakes_under_a_new_name(open_fleet: OpenFleet, round_: int) -> None:
    with open_fleet(lease=LEASE) as fleet:
        points = [f"{point}:{1 + round_ % 3}:stop" if fleet.database.kind == "postgresql" else "" for point in POINTS]
        sleepers = [fleet.start(point) for point in points]
        asleep: dict[int, float] = {}
        fleet.until(lambda: _all_asleep(fleet, sleepers, asleep), "all workers to stop")
        healthy = fleet.start()
        fleet.finish()
        for sleeper, pause in zip(sleepers, PAUSES, strict=True):
            wake_at = asleep[sleeper.pid] + pause * LEASE.duration
            fleet.until(lambda wake_at=wake_at: time.monotonic() >= wake_at, "the pause to end")  # type: ignore[misc]
            sleeper.signal(signal.SIGCONT)
        for sleeper in sleepers:
            fleet.until(lambda pid=sleeper.pid: _lives(fleet, pid), "the zombie to register anew")  # type: ignore[misc]
            dead = "select count(*) from workers where pid = :pid and status = 'dead'"
            assert fleet.scalar(dead, pid=sleeper.pid), "nobody declared the sleeper dead"
        healthy.kill()
        # Under their new names they work as before.
        fleet.submit("fault everything", 10)
        fleet.finish()
        violations = examine(fleet.database, fleet.witness)
        # Stopped between the last look at its lease and the model's door, a worker may ask once more; not a batch.
        late = [violation for violation in violations if violation.startswith("2:")]
        assert len(late) <= 1
        assert [violation for violation in violations if violation not in late] == []
        assert all(sleeper.running for sleeper in sleepers)


@pytest.mark.parametrize("point", ["commit.inside:2:stop", "commit.inside:3:stop", "apply.after:1:stop"])
def test_a_worker_paused_inside_a_transaction_holds_nobody_up_beyond_its_lease(
    on_postgres: OpenFleet, point: str
) -> None:
    # (On SQLite it holds the one write lock there is: nobody can go on until it wakes.)
    with on_postgres(lease=LEASE) as fleet:
        sleeper = fleet.start(point)
        fleet.submit("fault everything", 5)
        fleet.until(lambda: sleeper.stopped, "the worker to stop")
        fleet.start()
        fleet.finish()
        sleeper.signal(signal.SIGCONT)
        fleet.until(lambda: _lives(fleet, sleeper.pid), "the zombie to register anew")
        fleet.submit("fault everything", 5)
        fleet.finish()
        assert sleeper.running
        assert [v for v in examine(fleet.database, fleet.witness) if not v.startswith("2:")] == []


def _all_asleep(fleet: Fleet, sleepers: list[WorkerProcess], asleep: dict[int, float]) -> bool:
    for sleeper in sleepers:
        if fleet.database.kind == "sqlite" and sleeper.pid not in asleep:
            _stop_between_writes(fleet, sleeper)
        if sleeper.pid not in asleep and sleeper.stopped:
            asleep[sleeper.pid] = time.monotonic()
    if fleet.unfinished() < 10:
        fleet.submit("fault everything", 10)
    return len(asleep) == len(sleepers)


def _lives(fleet: Fleet, pid: int) -> bool:
    return bool(fleet.scalar("select count(*) from workers where pid = :pid and status = 'alive'", pid=pid))


def _stop_between_writes(fleet: Fleet, worker: WorkerProcess) -> None:
    """Stop it from outside with steps in hand."""
    running = (
        "select count(*) from processing_job_steps s join workers w on w.id = s.worker_id "
        "where s.status = 'IN_PROGRESS' and w.pid = :pid"
    )
    with fleet.nobody_writes():
        if fleet.scalar(running, pid=worker.pid):
            fleet.stop(worker)
