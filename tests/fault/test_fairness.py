"""However much one organisation has queued, another's first job starts within two claim rounds."""

from docmill.engine.batch import Batch, QueueClaim
from docmill.engine.store import PlanSource, Store
from docmill.model.ids import new_id
from docmill.testing import fault_steps
from tests.fault.conftest import OpenFleet, volume

CROWD = "00000000-0000-7000-8000-0000000000aa"
BATCH = 1000


def test_the_first_job_of_another_organisation_starts_within_two_claim_rounds(open_fleet: OpenFleet) -> None:
    with open_fleet() as fleet:
        fleet.register(fault_steps.single("queued", "fault.plain"))
        with fleet.database.borrow() as session:
            store = Store(session, PlanSource())
            for _ in range(volume(20_000, 100_000) // BATCH):
                store.commit(Batch(submissions=fleet.new_jobs("queued", BATCH, org_id=CROWD)))
            worker = new_id()
            claims = iter(range(1, 100))

            def claim() -> list[str]:
                turn = QueueClaim(queue="rule", limit=10, turn=next(claims))
                outcome = store.commit(Batch(claims=[turn], worker=worker))
                return [run.job.org_id for run in outcome.started]

            assert set(claim()) == {CROWD}
            (late,) = fleet.new_jobs("queued", 1)
            store.commit(Batch(submissions=[late]))
            assert late.org_id in [*claim(), *claim()]
