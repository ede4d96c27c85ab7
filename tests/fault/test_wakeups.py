"""Nothing that is ready waits for a poll: whoever passes over a step, somebody says that it is there."""

from docmill.engine.batch import Batch, QueueClaim, Report
from docmill.engine.events import Completed
from docmill.engine.store import PlanSource, Store
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
