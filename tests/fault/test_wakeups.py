"""Nothing that is ready waits for a poll: whoever passes over a step, somebody says that it is there."""

from collections.abc import Iterable, Sequence

import pytest

from docmill.engine import failpoints, lane_a
from docmill.engine.batch import Batch, QueueClaim, Report, StepRun
from docmill.engine.events import Completed
from docmill.engine.inflight import Inflight
from docmill.engine.known import KnownJobs
from docmill.engine.lane_a import LaneA
from docmill.engine.lease import Lease, monotonic
from docmill.engine.pools import PoolSettings, Slots
from docmill.engine.store import PlanSource, Store
from docmill.testing.waiting import until
from tests.fault.conftest import OpenFleet

TWO_POOLS = """
name: two pools
processable_type: thing
steps:
  - {step_key: first, type: fault.plain, group: 1, pool: rule}
  - {step_key: second, type: fault.plain, group: 1, pool: system}
  - {step_key: finish, type: FinishProcessing}
"""


def test_a_ready_step_that_a_claim_passes_over_is_announced(open_fleet: OpenFleet) -> None:
    # A claim cannot take a step whose job the same transaction (or another worker's) is reporting on.
    with open_fleet() as fleet:
        fleet.register(TWO_POOLS)
        (job,) = fleet.submit("two pools")
        with fleet.database.borrow() as session:
            store = Store(session, PlanSource())
            first = store.commit(Batch(claims=[QueueClaim(queue="rule", limit=1)], worker=job))
            report = Report(job_id=job, event=Completed(position=0, epoch=first.started[0].state.epoch, result="1"))
            both = store.commit(Batch(reports=[report], claims=[QueueClaim(queue="system", limit=1)], worker=job))
        assert both.started or "system" in both.left_ready


class SilentBell:
    """Rings for nobody."""

    def ring(self, queues: Iterable[str]) -> None:
        pass

    def listen(self, worker_id: str, on_ring: object) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_ring_heard_during_a_claim_is_not_forgotten_with_it(
    open_fleet: OpenFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_a, "_POLL", 3600.0)
    started: list[str] = []

    def on_started(runs: Sequence[StepRun]) -> None:
        started.extend(run.job.id for run in runs)

    with open_fleet() as fleet:
        fleet.register(TWO_POOLS)
        lease = Lease(3600.0)
        lease.renewed("00000000-0000-7000-8000-00000000000a", monotonic())
        lane = LaneA(
            fleet.database,
            PlanSource(),
            KnownJobs(),
            lease=lease,
            slots=Slots([PoolSettings(name="rule")]),
            inflight=Inflight(on_lost=lambda keys: None),
            bell=SilentBell(),
            on_started=on_started,
        )
        late: list[str] = []

        def submit_late(point: str) -> None:
            # The claim has found all there was; before the lane draws its conclusion, more comes and rings.
            if point == "commit.after" and not late:
                late.append("")
                late[0] = fleet.submit("two pools")[0]
                lane.ring(frozenset({"rule"}))

        fleet.submit("two pools")
        failpoints.hook(submit_late)
        try:
            lane.start()
            until(lambda: late and late[0] in started, 20.0, what="the late job to be claimed")
        finally:
            failpoints.hook(None)
            lane.close()
